// In-network allreduce for programs that do not use NCCL: N ranks, tensors in host memory, a switch
// that adds them up. Link with -lslime -pthread (pkg-config slime). C++17, no other header needed.
//
//     slime::aggregation::Options options;
//     options.rank = rank, options.ranks = 4;
//     options.rendezvous = "10.0.0.1:5000";  // rank 0 listens there
//     options.switch_address = "10.0.0.9:28900";
//     options.key_file = "/etc/slime/switch.key";  // needed where the switch is another host
//     std::unique_ptr<slime::aggregation::Context> context;
//     auto outcome = slime::aggregation::Context::open(options, &context);
//     if (outcome) outcome = context->all_reduce({data, data, count});
//     if (!outcome) std::fprintf(stderr, "%s\n", outcome.what.c_str());
//
// Rules. All ranks call the same operations, of the same count, type and op, in the same order.
// Every rank gets the same bits. If the switch goes away, the ranks go on without it, slower, to
// the same bits. docs/switch.md says what a sum of floats is worth.
//
// Errors are values: a code and one sentence that says what, where and what to try. Nothing here
// throws, except std::bad_alloc. An error of a Context, other than kInvalid, kUnsupported,
// kWouldBlock, a time-out of wait() and one of all_reduce() that has not started yet, is for good:
// close it and open another.
//
// Threads: any thread may call a Context, several at a time; it is up to the caller that operations
// start in the same order at all ranks. Packets move while somebody is in all_reduce, wait or test,
// and about every 20 ms otherwise: a program that computes meanwhile calls test now and then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace slime::aggregation {

enum class Code : uint8_t {
  kOk,
  kWouldBlock,   // Context::kMaxOutstanding operations are under way: wait for one
  kInvalid,      // the caller passed something that no correct caller passes
  kConfig,       // options or environment cannot work
  kSystem,       // a call into the operating system failed
  kRemote,       // another rank, the switch or the network between failed
  kTimeout,      // a deadline passed
  kNoMemory,     // memory, descriptors or another countable resource ran out
  kUnsupported,  // correct, but no switch can do it
  kInternal,     // a bug of this library
};

// Of a call. True: it did what it says.
struct [[nodiscard]] Outcome {
  Code code = Code::kOk;
  std::string what;  // empty if kOk
  explicit operator bool() const { return code == Code::kOk; }
};

enum class DataType : uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,  // IEEE 754 binary16
  kFloat32,
  kBfloat16,
};
size_t element_bytes(DataType type);  // 0: no such type

// Minimum and maximum of integers only.
enum class Op : uint8_t { kSum, kMin, kMax };

// One allreduce: receive[i] = op over all ranks of their send[i]. `receive` is `send` (in place) or
// does not overlap it. No alignment is needed. A count of 0 is an operation like others.
struct Reduction {
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;  // elements
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
};

// For measurements. All ranks run in the same mode. Every mode but kNormal is logged as a warning.
enum class Mode : uint8_t {
  kNormal,
  // A switch in this process: real worker, real slot machine, no network. What the other ranks
  // would have sent is this rank's own data, so a sum is ranks times that.
  kDummy,
  // Through the switch, but numbers are not converted: their bytes are added as integers. What a
  // sum of floats then holds means nothing.
  kBypass,
  // Operations are complete at once, and `receive` is not written.
  kInstant,
};

// `own`: `bytes` of this rank; `all`: ranks times as many, to be filled in the order of ranks, the
// same at all ranks. False: it failed. With MPI:
//     return MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm) == MPI_SUCCESS;
using AllGather = std::function<bool(const void* own, size_t bytes, void* all)>;

// What is empty or 0 here is as the environment says (NCCL_SLIME_*, docs/configuration.md: the
// settings of the NCCL plugin) or the default.
struct Options {
  uint32_t rank = 0;   // below ranks
  uint32_t ranks = 1;  // 1 to 32
  // How the ranks find each other; with one rank neither is needed, with more exactly one.
  std::string rendezvous;  // host:port where rank 0 listens while it opens
  AllGather all_gather;    // called once, from open

