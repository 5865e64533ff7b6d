// The interface to one NIC port. Each backend (tcp, verbs, libfabric) implements it, and so do the
// simulated rails of the tests. The engine uses a NIC only through it. test/contract checks on
// every backend what these comments promise.
//
// A rail moves *works*. Each rail has one-sided writes into registered memory of the peer that are
// announced to the peer by a 32-bit immediate: RDMA WRITE_WITH_IMM on verbs, fi_writedata on
// libfabric, a framed stream on tcp. The engine counts completions, so works may arrive in any
// order. Some rails also have silent writes and reads (Opcode).
//
// Threads. A Rail may be used from any thread, also while its channels are in use. A Channel
// belongs to one thread at a time (NCCL: the service thread while connecting, the progress thread,
// the housekeeping one if it is idle), and so does a Flusher. No call on a channel waits but
// fence(); deregister_memory() waits for a write into the range, or a read from it, that is under
// way.
//
// States of a channel
//   new        connect() is called until it returns something else than kAgain
//   connected  post() and poll(); the first failure of either is the channel's, for good
//   failed     post() takes nothing and returns the failure; poll() returns the arrivals that were
//              there, then the failure, and from then on the failure only
//   fenced     fence() was called, in whatever state; the channel stays so
//
// Sent works
//   For each work that post() took, kSent or kRefused is reported exactly once, in any order. Where
//   the channel fails or is fenced, for some works never, and for none of the post() that failed;
//   such a work may have arrived all the same. A peer that closes when its poll() has reported all
//   arrivals, and all its own works as kSent, leaves this end with kSent for all, if none of them
//   was a read, a silent write or refused: they come before the failure. Memory of a work may be
//   reused from its kSent or kRefused on. Memory of works with neither is in use until both ends of
//   a failed channel have fenced it, or this channel is destroyed.
//
//   Without ChannelOptions::confirm_delivery, kSent of a write with an immediate means that it
//   reaches the peer if its process lives, also when this end closes the channel right after.
//
//   With confirm_delivery, its kSent means that the peer's poll() has reported the arrival, or will
//   report it, even if the peer's channel fails or is fenced meanwhile. For works that are
//   Work::unconfirmed kSent means what it means without confirm_delivery; the works around them
//   are confirmed all the same.
//
//   kSent of a silent write means, with and without confirm_delivery, that its bytes are visible at
//   the place that it names, in memory of a device once they are flushed. kSent of a read means
//   that the bytes are visible at its local place, in memory of a device once they are flushed.
//   After a fence at this end no read writes there any more.
//
// Refused works
//   Where RailCaps::goes_on_after_refusal, a work may end with kRefused instead of kSent: the
//   remote key is wrong or has no such right, the remote place is not inside its range, or the
//   local range of a read was deregistered meanwhile. The channel and all other works go on. A
//   refused write has written nothing, or, where its range was deregistered in the middle of it,
//   some of its bytes before that. What a refused read has left at its local place is undefined,
//   but never what came into the remote memory after it was deregistered.
//
//   Reads and silent writes can be refused, and with confirm_delivery writes with an immediate that
//   are not Work::unconfirmed; while the peer closes the channel, good ones too. A bad work that
//   cannot be refused fails the channel, as does each bad work on a rail that does not go on
//   ("Arrived works"). There the end that posted it reports kRefused of a read or silent write
//   first, so that it knows which work not to repeat. Not so where the peer's NIC goes silent, as
//   Soft-RoCE of Linux 6.1 does with a read whose memory is deregistered when a part of it has been
//   sent. A rail may end a channel that has thousands of refusals.
//
// Arrived works
//   kArrived is reported when all bytes of a write with an immediate are visible at the place that
//   it names. A work may be reported twice, though tcp, verbs and libfabric never do; the engine
//   ignores the second.
//
//   A work whose key, bounds or length is wrong writes nothing and is not reported. Either it is
//   refused; or post() fails the channel at this end (a local place that is not registered, a
//   length that no work may have, a remote key that no rail of this kind gives out); or the channel
//   fails at both ends, and works that were posted before a bad write to an ordered rail arrive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/interfaces/carrier.h"
#include "transports/poller.h"
#include "transports/rail_counters.h"

