// The limits of all waits, in nanoseconds, and their relations. Settings have the limits that a
// user may want to change; the constants below are the others. A pause between two polls on which
// no other time depends stands where it is used.
//
// docs/architecture.md, "Deadlines", says which limit ends which wait.
#pragma once

#include <algorithm>
#include <cstdint>

namespace slime::times {

inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kSecond = 1'000'000'000;

// The settings that are times. Each has the name of its field in Settings.
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

// Connections that are set up ---------------------------------------------------------------------

// The first wait for a greeting, which a peer sends at once: then another connection is tried, with
// twice the time. Something on the path may have forgotten this one.
inline constexpr uint64_t kGreetingTry = 4 * kSecond;

// Rails -------------------------------------------------------------------------------------------

// The pause before a connection that was refused or has broken is tried again: of a tcp rail, a
// comm's control connection, a lifeline.
inline constexpr uint64_t kRailRedial = 100 * kMillisecond;
inline constexpr uint64_t kCommRedial = 20 * kMillisecond;
inline constexpr uint64_t kSwitchRedial = 20 * kMillisecond;
// Limits the time in which a closed channel hands its last bytes to the peer. The second one is for
// a process that ends.
inline constexpr uint64_t kLinger = 2 * kSecond;
inline constexpr uint64_t kLastLinger = 200 * kMillisecond;
// Limits the wait until the works of a channel that is fenced, or that the peer has closed, have
// come back from the NIC.
inline constexpr uint64_t kFenceDrain = 20 * kMillisecond;
// Limits the wait for the arrivals of a libfabric channel that has failed.
inline constexpr uint64_t kFailedChannelDrain = kSecond;

// Links -------------------------------------------------------------------------------------------

// Limits one try to bring a dead rail back; and the least time between two tries.
inline constexpr uint64_t kRejoin = 5 * kSecond;
inline constexpr uint64_t kLeastRejoinPause = kSecond;
// A rail whose life ended although it was sound has this time to return, before that is warned of.
inline constexpr uint64_t kLastingOutage = 5 * kSecond;
// A lifeline is closed when frames are under way and the peer takes none for so long, and a dialed
// one when the listener does not answer for so long. The active end dials again while no rail is
// up; the passive one closes a connection that it does not need and on which nothing comes for so
// long.
inline constexpr uint64_t kLifelineSilence = 4 * kSecond;
// A link without a rail warns of that when none has returned for so long.
inline constexpr uint64_t kLifelineWarning = kSecond;
// Limits the time that the other channels of a link have to connect after the first one has. Later
// ones join the link.
inline constexpr uint64_t kOtherChannels = 1800 * kMillisecond;
// One try to connect from a socket that is bound to an interface: enough for one lost SYN, which is
// repeated after a second. And how long a rail whose bound socket was not answered makes no other.
inline constexpr uint64_t kBoundTry = 1100 * kMillisecond;
inline constexpr uint64_t kUnboundRail = 60 * kSecond;
// If a link is not polled for longer than this, the measurement of its rails' rates begins anew.
inline constexpr uint64_t kPolledGap = 20 * kMillisecond;
// A sender that closes waits so many times NCCL_SLIME_RAIL_TIMEOUT for missing confirmations.
inline constexpr uint64_t kRailTimeoutsToClose = 3;

// CollNet: workers --------------------------------------------------------------------------------

// Limits of the set-up: an answer of the switch's control channel, the first sum over UDP, and the
// answer of a rail after another rail has answered.
inline constexpr uint64_t kSwitchAnswer = 5 * kSecond;
inline constexpr uint64_t kTrialSum = 5 * kSecond;
inline constexpr uint64_t kOtherRails = kSecond;
// Limits the time in which all leaves of a tree join, and one question about that.
inline constexpr uint64_t kTreeSetup = 15 * kSecond;
inline constexpr uint64_t kTreeQuestion = 3 * kSecond;
// Limits the wait for the answer to a heartbeat. A lease has so many heartbeats; two of them may be
// lost.
inline constexpr uint64_t kHeartbeatAnswer = kSecond;
inline constexpr uint64_t kHeartbeatsPerLease = 3;
// The pause between two heartbeats, whatever lease a switch names: one that names a millisecond
// gets no more than ten heartbeats a second.
inline constexpr uint64_t kLeastHeartbeatPause = 100 * kMillisecond;
inline constexpr uint64_t kLongestHeartbeatPause = 1200 * kSecond;  // of the longest jobs.lease_s
constexpr uint64_t heartbeat_pause(uint64_t lease_ns) {
  return std::clamp(lease_ns / kHeartbeatsPerLease, kLeastHeartbeatPause, kLongestHeartbeatPause);
}
// From the first leaf's grant on a tree until all leaves have granted or refused.
inline constexpr uint64_t kAllLeavesAnswer = 2 * kSecond;
// For a switch that was lost: the limit of connecting and of each question, and the longest pause
// between two tries.
inline constexpr uint64_t kReattachAnswer = 2 * kSecond;
inline constexpr uint64_t kLongestReattachPause = 60 * kSecond;
// A switch that was in use for so long is tried again at once when it is lost.
inline constexpr uint64_t kSteadySwitch = 60 * kSecond;
// Limits the wait for the other ranks at the end of a communicator, and the time from which a rank
// that has gone fails operations.
inline constexpr uint64_t kOtherRanksAtEnd = kSecond;

// Runs of ranks (rendezvous/) ---------------------------------------------------------------------

// After the deadline of a rendezvous, ranks wait so long for rank 0 to name the missing ranks.
inline constexpr uint64_t kRendezvousAnswer = kSecond;
// Limits the wait for the hello of slime-perf's callers at rank 0. aggregation/ takes
// NCCL_SLIME_HANDSHAKE_TIMEOUT instead.
inline constexpr uint64_t kRunHello = 10 * kSecond;
// Rank 0 of slime-perf reports a time-out first: the other ranks wait so much longer.
inline constexpr uint64_t kRunMargin = 10 * kSecond;
// A rank without a heartbeat for so long, which come once a second, counts as stopped.
inline constexpr uint64_t kRankSilence = 5 * kSecond;
// After the failure of a rank: for the plugins of the others to notice it by themselves, for the
// ranks to leave, and until the launcher ends those that have not.
inline constexpr uint64_t kPluginReport = 3 * kSecond;
inline constexpr uint64_t kRunLinger = 6 * kSecond;
inline constexpr uint64_t kRunFailure = 12 * kSecond;
// After a rank has reported a failure, rank 0 waits so long for a connection that breaks: that
// shows which rank failed first.
inline constexpr uint64_t kFailureReport = kSecond;
// A rank that has failed waits so long for rank 0's verdict on the run.
inline constexpr uint64_t kRunVerdict = 5 * kSecond;
// From a signal to the launcher until it kills the ranks that are still there.
inline constexpr uint64_t kRunSignal = 3 * kSecond;
// After a failure a plugin may hang in its close calls: slime-perf ends all the same.
inline constexpr uint64_t kPluginClose = 5 * kSecond;

// CollNet: switches -------------------------------------------------------------------------------

// The largest jobs.tree_s: the root's wait for the leaves of a job.
inline constexpr uint64_t kLongestTreeWait = 10 * kSecond;
// A leaf waits so much longer than its root.
inline constexpr uint64_t kLeafMargin = 2 * kSecond;
// The least time between two generations of one job number.
inline constexpr uint64_t kJobNumberSpacing = 500 * kMillisecond;
inline constexpr uint64_t kGenerations = 256;
// The time in which a refused client can read the reason.
inline constexpr uint64_t kRefusalLinger = kSecond;
// The control channel: from a connection to its first request that counts, from the first byte of a
// request or an answer to its last, and between two requests (or two leases, if that is more).
inline constexpr uint64_t kControlGreeting = 5 * kSecond;
inline constexpr uint64_t kControlRequest = 5 * kSecond;
inline constexpr uint64_t kControlIdle = 120 * kSecond;
// A leaf's connection to its parent: to connect, and of a question; without a question.
inline constexpr uint64_t kUplinkAnswer = 3 * kSecond;
inline constexpr uint64_t kUplinkIdle = 5 * kSecond;
// The controller's wait for a thread of the switch to take a command; a thread that is later does
// not get a processor.
inline constexpr uint64_t kShardCommand = 5 * kSecond;
// A call of a P4 switch's driver.
inline constexpr uint64_t kP4Call = 2 * kSecond;
// A connection to the metrics without traffic.
inline constexpr uint64_t kMetricsSilence = 5 * kSecond;

// The plugin and slime-info -----------------------------------------------------------------------

// If the reader of a FIFO in NCCL_SLIME_STATS does not read for so long, the report is lost: NCCL
// waits for the call that writes it.
inline constexpr uint64_t kStatsReader = kSecond;
// slime-info asks plugins and NCCL in child processes: to load a library (libnccl has hundreds of
// megabytes, maybe over a network), to answer, and to end.
inline constexpr uint64_t kLibraryLoad = 20 * kSecond;
inline constexpr uint64_t kPluginAnswer = 30 * kSecond;
inline constexpr uint64_t kChildEnd = kSecond;

// Relations ---------------------------------------------------------------------------------------

// The end of a process waits for a shorter time than the end of a channel.
static_assert(kLastLinger < kLinger);
// The end of a fenced or failed channel is complete before its rail can count as silent again.
static_assert(kFenceDrain < setting::rail_timeout.least_ns / 4);
static_assert(kFailedChannelDrain <= setting::rail_timeout.least_ns);
// A silent rail fails before the peer's host counts as dead, and that long before a request fails.
static_assert(setting::rail_timeout.usual_ns < setting::peer_timeout.usual_ns);
static_assert(setting::peer_timeout.usual_ns < setting::request_timeout.usual_ns);
// A try to bring a rail back ends before the next one may be due after the longest pause.
static_assert(kLeastRejoinPause < kRejoin && kRejoin < 60 * setting::rail_retry.usual_ns);
// A rail that nobody answers by its interface connects by another one in time.
static_assert(kBoundTry + kRailRedial + kSecond / 2 < kOtherChannels);
// A caller dials several times within the time that a listener gives a caller.
static_assert(4 * kRailRedial < setting::handshake_timeout.least_ns);
static_assert(setting::handshake_timeout.usual_ns < setting::connect_timeout.usual_ns);

// The root of a tree names the missing leaf before its leaves give up, and the leaves give up
// before the workers. A worker asks several times during its wait.
static_assert(kLongestTreeWait + kLeafMargin < kTreeSetup);
static_assert(kTreeQuestion > kLeafMargin && 3 * kTreeQuestion < kTreeSetup);
static_assert(kAllLeavesAnswer >= kLeafMargin);
// The whole set-up of a communicator fits into the time that its ranks have.
static_assert(kSwitchAnswer + kTreeSetup + 3 * kTrialSum < setting::connect_timeout.usual_ns);
static_assert(kOtherRails < kTrialSum);
// A leaf's question to its parent ends before the worker's question to the leaf counts as lost, and
// the switch waits for a client for as long as that client waits for the switch.
static_assert(kUplinkAnswer < kSwitchAnswer && kSwitchAnswer <= kControlRequest);
// A task of the housekeeper waits for a switch for 2 s at most, because other tasks wait for it. A
// heartbeat may wait for two answers: it connects again where its connection has broken.
static_assert(2 * kHeartbeatAnswer <= 2 * kSecond && kReattachAnswer <= 2 * kSecond);
// The ranks go on without a silent switch before the request fails.
static_assert(setting::switch_timeout.usual_ns < setting::request_timeout.usual_ns);
// A run ends in order: plugins report, ranks leave, the launcher ends the rest.
static_assert(kPluginReport < kRunLinger && kPluginReport + kRunLinger < kRunFailure);
// Rank 0 decides before a rank that has failed stops waiting for its verdict.
static_assert(kFailureReport + kPluginReport < kRunVerdict);
// A generation of a job number comes back after TCP's maximum segment lifetime, 120 s (RFC 9293,
// 3.4.1), by which the network has dropped old packets.
static_assert(kJobNumberSpacing * kGenerations > 120 * kSecond);

}  // namespace slime::times
