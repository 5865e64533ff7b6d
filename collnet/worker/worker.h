// One worker's end of a job: operations become rounds on slots, results become output.
//
// Chunk c of the job's stream, which runs on across operations, goes over slot c mod S; each slot
// is stop-and-wait (switch/protocol/slot_machine.h). The parts:
//
//     OperationQueue    the stream of chunks
//     stages.h          what the rounds of a chunk say
//     Retransmission    when a packet is sent again
//     SwitchHealth      whether the switch is there
//     Stragglers        which ranks are missing
//     PacketSender      where packets go
//     slot.h            what a slot holds, and how a job goes on without its switch
//
// States:
//   running   on a switch, or among the ranks (JobRoute::direct)
//   paused    pause() to go_on() or resume(): accepts and sends nothing, but answers peers; after
//             abandon() for good
//   failed    for good: nothing is sent or accepted any more
//
// Only this class changes the states. Invariant: while a slot is `waiting`, its packet is not
// changed, so every retransmission has the same bytes.
//
// No I/O and no clock of its own: the caller moves packets and gives the time, so that the
// simulator runs this code. Thread rules: one thread. Nothing is allocated after open().
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "collnet/worker/operation_queue.h"
#include "collnet/worker/options.h"
#include "collnet/worker/slot.h"
#include "collnet/worker/switch_health.h"

namespace slime {

class Worker {
 public:
  static constexpr uint32_t kMaxOperations = OperationQueue::kMost;  // outstanding
  static constexpr uint32_t kLeastLanes = 16;  // two blocks of four words, in two copies

  static Result<std::unique_ptr<Worker>> open(const WorkerOptions& options, Datagrams& network);

  // kAgain: there is no room, kMaxOperations are outstanding. All workers start the same operations
  // in one order. Tickets count up from 0.
  uint64_t room() const { return operations_.room(); }
  Payload payload_of(const Operation& operation) const {
    return Payload(operation.type, operation.op, options_.lanes, options_.contributors,
                   options_.half_bits, options_.formats);
  }
  Status start(const Operation& operation, uint64_t now_ns, uint64_t* ticket);
  bool done(uint64_t ticket) const { return operations_.done(ticket); }
  // A datagram that sap::decode() took.
  void on_packet(const sap::Header& header, std::span<const std::byte> payload, uint64_t now_ns);
  void poll(uint64_t now_ns);  // timers; call at least every millisecond
  void give_up(Error error);   // the first reason counts

  // The job can go on elsewhere after trouble, if all workers pause, exchange their epochs, and
  // resume.
  const SwitchHealth& health() const { return health_; }
  // What the caller has seen of the switch is trouble, too.
  void report_trouble(Error error) { health_.report(std::move(error)); }
  void pause() { paused_ = true; }
  void go_on(uint64_t now_ns);  // where it is: no worker had trouble
  void epochs(std::span<uint32_t> by_slot) const;
  // `epochs`: of all ranks, by rank, as they were when all had paused.
  void resume(const JobRoute& route, std::span<const uint32_t> epochs, uint64_t now_ns);
  // A pause for good: the buffers of operations are not touched any more.
  void abandon() { abandoned_ = paused_ = true; }

  // kOk until the job has failed; then the sentence is in failure().
  Status status() const { return failed_ ? failure_.status : Status::kOk; }
  const Error& failure() const { return failure_; }
  const WorkerCounters& counters() const { return counters_; }
  uint64_t round_trip_ns() const { return timers_.round_trip_ns(); }
  // Ranks that have not contributed to a round this one waits for; see Stragglers.
  std::optional<std::string> take_suspicion() { return stragglers_.take_report(); }

 private:
  Worker(const WorkerOptions& options, Datagrams& network);

  void begin_round(uint32_t index, uint64_t now_ns);
  void transmit(uint32_t index, uint64_t now_ns);

  void on_result(const sap::Header& header, std::span<const std::byte> payload, uint64_t now_ns);
  void on_reject(const sap::Header& header, uint32_t reason);

  void on_timeout(uint32_t index, uint64_t now_ns);
  void ask(uint32_t index, uint64_t now_ns);

  const WorkerOptions options_;
  const sap::Contributors all_;
  const uint32_t factor_;  // of this rank, in checks
  std::vector<Slot> slots_;
  const std::unique_ptr<std::byte[]> memory_;  // of the slots
  OperationQueue operations_;
  PacketSender sender_;
  Retransmission timers_;
  SwitchHealth health_;
  uint64_t rails_asked_ns_ = 0;
  Stragglers stragglers_;
  WorkerCounters counters_;
  bool paused_ = false, abandoned_ = false;
  bool failed_ = false;
  Error failure_;
};

// For a datagram of any bytes.
void deliver(Worker& worker, std::span<const std::byte> datagram, uint64_t now_ns);

}  // namespace slime