namespace slime {

enum class MemoryKind : uint8_t { kHost = 1, kCuda = 2 };

enum class Opcode : uint8_t {
  kWriteWithImmediate,  // reported to the peer (kArrived)
  kWrite,  // a silent write: the peer's poll() reports nothing, and no receive of its queue is used
  kRead,   // from the peer's memory into ours
};
constexpr uint32_t opcode_bit(Opcode opcode) { return 1u << static_cast<uint32_t>(opcode); }

// What peers may do with a registered range, a bit set.
inline constexpr uint8_t kRemoteWrite = 1, kRemoteRead = 2;

struct RailCaps {
  std::string name;       // unique on the host and stable, e.g. "eth0" or "eth0.1"
  std::string transport;  // "tcp", "verbs", ...
  std::string pci_path;   // realpath of the PCI function in /sys; empty: virtual
  // Numeric IP address for the link's control connection, never empty or a wildcard. A rail that
  // has none of its own takes that of the interface of NCCL's bootstrap.
  std::string oob_address;
  std::string reason;      // for people: what was chosen for it, and why; empty: unsaid
  uint64_t guid = 0;       // of the NIC; ports of one NIC share it
  int port = 0;            // of the NIC
  std::string link_layer;  // "ethernet", "infiniband"; empty: any
  std::string fabric;      // rails reach each other within one, e.g. a subnet prefix; empty: any
  // Of its address, as "10.1.0.0/16": rails of one subnet are paired where that is possible. Empty:
  // not known.
  std::string subnet;
  unsigned interface = 0;  // index of the network interface that counts its bytes; 0: none does
  uint32_t mtu = 0;        // bytes; 0: not known
  int numa_node = -1;      // -1: unknown
  uint32_t speed_mbps = 10000;
  float latency_us = 0;
  uint32_t send_queue_depth = 256;  // writes outstanding per channel, at most
  uint32_t max_batch = 64;          // works per post()
  // A bit for each (opcode_bit). A work with another one must not be posted.
  uint32_t opcodes = opcode_bit(Opcode::kWriteWithImmediate);
  uint32_t max_outstanding_reads = 0;  // per channel and end, beside send_queue_depth
  bool goes_on_after_refusal = false;  // see "Refused works"
  // Peers may do with a range what its rights say, and nothing else. False: they may read it and
  // write into it, if they have its key.
  bool keeps_rights = true;
  uint64_t max_message_bytes = 1 << 30;  // per work
  // Writes of one channel, silent ones too, arrive in posting order, and none passes a lost one. A
  // read may pass all others, and be passed.
  bool ordered = true;
  bool lines_in_order = false;    // each aligned 128-byte line becomes visible whole and in order
  bool arrives_unpolled = false;  // data lands in memory without poll() at the receiver
  // The peer's NIC confirms works, though its process does not poll, until its receive queue is
  // full. So a kSent says that the path is alive, and nothing of the peer's process.
  bool confirms_in_hardware = false;
  // What is registered by its address: a bit set of MemoryKind.
  uint32_t memory_kinds = static_cast<uint32_t>(MemoryKind::kHost);
  bool dma_buf = false;  // takes MemoryRange::dma_buf, of device memory too
};

struct MemoryRange {
  void* address = nullptr;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  // A DMA-BUF that holds the range from dma_buf_offset on; -1: none. It stays the caller's, who may
  // close it when register_memory has returned. Only for rails with RailCaps::dma_buf.
  int dma_buf = -1;
  uint64_t dma_buf_offset = 0;
  // Of peers: kRemoteWrite, kRemoteRead, both or none (RailCaps::keeps_rights). This end may write
  // in any case, so an RDMA NIC needs a range that is writable.
  uint8_t rights = kRemoteWrite;
  // Its keys are those of this registration, and end with it, also if others have the same range.
  bool alone = false;
};

inline bool takes(const RailCaps& caps, const MemoryRange& range) {
  if (range.dma_buf >= 0) return caps.dma_buf;
  return (caps.memory_kinds & static_cast<uint32_t>(range.kind)) != 0;
}

// Keys of one registered range on one rail.
struct MemoryKeys {
  uint64_t local = 0;
  uint64_t remote = 0;  // what the peer must present to write into the range, or read from it
};

// What a peer needs to reach a channel (address, queue pair number, nonce ...), opaque to the
// engine.
using ChannelAddress = std::array<std::byte, 128>;

struct Work {
  // Stays untouched by the user until the work is done. Constant, because only a read writes here.
  const std::byte* local = nullptr;
  uint64_t local_key = 0;
  uint64_t remote_address = 0;
  // The same place, counted from the beginning of the range that remote_key is for. A rail uses the
  // address or the offset; libfabric's providers without FI_MR_VIRT_ADDR (fi_mr(3)) use the offset.
  uint64_t remote_offset = 0;
  uint64_t remote_key = 0;
  uint32_t length = 0;     // bytes; 0: it touches no memory, so addresses and keys are ignored
  uint32_t immediate = 0;  // of a kWriteWithImmediate
  uint64_t cookie = 0;     // returned with the completion
  // With confirm_delivery: kSent may come as it does without, and the peer's rail need not
  // acknowledge the work. For works whose arrival the poster finds out in another way; it changes
  // nothing of reads and silent writes.
  bool unconfirmed = false;
  Opcode opcode = Opcode::kWriteWithImmediate;
};

struct Done {
  enum class Kind : uint8_t {
    kSent,     // a work of ours, once: its memory may be reused. A rail may need the receiver's
               // polls for that. "Sent works" has what it promises of the arrival
    kArrived,  // a work of the peer: its bytes are visible in our memory, in that of a device once
               // they are flushed
    kRefused,  // a work of ours, once, instead of kSent: its memory may be reused
  };
  Kind kind = Kind::kSent;
  uint32_t immediate = 0;  // kArrived
  uint64_t bytes = 0;      // kArrived
  uint64_t cookie = 0;     // kSent, kRefused
};

inline constexpr int kNoTrafficClass = -1;

struct ChannelOptions {
  bool active = false;  // true at the end that connects
  // A write with an immediate, unless it is Work::unconfirmed, is kSent only when the peer's rail
  // has reported its arrival, or is sure to report it in a later poll, even after fence(). Both
  // ends of a channel have the same value. The NIC of a reliable connection provides that: what it
  // acknowledged stays in the completion queue. Where the end of a connection drops what was not
  // read (libfabric), the receiver's rail sends acknowledgements itself, in the poll that reports
  // the arrival: the engine may never poll again. With a poller the next call may send them, and
  // the end of the channel does.
  bool confirm_delivery = false;
  // Of what this end sends: IP's TOS byte, 0 to 255. A rail that cannot mark it warns and goes on.
  int traffic_class = kNoTrafficClass;
  // True at the end that has the other's address first. Its connect() is called before the other
  // end has its address, so the other end may send as soon as its own connect() is called.
  bool first = false;
  // How many writes may be under way at once, and how many reads; 0, and where RailCaps says less:
  // as RailCaps says. A power of two (others are rounded down), the same at both ends. A channel
  // with fewer takes less memory.
  uint32_t depth = 0;
  // A poller of the same rail; nullptr: none. `tag` is what it calls this channel.
  Poller* poller = nullptr;
  uint64_t tag = 0;
};

// One connection over one rail.
class Channel {
 public:
  virtual ~Channel() = default;  // never blocks; what was kSent before still reaches a live peer

