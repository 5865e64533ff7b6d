// Visitors: connections that a listening port has accepted and that have not proven yet who they
// are. Anybody who reaches the port can make any number of them. These are the rules of all ports
// by which the others keep getting in:
//
//   * the backlog is emptied whether or not those who came before have said anything;
//   * visitors have a bounded number of places, and when all are taken the next gets that of the
//     oldest of the address which has the most;
//   * one second has at most one line in the log about strangers, and errors say how many came.
//
// Thread rules: those of the port.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/net/socket.h"

namespace slime {

struct Visit {
  SocketAddress from;
  uint64_t since_ns = 0;  // when it was accepted
};

class VisitorPort {
 public:
  static constexpr size_t kPlaces = 64;
  // Of one call, so that a flood does not delay the caller's other work for long.
  static constexpr int kAcceptsPerCall = 256;
  // A place is safe for that long: the visitor's proof may be on its way. Without it, many peers
  // that come at the same time would take each other's places.
  static constexpr uint64_t kGraceNs = 10'000'000;

  // Accepts what waits in the backlog. kAgain: somebody waits there still, and all places are taken
  // by visitors within their grace. An error is of accept_one() or admit().
  Status accept_visitors(const Fd& listener, uint64_t now_ns, Error* error);

 protected:
  ~VisitorPort() = default;

 private:
  // Who has a place, oldest first.
  virtual std::vector<Visit> visits() const = 0;
  virtual size_t places() const { return kPlaces; }  // at least 1
  // The one with this index in visits() has to go: see abort_connection().
  virtual void drop_visit(size_t index) = 0;
  // Reads at once what the visitor has said already: the next one may need its place.
  virtual Status admit(Accepted accepted, Error* error) = 0;
};

// Whose place the next visitor gets; nothing: that one is within its grace.
std::optional<size_t> visit_to_drop(std::span<const Visit> visits, uint64_t now_ns);

// Counts those that were turned away, and limits what is written about them.
class StrangerLog {
 public:
  // One more. Nothing: there was a line within the last second. Otherwise a line about this one is
  // due, and this is its end: how many have had none since.
  std::optional<std::string> turned_away(uint64_t now_ns);
  uint64_t count() const { return count_; }
  // For the error about a peer that never came: "" or "; 7 strangers were turned away meanwhile".
  std::string summary() const;

 private:
  uint64_t count_ = 0;
  uint64_t unlogged_ = 0;
  uint64_t next_line_ns_ = 0;
};

}  // namespace slime
