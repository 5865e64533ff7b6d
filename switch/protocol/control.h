// The control channel between workers, operators and a switch: TCP, a request at a time.
//
//   client                                switch
//     | Hello {nonce, tenant}  -->          |     not signed
//     |          <--  Challenge {nonce}     |     not signed
//     | request 1, 2, 3 ...    -->          |     signed with the tenant's key, or the operators'
//     |                  <--  answer 1 ...  |     signed, same sequence number
//
// This file has the messages, codec.h their bytes, frames.h signatures, client.h the client.
// Nothing is encrypted: an attacker who can read this channel gets the tokens of its jobs, as does
// one who can read their packets (switch/protocol/sap.h).
//
// Thread rules: pure functions.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/hmac.h"
#include "base/net/socket.h"
#include "base/random.h"
#include "switch/protocol/sap.h"

namespace slime::control {

inline constexpr uint32_t kMagic = 0x434d4c53;  // "SLMC" on the wire
inline constexpr uint8_t kVersion = 5;
// Below Linux's ephemeral ports (32768 to 60999), which any program may hold for a while.
inline constexpr uint16_t kDefaultPort = 28900;
inline constexpr uint16_t kDefaultDataPort = 28880;  // of shard 0
inline constexpr size_t kHeaderBytes = 16;
inline constexpr size_t kMacBytes = sizeof(Mac);
inline constexpr size_t kMaxRequestBytes = 8192;     // payload: 32 children of 8 rails and the rest
inline constexpr size_t kMaxAnswerBytes = 17 << 16;  // payload: a report
inline constexpr size_t kMaxTenantBytes = 32;
inline constexpr size_t kMaxReasonBytes = 512;
inline constexpr uint32_t kMaxShares = 8;  // switches that share the operations of one session
// Jobs of a tree have one number at all its switches. Only roots allot these, so no switch below
// one can have given such a number to a job of its own.
inline constexpr uint16_t kFirstTreeJob = 0x8000;

struct Hello {
  Nonce nonce{};
  std::string tenant = {};  // whose key will sign; empty: the operators'
};
struct Challenge {
  Nonce nonce{};
  bool key_wanted = false;
};

// Names a job. Its number and generation are used again for later jobs; `id` is not, so a late
// worker never names the job of another. It has 128 random bits: only members of the job can name
// it.
using JobId = Nonce;
struct JobRef {
  JobId id{};
  uint16_t job = 0;
  uint8_t generation = 0;
  bool operator==(const JobRef&) const = default;
};

// The switch grants at most what is wanted and at least `least`, or refuses.
struct CreateJob {
  std::string tenant;  // letters, digits, '.', '_', '-'
  uint32_t slots_wanted = 0, slots_least = 1;
  uint32_t lanes_wanted = 0, lanes_least = 1;  // 32-bit words per packet
  // A bit each, as in sap::kKnownFormats. The switch grants all that are wanted and that it has.
  uint32_t formats_wanted = 0, formats_least = 0;
  // Where each contributes from: UDP; rail by rail, all children on the first and so on.
  std::vector<SocketAddress> children;
  uint32_t rails = 1;  // local addresses of each child: rail r carries the slots of sap::rail_of
  // Where the workers use several switches, each switch takes a share of every operation. The jobs
  // of one communicator have the same `session`, a random number, for reports to operators.
  uint64_t session = 0;
  uint32_t shares = 1, share = 0;
};
// A part of a job on a tree of two levels: what all workers of one leaf ask their leaf for, and
// each leaf its root. To be repeated until the answer is no TreeWait; what is repeated changes
// nothing.
struct JoinTree {
  uint64_t tree = 0;                  // the same for all parts; drawn at random
  uint32_t contributors = 0;          // workers below all leaves
  uint32_t workers = 0;               // below this one
  uint32_t branches = 0, branch = 0;  // leaves, and which this is
  uint32_t shards = 0;                // of the leaf that asks its root; 0: workers ask their leaf
  CreateJob part;                     // children: the workers; or the leaf, its shard 0
};
struct Heartbeat {
  JobRef job;
};
struct CloseJob {
  JobRef job;
};
// A worker names the generation that it has seen: of many workers that ask at once, only the first
// changes anything. An operator names a number only.
struct Fence {
  JobRef job;
  bool by_operator = false;
};
struct Report {
  bool counters = false;  // of each job: asks every shard
};
struct Drain {
  bool on = false;
};

struct JobGrant {
  JobRef job;
  uint32_t token = 0;     // in every packet of this generation
  SocketAddress address;  // of shard 0; shard i has the i-th port from there
  uint32_t shards = 1;
  uint32_t slots = 0;
  uint32_t lanes = 0;
  uint32_t formats = 0;   // that it adds up for this job: a bit each
  uint32_t lease_ms = 0;  // the job ends after this time without a heartbeat
};
enum class State : uint8_t { kAlive, kGone, kFenced };  // kFenced: goes on in `generation`
struct JobState {
  State state = State::kGone;
  uint8_t generation = 0;
};
// "10.0.0.1:28880-28883": shard i has the i-th port from that of shard 0.
std::string shard_range(const SocketAddress& first, uint32_t shards);
const char* name_of(sap::Format format);    // "i32"
std::string format_list(uint32_t formats);  // a bit each: "i32, u32"; "none"
struct TreeWait {
  uint32_t missing = 0;  // leaves that the root waits for: a bit each
};
std::string branch_list(uint32_t bits);  // "1, 3"
struct Done {};
struct Text {
  std::string text;  // JSON
};
enum class Refusal : uint16_t {
  kMalformed = 1,  // not understood; the connection ends
  kUnauthorized,   // a wrong key, or none; the connection ends
  kSequence,       // replayed or lost; the connection ends
  kFull,           // too many connections
  kDraining,
  kQuota,   // of the tenant
  kMemory,  // of the switch
  kShape,   // children, lanes or formats that cannot be
  kNoJob,
  kBusy,       // try again in a moment
  kInternal,   // the switch failed to do it
  kForbidden,  // another tenant's, or for operators
};
struct Refused {
  Refusal why = Refusal::kInternal;
  std::string text;
};

// In the order of Type.
using Message = std::variant<Hello, Challenge, CreateJob, Heartbeat, CloseJob, Fence, Report, Drain,
                             JobGrant, JobState, Done, Text, Refused, JoinTree, TreeWait>;
// Index in Message, plus one: zeros are no frame.
enum class Type : uint8_t {
  kHello = 1,
  kChallenge,
  kCreateJob,
  kHeartbeat,
  kCloseJob,
  kFence,
  kReport,
  kDrain,
  kJobGrant,
  kJobState,
  kDone,
  kText,
  kRefused,
  kJoinTree,
  kTreeWait,
};

const char* name_of(Type type);       // "create a job", as in "asked to ..."
const char* name_of(Refusal reason);  // "quota"
constexpr bool is_request(Type type) {
  return (type >= Type::kCreateJob && type <= Type::kDrain) || type == Type::kJoinTree;
}
inline Type type_of(const Message& message) { return static_cast<Type>(message.index() + 1); }
bool is_tenant_name(std::string_view name);

}  // namespace slime::control
