// An engine with one region, and what it knows of the other rank's.
//
// States: open -> connected to the other one. Thread: one.
#pragma once

#include <slime/slime.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "tools/perf/p2p/load.h"
#include "tools/perf/p2p/options.h"

namespace slime::perf::p2p {

// Where the pieces of a request lie. They do not touch each other, so that none is a part of
// another; a request of one piece has no gaps.
struct Layout {
  Layout(const Options& options, uint64_t piece_bytes)
      : piece(piece_bytes),
        stride(options.batch > 1 ? 2 * piece_bytes : piece_bytes),
        batch(options.batch),
        slots(options.concurrency) {}

  uint64_t offset(uint32_t slot, uint32_t index) const {
    return (uint64_t{slot} * batch + index) * stride;
  }
  uint64_t bytes() const { return uint64_t{slots} * batch * stride; }
  uint64_t bytes_of_request() const { return piece * batch; }

  uint64_t piece, stride;
  uint32_t batch, slots;
};

class Endpoint {
 public:
  static Result<std::unique_ptr<Endpoint>> open(size_t bytes);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  std::byte* memory() { return memory_.data(); }
  Result<std::vector<std::byte>> address() const;
  Result<std::vector<std::byte>> region() const;
  Result<void> connect(const std::vector<std::byte>& address, const std::vector<std::byte>& region);
  slime_peer_info peer() const;  // the other rank
  Result<Requests> requests(const Layout& layout, const Options& options);
  double prepare_ns() const { return prepare_ns_; }  // an assignment, of the plans
  // Takes what the other rank sends (kSend) or tells (kNotify) to the places of the slots, by
  // turns, until it says that it was the last one.
  Result<void> take(const Layout& layout, Operation operation);
  Result<void> say_last(Operation operation);

 private:
  static constexpr uint64_t kLastTag = UINT64_MAX;
  static constexpr int64_t kAcceptNs = 60'000'000'000;  // the other rank has connected already

  Endpoint() = default;
  int start(const Layout& layout, const Options& options, uint32_t slot);
  Result<void> prepare(const Layout& layout);
  Result<void> accept();  // a rank that receives gets its peer
  Result<void> receive(const Layout& layout);
  Result<void> fetch(const Layout& layout);
  // False: it is the last one.
  Result<bool> take(const slime_notification& notification, std::byte* to, size_t bytes);
  Result<void> post(const Layout& layout, uint32_t slot);

  std::vector<std::byte> memory_;
  slime_engine* engine_ = nullptr;
  slime_region region_ = 0;
  slime_peer peer_ = 0;
  slime_remote remote_ = 0;
  std::vector<slime_request> open_;                         // of each slot
  std::vector<std::vector<slime_assignment>> assignments_;  // of each slot
  std::vector<slime_plan> plans_;                           // of each slot, or none
  double prepare_ns_ = 0;                                   // for an assignment
};

}  // namespace slime::perf::p2p
