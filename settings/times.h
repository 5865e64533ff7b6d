// How long anything waits, in nanoseconds, and how these times depend on each other. The settings
// bound what a user may want to change; the constants below are the rest. Pauses between two looks
// at the same thing, on which nothing else depends, stand where they are used.
//
// docs/architecture.md, "Deadlines", says which wait ends by which of them.
#pragma once

#include <cstdint>

namespace slime::times {

inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kSecond = 1'000'000'000;

// The settings that are times, each by the name of its field in Settings.
struct SettingRange {
  uint64_t usual_ns, least_ns, most_ns;
};
namespace setting {
constexpr uint64_t in_ns(double seconds) { return static_cast<uint64_t>(seconds * kSecond); }
#define SLIME_TIME_Bool(...)
#define SLIME_TIME_Int(...)
#define SLIME_TIME_Bytes(...)
#define SLIME_TIME_Text(...)
#define SLIME_TIME_Choice(...)
#define SLIME_TIME_Seconds(field, usual, least, most) \
  inline constexpr SettingRange field{in_ns(usual), in_ns(least), in_ns(most)};
#define SLIME_SETTING(type, field, name, value, least, most, ...) \
  SLIME_TIME_##type(field, value, least, most)
#include "settings/settings.def"
#undef SLIME_TIME_Bool
#undef SLIME_TIME_Int
#undef SLIME_TIME_Bytes
#undef SLIME_TIME_Text
#undef SLIME_TIME_Choice
#undef SLIME_TIME_Seconds
}  // namespace setting

// Rails -------------------------------------------------------------------------------------------

// Until a refused connection is tried again: of a tcp rail, of a comm's control connection.
inline constexpr uint64_t kRailRedial = 100 * kMillisecond;
inline constexpr uint64_t kCommRedial = 20 * kMillisecond;
// For a closed channel to hand its last bytes to the peer; in a process that ends, the second.
inline constexpr uint64_t kLinger = 2 * kSecond;
inline constexpr uint64_t kLastLinger = 200 * kMillisecond;
// For a fenced channel's works to come back from the NIC.
inline constexpr uint64_t kFenceDrain = 20 * kMillisecond;
// For the arrivals of a libfabric channel that has failed.
inline constexpr uint64_t kFailedChannelDrain = kSecond;

// Links -------------------------------------------------------------------------------------------

// For one try to get a dead rail back, and the least time between two tries.
inline constexpr uint64_t kRejoin = 5 * kSecond;
inline constexpr uint64_t kLeastRejoinPause = kSecond;
// After a longer time between two polls of a link the rates of its rails are measured anew.
inline constexpr uint64_t kPolledGap = 20 * kMillisecond;
// A sender that closes waits so many times NCCL_SLIME_RAIL_TIMEOUT for what rails still owe.
inline constexpr uint64_t kRailTimeoutsToClose = 3;

// CollNet: workers --------------------------------------------------------------------------------

// Set-up: for an answer of the switch's control channel, for the first sum over UDP, and for a rail
// to answer when another one has.
inline constexpr uint64_t kSwitchAnswer = 5 * kSecond;
inline constexpr uint64_t kTrialSum = 5 * kSecond;
inline constexpr uint64_t kOtherRails = kSecond;
// For all leaves of a tree to join, and for one question about that.
inline constexpr uint64_t kTreeSetup = 15 * kSecond;
inline constexpr uint64_t kTreeQuestion = 3 * kSecond;
// For an answer to a heartbeat; there are so many heartbeats in a lease, two of which may be lost.
inline constexpr uint64_t kHeartbeatAnswer = kSecond;
inline constexpr uint64_t kHeartbeatsPerLease = 3;
// From the first leaf's grant on a tree until all leaves have granted or refused.
inline constexpr uint64_t kAllLeavesAnswer = 2 * kSecond;
// For a switch that was lost: connecting, each question, and the longest pause between two tries.
inline constexpr uint64_t kReattachAnswer = 2 * kSecond;
inline constexpr uint64_t kLongestReattachPause = 60 * kSecond;
// A switch that was in use for so long is tried again at once when it is lost.
inline constexpr uint64_t kSteadySwitch = 60 * kSecond;
// For the other ranks at the end of a communicator, and until one that has gone fails operations.
inline constexpr uint64_t kOtherRanksAtEnd = kSecond;
// After the deadline of a rendezvous, for rank 0 to say which ranks are missing.
inline constexpr uint64_t kRendezvousAnswer = kSecond;

// CollNet: switches -------------------------------------------------------------------------------

// The largest jobs.tree_s: the root's wait for the leaves of a job.
inline constexpr uint64_t kLongestTreeWait = 10 * kSecond;
// A leaf waits so much longer than its root.
inline constexpr uint64_t kLeafMargin = 2 * kSecond;
// Between two generations of one job number.
inline constexpr uint64_t kJobNumberSpacing = 500 * kMillisecond;
inline constexpr uint64_t kGenerations = 256;
// For a refused client to read why.
inline constexpr uint64_t kRefusalLinger = kSecond;

// Relations ---------------------------------------------------------------------------------------

// The end of a process waits for less than the end of a channel does.
static_assert(kLastLinger < kLinger);
// A channel that is fenced, or has failed, is done before its rail counts as silent again.
static_assert(kFenceDrain < setting::rail_timeout.least_ns / 4);
static_assert(kFailedChannelDrain <= setting::rail_timeout.least_ns);
// Other rails take over before the peer's host, and long before a request, counts as dead.
static_assert(setting::rail_timeout.usual_ns < setting::peer_timeout.usual_ns);
static_assert(setting::peer_timeout.usual_ns < setting::request_timeout.usual_ns);
// A try to get a rail back ends before the next one may be due after the longest pause.
static_assert(kLeastRejoinPause < kRejoin && kRejoin < 60 * setting::rail_retry.usual_ns);
// A caller dials several times within the time that a listener gives a caller.
static_assert(4 * kRailRedial < setting::handshake_timeout.least_ns);
static_assert(setting::handshake_timeout.usual_ns < setting::connect_timeout.usual_ns);

// The root of a tree says which leaf is missing before its leaves give up, and these before the
// workers. A worker asks several times within its wait.
static_assert(kLongestTreeWait + kLeafMargin < kTreeSetup);
static_assert(kTreeQuestion > kLeafMargin && 3 * kTreeQuestion < kTreeSetup);
static_assert(kAllLeavesAnswer >= kLeafMargin);
// All of a communicator's set-up fits into the time that its ranks have.
static_assert(kSwitchAnswer + kTreeSetup + 2 * kTrialSum < setting::connect_timeout.usual_ns);
static_assert(kOtherRails < kTrialSum);
// A task of the housekeeper, which asks the switch, keeps others waiting for 2 s at most.
static_assert(kHeartbeatAnswer <= 2 * kSecond && kReattachAnswer <= 2 * kSecond);
// The ranks give the switch up for this round before the request fails.
static_assert(setting::switch_timeout.usual_ns < setting::request_timeout.usual_ns);
// A generation of a job number comes back after TCP's maximum segment lifetime, 120 s (RFC 9293,
// 3.4.1), by which the network has dropped old packets.
static_assert(kJobNumberSpacing * kGenerations > 120 * kSecond);

}  // namespace slime::times
