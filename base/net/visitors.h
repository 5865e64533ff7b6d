// Visitors: connections that a listening port has accepted and whose peer has not yet proven its
// identity. Any host that reaches the port can make any number of them. By these rules of all
// ports, legitimate peers can still connect:
//
//   * the port empties its backlog even if earlier visitors have sent nothing;
//   * visitors have a bounded number of places. When all are taken, the next visitor gets the place
//     of the oldest visitor from the address that has the most;
//   * where descriptors or memory are missing, connections wait in the backlog until some are free;
//   * the log gets at most one line a second about strangers, and errors count them.
//
// Threads: those of the port.
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
  // Limits one call, so that a flood does not delay the caller's other work for long.
  static constexpr int kAcceptsPerCall = 256;
  // A visitor keeps its place for at least this time, because its proof may be on its way.
  // Otherwise many peers that come at the same time would take each other's places.
  static constexpr uint64_t kGraceNs = 10'000'000;

  // Accepts the connections in the backlog. kAgain: connections still wait there, because all
  // places are taken by visitors within their grace, or because of trouble(). Then call again after
  // a pause: poll(2) would report the listener at once. An error comes from accept_one() or
  // admit(), and is final.
  Status accept_visitors(const Fd& listener, uint64_t now_ns, Error* error);
  // Why the connection that waits cannot be accepted: descriptors or memory are missing. "": none
  // are.
  const std::string& trouble() const { return trouble_; }

 protected:
  ~VisitorPort() = default;

 private:
  // The visitors that have a place, oldest first.
  virtual std::vector<Visit> visits() const = 0;
  // Drops the visitor with this index in visits(), by abort_connection().
  virtual void drop_visit(size_t index) = 0;
  // Takes a new visitor. It reads at once the bytes that the visitor has sent already, because the
  // next visitor may need the place.
  virtual Status admit(Accepted accepted, Error* error) = 0;
  Status wait_for_resources(const Fd& listener, std::span<const Visit> taken, uint64_t now_ns,
                            const Error& why);

  std::string trouble_;
  uint64_t next_line_ns_ = 0;  // about trouble
};

// The visitor whose place the next one gets; nullopt: that visitor is within its grace.
std::optional<size_t> visit_to_drop(std::span<const Visit> visits, uint64_t now_ns,
                                    uint64_t grace_ns = VisitorPort::kGraceNs);

// Counts the strangers that were turned away, and limits the lines about them.
class StrangerLog {
 public:
  // Counts one stranger. nullopt: there was a line within the last second. Otherwise the caller
  // writes a line about it and ends the line with this text: the number of strangers without a
  // line.
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
