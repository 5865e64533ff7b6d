// A listening port where each caller must first send a hello of a fixed size. The port limits the
// number of callers without a complete hello (visitors.h), reads hellos piece by piece, and hands a
// caller over when its owner accepts the hello. All other callers are strangers: the port counts,
// logs and closes them, and they change nothing else.
//
//   caller                      port
//     connects            -->
//            <--  opening            if the owner has one: a nonce to sign
//     hello               -->        when complete, accept() decides
//
// States of a caller: the opening is being sent -> the hello is arriving -> accepted, or a
// stranger. Memory: an opening and a hello for each of VisitorPort::kPlaces callers. Threads: one
// thread, or several under the owner's mutex.
#pragma once

#include <poll.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/visitors.h"

namespace slime {

class HelloPort : private VisitorPort {
 public:
  using VisitorPort::kGraceNs;
  using VisitorPort::kPlaces;

  const StrangerLog& strangers() const { return strangers_; }
  // For the error about a peer that never came: the connections that were turned away, and why
  // others cannot be accepted. "" if there are none.
  std::string summary() const {
    return strangers_.summary() + (trouble().empty() ? "" : "; " + trouble());
  }

 protected:
  struct Caller {
    Fd fd;
    SocketAddress from;
    uint64_t since_ns = 0;           // when it was accepted, or when the whole opening was sent
    std::vector<std::byte> opening;  // the port's first message
    size_t sent = 0;                 // bytes of the opening
    std::vector<std::byte> hello;
    size_t received = 0;  // bytes of the hello
    std::span<const std::byte> said() const { return std::span(hello).first(received); }
  };

  // A caller has `limit_ns` for its hello.
  HelloPort(size_t hello_bytes, uint64_t limit_ns)
      : hello_bytes_(hello_bytes), limit_ns_(limit_ns) {}
  ~HelloPort() = default;

  // Accepts the callers that wait at `listener`, and reads the bytes that all callers have sent.
  // kAgain: more callers wait in the backlog, and cannot be accepted at this moment. An error comes
  // from the listener.
  Status read_callers(const Fd& listener, const Clock& clock, Error* error);
  // Turns away the callers whose hello is not whole: nobody is expected any more.
  void drop_callers();
  bool has_callers() const { return !callers_.empty(); }
  // The callers' connections, for who waits until one of them says something.
  void add_to(std::vector<pollfd>* waited) const;

 private:
  // The port's first message to a caller; empty: none.
  virtual Result<std::vector<std::byte>> open() { return std::vector<std::byte>(); }
  // The reason why no hello begins with these bytes; nullptr: a hello may.
  virtual const char* refuse_begun(std::span<const std::byte> /*said*/) const { return nullptr; }
  // Checks a complete hello whose first bytes were not refused. nullopt: the owner has taken the
  // caller's connection. Otherwise the reason why the caller is a stranger.
  virtual std::optional<std::string> accept(Caller& caller) = 0;
  // Logs a stranger, at most one a second. `more` ends the line: it counts strangers without a
  // line.
  virtual void log_stranger(const Caller& caller, const std::string& why,
                            const std::string& more) const = 0;

  std::vector<Visit> visits() const override;
  void drop_visit(size_t index) override;
  Status admit(Accepted accepted, Error* error) override;
  bool settle(Caller& caller);  // true: the caller was accepted or turned away
  Status exchange(Caller& caller, Error* error);
  void turn_away(const Caller& caller, const std::string& why);

  const size_t hello_bytes_;
  const uint64_t limit_ns_;
  const Clock* clock_ = nullptr;  // of the present read_callers()
  uint64_t now_ns_ = 0;           // when it began
  std::deque<Caller> callers_;    // oldest first
  StrangerLog strangers_;
};

}  // namespace slime