  // host:port of the control channel, or host:port*weight,... of several; NCCL_SLIME_SWITCH
  std::string switch_address;
  std::string key_file;          // shared with the switch; NCCL_SLIME_SWITCH_KEY_FILE
  std::string interfaces;        // NCCL_SLIME_IFNAME
  int device = 0;                // of those that slime-info lists
  uint32_t slots = 0;            // packets on the way; NCCL_SLIME_SWITCH_SLOTS
  double connect_timeout_s = 0;  // of open, and again of its rendezvous; NCCL_SLIME_CONNECT_TIMEOUT
  double switch_timeout_s = 0;   // silence of the switch; NCCL_SLIME_SWITCH_TIMEOUT
  double operation_timeout_s = 0;  // of an operation; NCCL_SLIME_REQUEST_TIMEOUT
  Mode mode = Mode::kNormal;       // kNormal: NCCL_SLIME_DEBUG_MODE (dummy, bypass, instant)
  // Any other setting by its full name, such as {"NCCL_SLIME_SWITCH_LANES", "64"}.
  std::map<std::string, std::string> settings;
};

// Since open, of this rank. Packets are those between this rank and the switch.
struct Statistics {
  uint64_t operations = 0;       // started, the first sum of open included
  uint64_t bytes = 0;            // of tensors, of what is complete
  uint64_t sent = 0;             // packets, those sent again included
  uint64_t results = 0;          // correct results
  uint64_t timeouts = 0;         // times that no result came in time
  uint64_t retransmitted = 0;    // packets sent again
  uint64_t stale = 0;            // results of other rounds, dropped
  uint64_t corrupt = 0;          // results that were found damaged, dropped
  uint64_t foreign = 0;          // datagrams that are not of this job, dropped
  uint64_t wrong_token = 0;      // datagrams of this job with another token, dropped
  uint64_t exponent_rounds = 0;  // rounds for exponents alone
  uint64_t guess_rounds = 0;     // rounds with exponents as before
  uint64_t wrong_guesses = 0;    // of these, rounds that found other exponents
  uint64_t flag_rounds = 0;      // rounds for NaN and infinities
  uint64_t fine_rounds = 0;      // rounds for exponents of single elements
  uint64_t upper_rounds = 0;     // rounds for the upper words of 64-bit integers
  uint64_t queries = 0;          // questions to the switch about missing ranks
  uint64_t send_calls = 0;       // system calls that sent packets
  uint64_t receive_calls = 0;    // system calls that received packets
  uint64_t strangers = 0;        // datagrams from neither the switch nor a rank
  uint64_t send_drops = 0;       // packets that the kernel refused: they are sent again
  uint64_t round_trip_ns = 0;    // smoothed; 0: none was measured
  bool without_switch = false;   // the ranks sum up for each other
  uint32_t switches = 1;         // that were named
  uint32_t lost_switches = 0;    // of these, at the moment
};

// An operation that was started. A plain value; the default one is none.
struct Request {
  uint64_t id = 0;
};

class Context {
 public:
  static constexpr uint32_t kMaxOutstanding = 64;

  // All ranks call it; it succeeds at all or at none, after a first sum over the switch. Waits at
  // most twice the connect time-out, and 11 s for rank 0 and the switch, 21 s where ranks name
  // leaves of a tree. Host names cost what the resolver takes.
  static Outcome open(const Options& options, std::unique_ptr<Context>* context);
  // Waits up to a second for the other ranks to close too. Operations under way are abandoned:
  // their buffers are not touched any more. No other call may be under way.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Starts and waits, at most `timeout_s` (0: the operation time-out). Waits for a place where
  // kMaxOutstanding are under way. Once started, a time-out ends the whole Context, because the
  // other ranks cannot be told to take it back; buffers are not touched any more then.
  Outcome all_reduce(const Reduction& reduction, double timeout_s = 0);
  // Starts. The caller leaves the buffers alone until the operation `*request` is done. Operations
  // may end in any order.
  // kWouldBlock: nothing was started, and nothing is queued: kMaxOutstanding have been started
  // since the oldest that is not done.
  Outcome all_reduce_async(const Reduction& reduction, Request* request);
  // Moves packets; whether the operation is done. Never waits. May be asked again when done.
  Outcome test(const Request& request, bool* done);
  // kTimeout: not done within `timeout_s` (0: the operation time-out); it goes on, wait again.
  Outcome wait(const Request& request, double timeout_s = 0);

  Statistics statistics() const;
  std::string statistics_json() const;  // one object, with the names above
  uint32_t rank() const;
  uint32_t ranks() const;

 private:
  class Impl;
  explicit Context(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// Where lines of the log go; from any thread, one line at a time, without a line end. One sink per
// process. Until this is called, warnings go to stderr and the rest nowhere; nullptr: silence.
enum class LogLevel : uint8_t { kWarning, kInfo, kTrace };
using LogSink = void (*)(LogLevel level, const char* line);
void set_log(LogSink sink);

}  // namespace slime::aggregation
