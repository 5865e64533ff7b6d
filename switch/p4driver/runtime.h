// The runtime interface of a P4 device: it writes tables, registers, multicast groups and mirroring
// sessions, and reads counters. Bmv2Runtime is one, over Thrift.
//
// A device identifies entries and groups by their contents. Where its interface has handles, the
// implementation keeps them.
//
// States: connected, or not. A call that fails because of the connection, or that is not answered,
// closes it; then every call fails until connect() opens another one. Nothing is thrown: exceptions
// of a library become a Result.
//
// Thread rules: one thread, but for end_by(). Each call blocks, takes effect before it returns, and
// has a deadline, which the implementation is made with: from its begin to its end, whatever the
// device sends in between, and what it may send has a bound. An error names the device and what was
// asked.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/error.h"
#include "base/net/socket.h"
#include "switch/p4driver/entry.h"

namespace slime::net {

class P4Runtime {
 public:
  virtual ~P4Runtime() = default;
  virtual const SocketAddress& server() const = 0;

  // Limits an operation of many calls: all of them end by then, and a later one fails and closes
  // the connection. Any thread.
  void end_by(std::chrono::steady_clock::time_point time) {
    end_by_ = time.time_since_epoch().count();
  }

  // The next call must be reset(): the device may have entries of an earlier connection, which this
  // one has no record of.
  virtual Result<void> connect() = 0;
  // False: the other end has closed the connection. Sends nothing, and does not wait.
  virtual bool is_connected() const = 0;
  // Tables, registers, counters and multicast groups are as when the device began.
  virtual Result<void> reset() = 0;

  // Fails if the table has an entry with that key.
  virtual Result<void> add(const TableEntry& entry) = 0;
  // These find the entry by its table and key, and fail if it was not added.
  virtual Result<void> modify(const TableEntry& entry) = 0;  // it gets this action
  virtual Result<void> remove(const TableEntry& entry) = 0;  // whatever its action
  // What the table does with a packet that no entry matches.
  virtual Result<void> set_default(std::string_view table, const TableAction& action) = 0;

  virtual Result<void> clear_registers(const RegisterRange& range) = 0;
  virtual Result<uint64_t> read_counter(const CounterCell& cell) = 0;
  virtual Result<void> clear_counter(const CounterCell& cell) = 0;
  // The first meter of an array is green for at most so many packets a second, and for bursts of as
  // many.
  virtual Result<void> limit(std::string_view meters, uint32_t packets_per_second) = 0;

  // If it fails, a part of the group may be there.
  virtual Result<void> add_group(const MulticastGroup& group) = 0;
  // Removes what there is of the group, which may be nothing. If it fails, call it again.
  virtual Result<void> remove_group(uint16_t id) = 0;
  // Makes or changes the session.
  virtual Result<void> mirror(const MirrorSession& session) = 0;

 protected:
  // How long a call may take that begins now, and has call_ms at most. 0: it must not begin.
  int limit_ms(int call_ms) const {
    using std::chrono::steady_clock, std::chrono::milliseconds;
    const steady_clock::duration end(end_by_.load()), now = steady_clock::now().time_since_epoch();
    if (end <= now) return 0;
    const auto left = std::chrono::ceil<milliseconds>(end - now);
    return static_cast<int>(std::min<milliseconds::rep>(left.count(), call_ms));
  }

 private:
  std::atomic<std::chrono::steady_clock::rep> end_by_{
      std::chrono::steady_clock::time_point::max().time_since_epoch().count()};
};

}  // namespace slime::net
