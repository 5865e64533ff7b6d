// The other rank, which this one meets by the rendezvous. Thread: one.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "rendezvous/launcher.h"
#include "rendezvous/member.h"
#include "tools/perf/p2p/options.h"

namespace slime::perf::p2p {

class Partner {
 public:
  explicit Partner(const rendezvous::Identity& identity) : identity_(identity) {}

  Result<void> join(const Options& options);
  bool is_initiator() const { return identity_.rank == 0; }  // this rank
  // Returns the part of the other rank, when both have called it.
  Result<nlohmann::json> exchange(const char* label, nlohmann::json part);
  // The same without parts.
  Result<void> meet(const char* label);
  rendezvous::Member* member() { return member_.get(); }  // nullptr: it has not joined

 private:
  const rendezvous::Identity& identity_;
  rendezvous::Heartbeat heartbeat_;
  std::unique_ptr<rendezvous::Coordinator> coordinator_;
  std::unique_ptr<rendezvous::Member> member_;
};

}  // namespace slime::perf::p2p
