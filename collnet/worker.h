// One worker's end of a job: operations become rounds on slots, results become output.
//
// Chunk c of the job's stream, which runs on across operations, goes over slot c mod S; each slot
// is stop-and-wait (switch/protocol/slot_machine.h). A chunk takes up to three rounds, the same at
// all workers because each follows from a result that all have seen:
//
//     exponents   only if the round before on this slot could not bring them: not all workers knew
//                 yet what comes next (special::kUnknown). Or a guess, where they stayed the same:
//                 exponents and data at once; if they changed, it was a round for exponents
//     flags       only if a worker has a NaN or infinity there: where they are, by OR
//     data        the sum; with it, the exponents of the next chunk on this slot
//
// and more if numbers are lost beside others of their block (special::kCoarse):
//
//     fine        an exponent for every element; several rounds where bytes travel as words
//     data        again, scaled by those
//
// or, for a minimum or maximum of 64-bit integers that a switch has in 32 bits only (encoding.h):
//
//     upper       the upper words, before data brings the lower ones
//
// So NaN and infinities reach the user where IEEE 754 puts them without another path than the
// switch, and garbage in a chunk's tail costs that chunk one small round and nobody else anything.
//
// No I/O and no clock of its own: whoever owns it moves datagrams and tells the time, so that the
// simulator runs this code. Thread rules: one thread. Nothing is allocated after open().
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "collnet/attention.h"
#include "collnet/branches.h"
#include "collnet/payload.h"
#include "collnet/rtt.h"
#include "switch/protocol/check.h"
#include "switch/protocol/slot_machine.h"

namespace slime {

struct WorkerOptions {
  uint16_t job = 0;
  uint8_t generation = 0;
  uint32_t token = 0;                 // of this generation
  uint8_t child = 0;                  // at its switch
  uint32_t rank = 0;                  // in the job
  uint32_t contributors = 1;          // ranks of the job, at all switches
  std::vector<Branch> branches = {};  // for words about who is missing; empty: child i is rank i
  uint32_t branch = 0;                // that of this rank
  uint32_t slots = 64;
  uint32_t lanes = 256;  // 32-bit words per packet
  number::HalfBits half_bits = number::HalfBits::k32;
  uint32_t formats = sap::kKnownFormats;  // that all switches of the job add up; alike at all
  bool guesses = true;                    // of exponents; alike at all
  uint32_t shards = 1;  // slot s is served on port (that of shard 0) + s mod shards
  uint32_t rails = 1;   // local addresses; slot s uses that of sap::rail_of
  RoundTrip::Limits round_trip;
  uint64_t suspect_ns = 300'000'000;     // then the switch is asked who is missing
  uint64_t silent_ns = 2'000'000'000;    // of attention without a word from the switch: it is gone
  uint64_t dead_ns = 1'800'000'000'000;  // of one round: then the job has failed
};

struct Operation {
  const void* send = nullptr;
  void* receive = nullptr;  // may be `send`
  uint64_t count = 0;       // elements
  number::DataType type = number::DataType::kInt32;
  sap::Op op = sap::Op::kSum;
};

// X(name, help)
#define SLIME_WORKER_COUNTERS(X)                                      \
  X(operations, "operations started, the trial included")             \
  X(sent, "packets sent, retransmissions included")                   \
  X(timeouts, "times that no result came in time")                    \
  X(retransmitted, "packets sent again")                              \
  X(results, "results accepted")                                      \
  X(stale, "results of other rounds, dropped")                        \
  X(foreign, "datagrams that are not of this job, dropped")           \
  X(wrong_token, "datagrams of this job with another token, dropped") \
  X(corrupt, "results that were found damaged, dropped")              \
  X(exponent_rounds, "rounds for exponents alone")                    \
  X(guess_rounds, "rounds with exponents as before")                  \
  X(wrong_guesses, "of these, rounds that found other exponents")     \
  X(flag_rounds, "rounds for NaN and infinities")                     \
  X(fine_rounds, "rounds for exponents of single elements")           \
  X(upper_rounds, "rounds for the upper words of 64-bit integers")    \
  X(queries, "questions to the switch about missing ranks")           \
  X(bytes, "payload bytes of operations that are complete")

struct WorkerCounters {
#define SLIME_FIELD(name, help) uint64_t name = 0;
  SLIME_WORKER_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
};

// A shard of the switch, over one of our rails; or another worker, from rail 0 to rail 0.
struct Destination {
  enum class Kind : uint8_t { kShard, kRank };
  Kind kind = Kind::kShard;
  uint32_t index = 0;
  uint32_t rail = 0;
  bool operator==(const Destination&) const = default;
};

class Datagrams {
 public:
  virtual ~Datagrams() = default;
  virtual void send(const Destination& to, std::span<const std::byte> datagram) = 0;  // may lose it
};

// Where a job goes on when its switch is gone, or back.
struct Move {
  uint16_t job = 0;
  uint8_t generation = 0;
  uint32_t token = 0;
  bool direct = false;  // without a switch: rank s mod contributors serves slot s
  uint32_t shards = 1;  // of the switch
  uint32_t rails = 1;   // towards it
  // The epochs() of all ranks, by rank, as they were when all had paused.
  std::span<const uint32_t> epochs;
};

class Worker {
 public:
  static constexpr uint32_t kMaxOperations = 64;  // outstanding
  static constexpr uint32_t kLeastLanes = 16;     // two blocks of four words, in two copies

