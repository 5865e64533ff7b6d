// In-network allreduce for programs that do not use NCCL: N ranks, tensors in host memory, a switch
// that adds them up. Link with -lslime -pthread (pkg-config slime). It needs C++17 and no other
// header.
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
// Every rank gets the same bits. If the switch fails, the ranks go on without it: slower, with the
// same bits. docs/switch.md says how exact a sum of floats is.
//
// Errors are values: a code and one sentence that says what failed, where, and what to try. Nothing
// throws, except std::bad_alloc. An error of a Context is permanent: close the Context and open
// another. The exceptions are kInvalid, kUnsupported, kWouldBlock, a time-out of wait(), and a
// time-out of an all_reduce() that has not started yet.
//
// Threads: any thread may call a Context, several at a time. The caller must start operations in
// the same order at all ranks. Packets move while a thread is in all_reduce, wait or test, and
// about every 20 ms otherwise. So a program that computes meanwhile should call test now and then.
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
  kRemote,       // another rank, the switch, or the network in between failed
  kTimeout,      // a deadline passed
  kNoMemory,     // memory, descriptors or another countable resource ran out
  kUnsupported,  // correct, but no switch can do it
  kInternal,     // a bug of this library
};

// The result of a call. True: the call succeeded.
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

// kMin and kMax are for integers only.
enum class Op : uint8_t { kSum, kMin, kMax };

// One allreduce: receive[i] = op over all ranks of their send[i]. `receive` is `send` (in place) or
// does not overlap it. No alignment is needed. An operation with a count of 0 is valid.
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
  // A switch in this process: real worker, real slot machine, no network. This rank's own data
  // stands in for the data of the other ranks, so a sum is ranks times that data.
  kDummy,
  // Through the switch, but numbers are not converted: their bytes are added as integers. A sum of
  // floats then has no meaning.
  kBypass,
  // Operations are complete at once, and `receive` is not written.
  kInstant,
};

// Exchanges data between the ranks. `own` has `bytes` of this rank. The function fills `all`, which
// has ranks times as many bytes, in the order of ranks, the same at all ranks. False: it failed.
// With MPI:
//     return MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm) == MPI_SUCCESS;
using AllGather = std::function<bool(const void* own, size_t bytes, void* all)>;

// A member that is empty or 0 takes its value from the environment (NCCL_SLIME_*, the settings of
// the NCCL plugin in docs/configuration.md), or the default.
struct Options {
  uint32_t rank = 0;   // below ranks
  uint32_t ranks = 1;  // 1 to 32
  // The ranks find each other by one of these two. With one rank neither is needed, with more ranks
  // exactly one.
  // host:port where rank 0 listens while it opens; at a name, on all addresses of its host, of IPv4
  // and IPv6. The other ranks try all addresses of the name.
  std::string rendezvous;
  AllGather all_gather;  // called once, from open

  // host:port of the control channel, or host:port*weight,... of several; NCCL_SLIME_SWITCH
  std::string switch_address;
  std::string key_file;          // the key of the switch; NCCL_SLIME_SWITCH_KEY_FILE
  std::string interfaces;        // NCCL_SLIME_IFNAME
  int device = 0;                // number of a device that slime-info lists
  uint32_t slots = 0;            // packets on the way; NCCL_SLIME_SWITCH_SLOTS
  double connect_timeout_s = 0;  // of open, and again of its rendezvous; NCCL_SLIME_CONNECT_TIMEOUT
  double switch_timeout_s = 0;   // silence of the switch; NCCL_SLIME_SWITCH_TIMEOUT
  double operation_timeout_s = 0;  // of an operation; NCCL_SLIME_REQUEST_TIMEOUT
  Mode mode = Mode::kNormal;       // kNormal: NCCL_SLIME_DEBUG_MODE (dummy, bypass, instant)
  // Any other setting by its full name, such as {"NCCL_SLIME_SWITCH_LANES", "64"}.
  std::map<std::string, std::string> settings;
};

// Counters of this rank since open. Packets are those between this rank and the switch.
struct Statistics {
  uint64_t operations = 0;       // started, including the first sum of open
  uint64_t bytes = 0;            // bytes of tensors in complete operations
  uint64_t sent = 0;             // packets, including those sent again
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
  bool without_switch = false;   // the ranks add up each other's data
  uint32_t switches = 1;         // named switches
  uint32_t lost_switches = 0;    // of these, at the moment
};

// An operation that was started. It is a plain value; the default one means no operation.
struct Request {
  uint64_t id = 0;
};

class Context {
 public:
  static constexpr uint32_t kMaxOutstanding = 64;

  // All ranks call it. It succeeds at all ranks or at none, after a first sum over the switch. It
  // waits at most twice the connect time-out, and 11 s for rank 0 and the switch (21 s if ranks
  // name leaves of a tree). The resolver's time for host names comes on top.
  static Outcome open(const Options& options, std::unique_ptr<Context>* context);
  // Waits up to a second until the other ranks close too. Operations under way are abandoned: their
  // buffers are not used any more. No other call may be under way.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Starts an operation and waits for it, at most `timeout_s` (0: the operation time-out). If
  // kMaxOutstanding operations are under way, it waits until one is done. A time-out after the
  // start ends the whole Context, because the other ranks cannot undo the operation. Buffers are
  // not used any more then.
  Outcome all_reduce(const Reduction& reduction, double timeout_s = 0);
  // Starts an operation. The caller must not use the buffers until the operation `*request` is
  // done. Operations may end in any order. kWouldBlock: nothing was started, because
  // kMaxOutstanding operations have been started since the oldest one that is not done.
  Outcome all_reduce_async(const Reduction& reduction, Request* request);
  // Moves packets, and says whether the operation is done. It never waits, and may be called again
  // for an operation that is done.
  Outcome test(const Request& request, bool* done);
  // kTimeout: the operation is not done within `timeout_s` (0: the operation time-out). It goes on;
  // call wait() again.
  Outcome wait(const Request& request, double timeout_s = 0);

  Statistics statistics() const;
  std::string statistics_json() const;  // one object, with the names of Statistics
  uint32_t rank() const;
  uint32_t ranks() const;

 private:
  class Impl;
  explicit Context(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// Sets the sink for lines of the log. A process has one sink. Any thread may call the sink, with
// one line at a time and without a line end. Until this is called, warnings go to stderr, and other
// lines are dropped; nullptr: all lines are dropped.
enum class LogLevel : uint8_t { kWarning, kInfo, kTrace };
using LogSink = void (*)(LogLevel level, const char* line);
void set_log(LogSink sink);

}  // namespace slime::aggregation