  // Set-up, never blocking: exchange addresses out of band, then call connect until not kAgain.
  virtual ChannelAddress address() const = 0;
  virtual Status connect(const ChannelAddress& peer) = 0;

  // Data path. post() takes the first works of the span and rings one doorbell; *taken less than
  // the span's size means that there is no place for the next work, which is no error: writes and
  // reads have places of their own, and what stands behind it may be posted by itself. poll() also
  // moves whatever post() left to be moved. Both return kOk, or the channel's failure for good: see
  // failure().
  //
  // The post() that fails says in *taken how many works the NIC had taken before it failed. These
  // may arrive at the peer, but are never kSent; the works behind them do not arrive. Each later
  // post() takes none. After a failure of post(), poll() returns what had arrived before it returns
  // the failure too.
  //
  // The channel also fails, within NCCL_SLIME_PEER_TIMEOUT and though nothing is posted, when the
  // peer's process ends, or its host or the path is silent: where neither the NIC nor the kernel
  // sends keep-alives, poll() does. It does not fail because the peer's process is stopped, however
  // long works wait.
  virtual Status post(std::span<const Work> works, size_t* taken) = 0;
  virtual Status poll(std::span<Done> done, size_t* count) = 0;

  // Of a connected channel on a poller (poller.h), when poll() has just reported nothing. kOk: the
  // poller will name it. kAgain: poll() has something to report or to move already. Otherwise the
  // channel's failure, for good: it is named no more. This end looks here too whether the peer is
  // silent, so an idle channel needs an arm() every quarter of NCCL_SLIME_PEER_TIMEOUT.
  virtual Status arm() { return Status::kUnsupported; }
  // Until the next arm() the poller does not name it for what arrives. For a thread that is about
  // to poll it in a loop: what that thread gets need not wake another. (On verbs it does, where
  // that one sleeps: a completion queue announces all completions.)
  virtual void disarm() {}