  static Result<std::unique_ptr<Worker>> open(const WorkerOptions& options, Datagrams& network);

  // kAgain: there is no room, kMaxOperations are outstanding. All workers start the same operations
  // in one order. Tickets count up from 0.
  uint64_t room() const { return kMaxOperations - (tail_ - head_); }
  uint64_t elements_per_packet(const Operation& operation) const;
  Status start(const Operation& operation, uint64_t now_ns, uint64_t* ticket);
  bool done(uint64_t ticket) const;
  void on_datagram(std::span<const std::byte> datagram, uint64_t now_ns);
  void poll(uint64_t now_ns);  // timers; call at least every millisecond
  void give_up(Error error);   // the first reason counts

  // What is wrong with the switch: it refused us, is silent, or adds up wrongly. A silence ends
  // when something is heard after all; the rest stays. The job can go on elsewhere, if all workers
  // pause, tell each other their epochs, and resume (worker_move.cc).
  const std::optional<Error>& trouble() const { return trouble_; }
  // A bit for each rail that is silent while others are not: the job can do without these. Of the
  // last trouble; 0: that was not of rails.
  uint32_t lost_rails() const { return lost_rails_; }
  void pause() { paused_ = true; }
  void go_on(uint64_t now_ns);  // where it is: no worker had trouble
  void epochs(std::span<uint32_t> by_slot) const;
  void resume(const Move& move, uint64_t now_ns);

  // kOk until the job has failed; then nothing more is sent, and the sentence is in failure().
  Status status() const { return failed_ ? failure_.status : Status::kOk; }
  const Error& failure() const { return failure_; }
  const WorkerCounters& counters() const { return counters_; }
  uint64_t round_trip_ns() const { return round_trip_.smoothed_ns(); }
  // Ranks that have not contributed to a round this one waits for, as the switch told; a report
  // every few seconds. Empty: nothing new.
  std::optional<std::string> take_suspicion();

 private:
  static constexpr uint32_t kNobody = ~0u;
  enum class Stage : uint8_t { kExponents, kGuess, kFlags, kFine, kUpper, kData };

  struct Slot {
    uint64_t chunk = 0;  // of the job's stream: worked on, or next
    uint32_t epoch = sap::kFirstEpoch;
    Stage stage = Stage::kData;
    bool waiting = false;
    bool agreed = false;       // `scales` are of `chunk`, and all workers have them
    bool coarse = false;       // numbers were lost: `chunk` needs a finer round
    uint32_t fine_rounds = 0;  // of `chunk`, that are in
    bool fine = false;         // the exponents of single elements of `chunk` are in, all of them
    bool upper = false;        // the upper words of `chunk` are in
    bool flagged = false;      // the flags of `chunk` are in
    bool resent = false;
    bool steady = false;  // the last chunk was finite, and had the scales of the one before
    Scales scales;
    Scales guess;     // of the last chunk of floats
    Scales own_next;  // what this worker said of the chunk after it
    uint32_t attempts = 0;
    uint32_t damaged = 0;  // results of this round that were found damaged
    uint64_t first_sent_ns = 0;
    uint64_t asked_at = 0;  // then too, as attention_ counts
    uint64_t deadline_ns = 0;
    uint64_t query_ns = 0;
    uint32_t packet_bytes = 0;
    uint32_t kept_bytes = 0;    // of the result before this round
    uint32_t holder = kNobody;  // rank that has this round's result, where this one has not
  };
  struct Running {
    Operation operation;
    Payload payload;
    uint64_t first_chunk = 0;
    uint64_t chunks = 0;
    uint64_t left = 0;  // chunks without a result
  };
  struct Piece {  // of an operation: what one chunk covers
    const std::byte* from;
    std::byte* to;
    uint32_t count;
  };

  Worker(const WorkerOptions& options, Datagrams& network);

  Payload payload_of(const Operation& operation) const;
  Running& running(uint64_t ticket) { return operations_[ticket % kMaxOperations]; }
  Running* operation_of(uint64_t chunk);
  void retire();
  Piece piece_of(const Running& running, uint64_t chunk) const;
  std::byte* packet_of(uint32_t index) const { return packets_.get() + index * packet_stride_; }
  std::byte* flags_of(uint32_t index) { return flags_.get() + index * flags_stride_; }
  // Results of earlier rounds of the same chunk: exponents of elements, or upper words.
  std::byte* earlier_of(uint32_t index) {
    return earlier_.get() + size_t{index} * 4 * options_.lanes;
  }
  std::byte* kept_of(uint32_t index) { return kept_.get() + index * packet_stride_; }

