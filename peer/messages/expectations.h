// The immediates that programs wait for, and those that came before anybody did.
//
// States of an expectation: open, until its count of immediates has come; then its request has
// ended. It also ends by its deadline, when its peer has gone, and when it is dropped. An immediate
// counts for the oldest open expectation that it fits, and else it is kept.
//
// Memory: kMostKept counts for each peer, and the open expectations. Threads: any; a mutex guards
// all, and nothing is called while it is held.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "peer/moving/peer_request.h"

namespace slime {

class Expectations {
 public:
  // Different immediates of one peer that nobody has expected.
  static constexpr size_t kMostKept = 65'536;
  static constexpr uint64_t kAnyPeer = 0;  // never a handle
  // Gets what nobody expects, in place of keeping it. False: there is no room for it.
  using Unexpected = std::function<bool(uint64_t peer, uint32_t immediate)>;

  explicit Expectations(Unexpected unexpected = nullptr) : unexpected_(std::move(unexpected)) {}

  // The request, which no link moves, ends when `count` of these have come.
  void expect(uint64_t peer, uint32_t immediate, uint64_t count,
              std::shared_ptr<PeerRequest> request);
  // One has come. False: too many are kept.
  bool take(uint64_t peer, uint32_t immediate);
  // Of those that came and that nobody has expected.
  void forget(uint64_t peer, uint32_t immediate);
  // These end: this one, or those of this peer alone.
  void end(const PeerRequest* request, const Error& why);
  void end_of(uint64_t peer, const Error& why);
  void drop_of(uint64_t peer);  // it is not known any more: what has come of it

 private:
  struct Open {
    uint64_t peer = 0;
    uint32_t immediate = 0;
    uint64_t left = 0;
    std::shared_ptr<PeerRequest> request;
  };
  using Counts = std::unordered_map<uint32_t, uint64_t>;  // of immediates

  template <typename Which>
  void end_those(const Error& why, Which which);
  static uint64_t take_kept(Counts& counts, uint32_t immediate, uint64_t most);

  const Unexpected unexpected_;
  std::mutex mutex_;
  std::list<Open> open_;                       // the oldest first
  std::unordered_map<uint64_t, Counts> kept_;  // of peers
};

}  // namespace slime
