// The interface to one NIC port. A backend (tcp, sim, later verbs and libfabric) implements it;
// the engine knows nothing else of a NIC.
//
// A rail moves *works*: one-sided writes into registered memory of the peer, each announced to the
// peer by a 32-bit immediate. That is RDMA WRITE_WITH_IMM on verbs, fi_writedata on libfabric, a
// framed stream on tcp. Completions are counted by the engine, so works may arrive in any order.
//
// Threads: a Rail may be used from any thread. A Channel belongs to one thread at a time (NCCL:
// the service thread while connecting, the progress thread, the housekeeping one if it is idle).
#pragma once

#include <slime/carrier.h>
#include <slime/metrics.h>
#include <slime/result.h>
#include <slime/status.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace slime {

enum class MemoryKind : uint8_t { kHost = 1, kCuda = 2 };

struct RailCaps {
  std::string name;         // unique on the host and stable, e.g. "eth0" or "eth0.1"
  std::string transport;    // "tcp", "sim", ...
  std::string pci_path;     // realpath of the PCI function in /sys; empty: virtual
  std::string oob_address;  // numeric IP address for the link's control connection; empty: any
  std::string reason;       // for people: why its interface has as many rails; empty: unsaid
  uint64_t guid = 0;        // of the NIC; ports of one NIC share it
  int port = 0;
  int numa_node = -1;  // -1: unknown
  uint32_t speed_mbps = 10000;
  float latency_us = 0;
  uint32_t send_queue_depth = 256;       // works outstanding per channel
  uint32_t max_batch = 64;               // works per post()
  uint64_t max_message_bytes = 1 << 30;  // per work
  bool ordered = true;                   // works of one channel arrive in posting order
  bool lines_in_order = false;    // each aligned 128-byte line becomes visible whole and in order
  bool arrives_unpolled = false;  // data lands in memory without poll() at the receiver
  uint32_t memory_kinds = static_cast<uint32_t>(MemoryKind::kHost);  // bit set of MemoryKind
};

// Keys of one registered range on one rail.
struct MemoryKeys {
  uint64_t local = 0;
  uint64_t remote = 0;  // what the peer must present to write into the range
};

// What a peer needs to reach a channel (address, queue pair number, nonce ...), opaque to the
// engine.
using ChannelAddress = std::array<std::byte, 64>;

struct Work {
  const std::byte* local = nullptr;  // stays untouched by the user until the work is done
  uint64_t local_key = 0;
  uint64_t remote_address = 0;
  uint64_t remote_key = 0;
  uint32_t length = 0;  // bytes; 0: only the immediate travels, address and key are ignored
  uint32_t immediate = 0;
  uint64_t cookie = 0;  // returned with the completion
  // With confirm_delivery: kSent may come as it does without, and the peer's rail need not
  // acknowledge it. For works whose fate the poster learns in another way.
  bool unconfirmed = false;
};

struct Done {
  enum class Kind : uint8_t {
    kSent,     // a work of ours: its memory may be reused (a rail may need the receiver's polls
               // for that); with confirm_delivery, unless it is unconfirmed: it arrived
    kArrived,  // a work of the peer: its bytes are visible in our memory
  };
  Kind kind = Kind::kSent;
  uint32_t immediate = 0;  // kArrived
  uint64_t bytes = 0;      // kArrived
  uint64_t cookie = 0;     // kSent
};

inline constexpr int kNoTrafficClass = -1;

struct ChannelOptions {
  bool active = false;  // true at the end that connects
  // kSent only once the peer's rail has reported kArrived, but for unconfirmed works
  bool confirm_delivery = false;
  // Of what this end sends: IP's TOS byte, 0 to 255. A rail that cannot mark it warns and goes on.
  int traffic_class = kNoTrafficClass;
};

// One connection over one rail.
class Channel {
 public:
  virtual ~Channel() = default;  // never blocks; what was kSent before still reaches a live peer

  // Set-up, never blocking: exchange addresses out of band, then call connect until not kAgain.
  virtual ChannelAddress address() const = 0;
  virtual Status connect(const ChannelAddress& peer) = 0;

  // Data path. post takes the first works of the span and rings one doorbell; `taken` less than
  // the span's size means that the queue is full, which is no error. poll also moves whatever
  // post left to be moved. Both return kOk, or the channel's failure for good: see failure(). After
  // a failure of post, poll returns what had arrived before it returns the failure too.
  virtual Status post(std::span<const Work> works, size_t* taken) = 0;
  virtual Status poll(std::span<Done> done, size_t* count) = 0;

  // After fence() nothing of the peer's reaches our memory over this channel, ever. poll() still
  // returns the arrivals that had been confirmed to the peer, and then kOk with none.
  virtual void fence() = 0;

  // Asked when no work has completed for a while: false if the peer's NIC (or kernel) has
  // acknowledged bytes of this channel within `ns`, or owes no acknowledgement. Then the path is
  // alive, and a work merely takes long. A rail that cannot tell says true. With 0 ns: whether the
  // peer's NIC owes an acknowledgement.
  virtual bool silent_for(uint64_t ns) {
    (void)ns;
    return true;
  }

  virtual const Error& failure() const = 0;  // valid once connect, post or poll returned an error
  virtual std::string peer_name() const = 0;

  RailCounters counters;
};

class Rail {
 public:
  virtual ~Rail() = default;
  virtual const RailCaps& caps() const = 0;
  // The engine asks some ten times a second, from any thread.
  virtual Carrier carrier() { return Carrier::kUnknown; }
  // A range may be registered any number of times; each registration has keys of its own.
  // deregister_memory returns only when no channel writes into the range any more.
  virtual Result<MemoryKeys> register_memory(void* address, size_t bytes, MemoryKind kind) = 0;
  virtual void deregister_memory(const MemoryKeys& keys) = 0;
  virtual Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions& options) = 0;
};

}  // namespace slime