  // May be called in any state, also before connect() and again. When it returns, nothing of the
  // peer's reaches our memory over this channel any more. (Device memory: only once a flusher has
  // read behind what the NIC had written by then.) From then on poll() returns the arrivals that
  // had been confirmed to the peer and were not reported yet, perhaps kSent or kRefused of
  // works that had ended before, and then kOk with none, also where it had returned a failure
  // before. post() takes nothing. The peer's channel fails, as when this end closes; its works
  // without kSent are lost, or have arrived. Unlike all other calls fence() may wait until the NIC
  // has stopped, some milliseconds at most.
  virtual void fence() = 0;

  // For when no work has completed for a while. False: the peer's NIC (or kernel) has acknowledged
  // bytes of this channel within `ns`, or owes no acknowledgement, so the path works and a work
  // merely takes long. A rail that cannot know returns true. With 0 ns: whether the peer's NIC owes
  // an acknowledgement.
  virtual bool silent_for(uint64_t ns) {
    (void)ns;
    return true;
  }

  virtual const Error& failure() const = 0;  // valid once connect, post or poll returned an error
  virtual std::string peer_name() const = 0;

  RailCounters counters;
};

// For rails that write into device memory. A NIC's completion says that it has issued its writes,
// not that the device sees them. A read by the same NIC does not pass them on the way to the device
// (PCI Express Base Specification, "Transaction Ordering", row B, column 2), so its answer says
// that they are there.
//
// A flusher needs no peer, and outlives channels: a rail that has failed may have reported writes
// that have not reached the device yet. Some NICs read from themselves only while their port is up.
// Where the NIC cannot read, because its port is down or has just got another address, reads stay
// under way until it can; so the caller needs a deadline. One thread uses a flusher at a time.
//
// Memory may be deregistered, and the flusher destroyed, while a read is under way. A read of
// memory that was deregistered counts as complete, and then proves nothing about other memory.
class Flusher {
 public:
  virtual ~Flusher() = default;
  // Begins a read of the byte at `address`, `offset` bytes from the beginning of the range that is
  // registered on this rail with `keys`. kAgain: too many are under way.
  virtual Status begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys) = 0;
  // How many of those begun are complete, in the order of their beginning: the device sees all that
  // this rail's channels had reported before begin().
  virtual Status poll(uint64_t* completed) = 0;
  virtual const Error& failure() const = 0;  // valid once begin or poll returned an error
};

class Rail {
 public:
  virtual ~Rail() = default;
  virtual const RailCaps& caps() const = 0;
  // Called some ten times a second, from any thread.
  virtual Carrier carrier() { return Carrier::kUnknown; }
  // A range may be registered any number of times; each registration has keys of its own. A remote
  // key that is narrower in hardware (verbs: 32 bits) has zeros above, and post() fails with
  // others. deregister_memory returns only when no channel writes into the range or reads from it
  // any more.
  virtual Result<MemoryKeys> register_memory(const MemoryRange& range) = 0;
  virtual void deregister_memory(const MemoryKeys& keys) = 0;
  virtual Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions& options) = 0;
  // For channels that are opened on it. nullptr: this rail has none (libfabric), and each channel
  // is polled by itself.
  virtual Result<std::unique_ptr<Poller>> open_poller() { return nullptr; }
  // nullptr: what arrived in device memory is visible without one.
  virtual Result<std::unique_ptr<Flusher>> open_flusher() { return nullptr; }
};

}  // namespace slime
