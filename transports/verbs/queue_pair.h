// One reliable-connection queue pair, and the states that it is taken through (ibv_modify_qp(3)):
//
//   RESET -> INIT -> RTR -> RTS      and from each to ERR
//
// and those of a channel that closes.
//
// A queue pair belongs to the thread of its channel or flusher, ClosingPairs to the rail's
// ClosingQueue.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "transports/verbs/completions.h"
#include "transports/verbs/device/port.h"
#include "transports/verbs/wire.h"

namespace slime::verbs {

struct QueueSizes {
  uint32_t sends = 0;
  uint32_t receives = 0;
  uint32_t inline_bytes = 0;
};

// How packets travel, as both ends agreed, and how long the NIC waits for what.
struct Path {
  Gid gid = {};  // of the peer
  uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  uint8_t service_level = 0;
  uint8_t traffic_class = 0;
  uint32_t flow_label = 0;  // of RoCE v2: spreads queue pairs over equal paths
  uint8_t timeout = 20;     // 4.096 us times 2 to the power of it
  uint8_t retries = 7;
  uint8_t reads = 1, reads_of_peer = 1;  // under way at once

  // What this end decides by itself: all but the peer's GID and LID.
  static Path from(const Port& port, const Settings& settings, int traffic_class);
};

// A sentence if the NIC's time-out and retries outlast NCCL_SLIME_PEER_TIMEOUT; otherwise empty.
std::string describe_patience(const Settings& settings);

Result<uint32_t> random_psn();

class QueuePair {
 public:
  QueuePair() = default;
  static Result<QueuePair> create(std::shared_ptr<const Port> port, ibv_pd* pd, ibv_cq* completions,
                                  const QueueSizes& sizes);
  QueuePair(QueuePair&& other) noexcept { *this = std::move(other); }
  QueuePair& operator=(QueuePair&& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(qp_, other.qp_);
    std::swap(inline_bytes_, other.inline_bytes_);
    std::swap(shared_, other.shared_);
    std::swap(place_, other.place_);
    return *this;
  }
  ~QueuePair();

  // A queue that its channel shares with others is told if the pair cannot be destroyed.
  void set_place(const Completions& completions) {
    shared_ = completions.shared();
    place_ = completions.place();
  }
  Result<void> initialize(uint16_t pkey_index, unsigned peer_may);  // ibv_access_flags
  Result<void> receive_from(const Path& path, const QueuePairName& peer);
  Result<void> send_to(const Path& path, uint32_t first_psn);
  bool refuse_works();  // of the peer, from now on
  void stop();          // ERR: nothing more is sent, and nothing of the peer's is written

  // 0, or an errno value. Then *refused is the first request that the NIC has not taken.
  int post(ibv_send_wr* requests, ibv_send_wr** refused = nullptr) const;

  ibv_qp* get() const { return qp_; }
  uint32_t number() const { return qp_->qp_num; }
  uint32_t inline_bytes() const { return inline_bytes_; }

 private:
  Result<void> modify(ibv_qp_attr* attributes, int mask, const char* state) const;

  std::shared_ptr<const Port> port_;
  ibv_qp* qp_ = nullptr;
  uint32_t inline_bytes_ = 0;
  std::shared_ptr<SharedQueue> shared_;
  uint16_t place_ = 0;
};

// What is left of the lanes of a closed channel that was ready. The NIC does not report the end of
// a queue pair to its peer, so each sends a message without bytes first. The channel's hello may be
// on its way too.
class ClosingPairs {
 public:
  ClosingPairs(Completions completions, std::unique_ptr<Registered<Hellos>> hellos,
               std::vector<QueuePair> pairs);
  // What the peer has sent meanwhile is dropped.
  bool is_done();

 private:
  Completions completions_;  // outlives the queue pairs
  std::unique_ptr<Registered<Hellos>> hellos_;
  std::vector<QueuePair> pairs_;
  size_t left_ = 0;  // messages that have not arrived
};

}  // namespace slime::verbs
