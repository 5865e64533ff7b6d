// What the engine is compared with: the same over one plain connection, over the transport of the
// first rail that engines have here, with one thread a side. A side that waits looks again and
// again for 20 us after the last thing that came, and then sleeps, as engines do.
//
// Both sides: open(), and connect() with what the other one calls itself. Then, as often as one
// likes, the initiator measures requests() and calls end(), and the target calls serve() meanwhile.
// Thread: one.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "base/error.h"
#include "tools/perf/p2p/endpoint.h"

namespace slime::perf::p2p {

class PlainLoop {
 public:
  static constexpr uint64_t kSpinNs = 20'000;
  static constexpr int kSilenceMs = 60'000;  // that it waits for the other side at most

  // An error if there is no plain loop for the transport. The memory outlives it.
  static Result<std::unique_ptr<PlainLoop>> open(const Options& options, bool initiator,
                                                 std::span<std::byte> memory);
  virtual ~PlainLoop() = default;

  // For the other side: its transport, and where it is.
  virtual nlohmann::json name() const = 0;
  Result<void> connect(const nlohmann::json& other);

  // Long pieces may be moved in parts, and which are the best depends on caches and buffers: bytes
  // of a part, at most, of each way that is worth a trial.
  virtual std::span<const uint64_t> ways() const = 0;
  // Requests end in the order in which they begin, which is that of the slots.
  virtual Requests requests(const Layout& layout, uint64_t way) = 0;
  virtual Result<void> end() = 0;
  // Does what the initiator asks for, until it says end.
  virtual Result<void> serve() = 0;

 protected:
  virtual Result<void> connect_to(const nlohmann::json& other) = 0;  // of the same transport
};

}  // namespace slime::perf::p2p
