// Requests that wait in a list for something that peers send.
#pragma once

#include <iterator>
#include <list>

#include "base/clock.h"
#include "peer/moving/peer_request.h"

namespace slime {

template <typename Posted, typename Which>
std::list<Posted> take_out(std::list<Posted>& of, Which which) {
  std::list<Posted> taken;
  for (auto next = of.begin(); next != of.end();) {
    const auto one = next++;
    if (which(*one)) taken.splice(taken.end(), of, one);
  }
  return taken;
}

template <typename Posted>
void end_all(const std::list<Posted>& all, const Error& why) {
  for (const Posted& one : all) {
    one.request->give_up(why);
    one.request->end(steady_now_ns());
  }
}

}  // namespace slime
