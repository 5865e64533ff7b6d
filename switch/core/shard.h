// One shard of a switch: the slots that are reached through one port. It turns datagrams into
// datagrams and does no I/O of its own, so that the software switch, the simulator and the fuzzer
// run the same code.
//
// A datagram takes these steps:
//
//     decode ─▶ job known? ─▶ admit: generation, token, source, slot, shape
//       ─▶ contribution or partial: slot machine ─▶ load or fold the values ─▶ answer
//       ─▶ query: answer, or a query to the parent
//       ─▶ of the parent: its result into the slot, everything else to those below
//
// States: those of the slots of its jobs (slot_machine.h). A shard itself has none. Its set of jobs
// changes only by add_job(), install(), take() and fence().
// Invariants: a packet that admit() refuses changes nothing but counters. An answer goes to
// addresses of the job, or to the sender of the packet. A sender without the job's token gets
// refusals only, which name the reason. The rate of refusals is limited, so that the switch never
// sends more than was sent to it.
// Thread rules: one thread. Any thread may read the counters.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <unordered_map>

#include "switch/core/job.h"
#include "switch/core/slots.h"

namespace slime::net {

// A datagram to be sent. The payload of a sum is the slot's own memory: it stays valid until the
// next packet for that slot. A payload of a single word is valid only until send() returns.
struct Outgoing {
  std::array<std::byte, sap::kHeaderBytes> header;
  std::span<const std::byte> payload;
};

class Outbox {
 public:
  virtual ~Outbox() = default;
  // `to` is valid until send() returns.
  virtual void send(const Outgoing& packet, std::span<const SocketAddress> to) = 0;
};

// Counters of datagrams that belong to no job. X(name, help)
#define SLIME_SHARD_COUNTERS(X)                                  \
  X(malformed, "packets that are not of the protocol")           \
  X(other_version, "packets of another version of the protocol") \
  X(unknown_job, "packets of jobs that are not here")            \
  X(unexpected, "packets of a type that no switch takes")        \
  X(rejects_sent, "refusals sent, of any job or none")           \
  X(rejects_spared, "refusals not sent: too many in a second")

SLIME_DECLARE_COUNTERS(StrayCounters, ShardTotals, SLIME_SHARD_COUNTERS)

struct ShardCounters : StrayCounters {
  Counter packets;  // all that came; operators see those of the socket
};

class Shard {
 public:
  static constexpr uint32_t kRejectsPerSecond = 1000;

  // Shard `index` of `count`.
  Shard(uint32_t index, uint32_t count) : index_(index), count_(count) {}

  struct Job {
    JobSpec spec;
    sap::Role role;
    Slots slots;
    JobCounters counters;
  };

  // Fails for a job that no switch could have.
  static Result<void> check(const JobSpec& spec);
  // Replaces a job of the same number. Fails for lack of memory or a spec that cannot be.
  Result<void> add_job(const JobSpec& spec);
  bool remove_job(uint16_t job) { return take(job) != nullptr; }
  // The same in steps, so that the shard's thread does not wait for memory: make_job() may be
  // called by any thread, and any thread may destroy the job that install() and take() return.
  Result<std::unique_ptr<Job>> make_job(const JobSpec& spec) const;
  std::unique_ptr<Job> install(std::unique_ptr<Job> job);
  std::unique_ptr<Job> take(uint16_t job);
  // The job goes on in another generation, with fresh slots. False: no such job.
  bool fence(uint16_t job, uint8_t generation, uint32_t token);
  const JobCounters* counters_of(uint16_t job) const;
  const ShardCounters& counters() const { return counters_; }

  void handle(std::span<const std::byte> datagram, const SocketAddress& from, uint64_t now_ns,
              Outbox& outbox);

 private:
  struct Packet {
    const sap::Header& header;
    std::span<const std::byte> payload;
    const SocketAddress& from;
    uint64_t now_ns;
    Outbox& outbox;
  };

  bool admit(Job& job, const Packet& packet);
  std::span<const SocketAddress> children_of(const Job& job, uint16_t slot) const;
  void contribute(Job& job, const Packet& packet);
  void query(Job& job, const Packet& packet);
  void on_parent_packet(Job& job, const Packet& packet);
  void parent_result(Job& job, const Packet& packet);
  void answer(Job& job, sap::Send send, const Packet& packet);
  void send_values(Job& job, sap::Type type, const Packet& packet,
                   std::span<const SocketAddress> to);
  void send_word(sap::Type type, uint32_t word, const Packet& packet, uint8_t level = 0);
  void reject(sap::Rejection why, Counter& counter, const Packet& packet);
  uint32_t local(uint16_t slot) const { return slot / count_; }

  const uint32_t index_;
  const uint32_t count_;
  ShardCounters counters_;
  std::unordered_map<uint16_t, std::unique_ptr<Job>> jobs_;
  uint64_t rejects_since_ns_ = 0;
  uint32_t rejects_ = 0;
};

}  // namespace slime::net