  // worker_rounds.cc
  void begin_round(uint32_t index, uint64_t now_ns);
  void fill(uint32_t index, const Running& running, const Piece& piece, sap::Header* header);
  const std::byte* finite(uint32_t index, const Running& running, const Piece& piece);
  bool may_guess(const Slot& slot, const Running& running) const;
  uint32_t fill_data(uint32_t index, const Running& running, const Piece& piece,
                     sap::Header* header);
  static uint32_t cookie_of(const Slot& slot, const Running& running);
  Scales scales_of(uint64_t chunk);
  void start_timers(Slot& slot, uint64_t now_ns) const;
  void transmit(uint32_t index, uint64_t now_ns);

  // worker_results.cc
  void on_result(const sap::Header& header, std::span<const std::byte> payload, uint64_t now_ns);
  bool fits(const sap::Header& header) const;
  bool is_intact(const Running& running, const sap::Header& header,
                 std::span<const std::byte> payload) const;
  void on_damaged(Slot& slot, const sap::Header& header);
  void finish_round(uint32_t index, Running& running, const sap::Header& header,
                    std::span<const std::byte> payload);
  void finish_guess(uint32_t index, Running& running, const sap::Header& header,
                    std::span<const std::byte> payload);
  bool finish_data(uint32_t index, Running& running, const sap::Header& header,
                   std::span<const std::byte> payload);
  void finish_fine(uint32_t index, const Running& running, std::span<const std::byte> payload);
  void deliver(uint32_t index, Running& running, std::span<const std::byte> payload);

  // worker_move.cc
  void keep(const sap::Header& header, std::span<const std::byte> payload);
  void answer_peer(const sap::Header& query);
  uint32_t holder_of(uint32_t index, std::span<const uint32_t> epochs) const;
  static void forget_exponents(Slot& slot);
  Destination served_by(uint32_t index) const;
  uint32_t rail_of(uint32_t index) const { return sap::rail_of(index, shards_, rails_); }
  void query(uint32_t index, const Destination& to, uint8_t flags);

  // worker_timers.cc
  void check_timers(uint64_t now_ns);
  void on_timeout(uint32_t index, uint64_t now_ns);
  void ask(uint32_t index, uint64_t now_ns);
  void ask_on_other_rails(uint32_t index, uint64_t now_ns);
  void on_status(const sap::Header& header, uint32_t bits, uint64_t now_ns);
  void on_reject(const sap::Header& header, uint32_t reason);
  bool is_silent(uint32_t index) const;
  void find_lost_rails();
  void heard_on(uint32_t rail);
  Error unanswered(uint32_t index, uint64_t now_ns) const;
  Error overdue(uint32_t index, uint64_t now_ns) const;
  std::string missing_ranks() const;
  std::string missing_branches() const;

  const WorkerOptions options_;
  Datagrams& network_;
  RoundTrip round_trip_;
  std::vector<Slot> slots_;
  std::array<Running, kMaxOperations> operations_;
  uint64_t head_ = 0, tail_ = 0;  // operations: oldest that is not done, next ticket
  uint64_t next_chunk_ = 0;
  uint64_t next_check_ns_ = 0;
  size_t packet_stride_ = 0, flags_stride_ = 0;
  std::unique_ptr<std::byte[]> packets_, flags_, earlier_, scratch_;
  std::unique_ptr<std::byte[]> kept_;  // newest result per slot: a peer may need it
  uint16_t job_;
  uint8_t generation_;
  uint32_t token_;
  uint8_t child_;  // at whoever sums up: our switch, or the other ranks
  bool direct_ = false;
  bool paused_ = false;
  uint32_t shards_;
  uint32_t rails_;  // 1 without a switch
  Attention attention_;
  std::array<uint64_t, sap::kMaxRails> heard_at_{};  // from the switch, by rail, as that counts
  uint64_t rails_asked_ns_ = 0;
  uint32_t lost_rails_ = 0;
  std::optional<Error> trouble_;
  std::optional<uint32_t> silent_rail_;  // that is the trouble
  WorkerCounters counters_;
  bool failed_ = false;
  Error failure_;
  struct Arrived {  // children of our switch, or, at the root, leaves: a bit each
    uint32_t bits = 0;
    bool at_root = false;
    bool operator==(const Arrived&) const = default;
  };
  std::optional<Arrived> last_arrived_;  // by the newest answer to a question
  std::optional<Arrived> suspected_;     // in this silence
  std::optional<std::string> suspicion_;
  uint64_t suspect_again_ns_ = 0;
};

}  // namespace slime
