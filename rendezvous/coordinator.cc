#include "rendezvous/coordinator.h"

#include <poll.h>

#include <algorithm>

#include "base/clock.h"
#include "base/net/host.h"
#include "base/process.h"
#include "base/text.h"
#include "rendezvous/rendezvous.h"
#include "settings/times.h"

namespace slime::rendezvous {
namespace {

using times::kSecond;

constexpr uint64_t kTickMs = 100;
constexpr size_t kMostWhere = 128;  // of what a rank says it is doing
// slime-perf shows whether a plugin notices a dead peer. So the ranks continue until their plugin
// reports an error, or until this time is over.
constexpr int kPluginGraceS = times::kPluginReport / kSecond;
constexpr uint64_t kPause = kSecond / 2;  // of this thread, which waits for kTickMs at most

// Ranks may resolve rank 0's name to different addresses, so all are listened on, except where
// the run is on this host only.
Result<Fd> open_listener(const Identity& identity) {
  if (identity.listen_fd >= 0) return Fd(identity.listen_fd);
  const HostPort host{identity.host, identity.port};
  const auto literal = SocketAddress::parse(identity.host);
  const bool local = literal ? literal->is_loopback() : identity.host == "localhost";
  auto listener = local ? listen_at(host, "rank 0's host") : listen_on_all(identity.port);
  if (!listener) {
    listener.error().what += "; rank 0 must listen on port " + std::to_string(identity.port) +
                             identity.port_source + ": choose another by --rendezvous HOST:PORT";
  }
  return listener;
}

// Empty: they agree. Otherwise the sentence for the refused rank.
std::string disagreement(const Agreement& wanted, const nlohmann::json& hello, uint32_t size) {
  // Say nothing about this run to a process that is not part of it.
  if (text_in(hello, "token") != wanted.token) return "you belong to another run (wrong token)";
  if (size != static_cast<uint32_t>(wanted.size)) return "you expect another number of ranks";
  if (text_in(hello, "version") != wanted.version) {
    return "you are version " + displayed(text_in(hello, "version")) + ", rank 0 is " +
           wanted.version;
  }
  if (text_in(hello, "arguments") == wanted.arguments) return "";
  return "your arguments differ: " + displayed(text_in(hello, "arguments")) +
         "; rank 0's: " + wanted.arguments;
}

nlohmann::json parse(const std::string& text) {
  return parse_json<nlohmann::json>(text, "", {}).value_or(nullptr);  // invalid: nothing is in it
}

}  // namespace

nlohmann::json hello_of(const Agreement& agreement) {
  return {{"token", agreement.token},
          {"version", agreement.version},
          {"arguments", agreement.arguments}};
}

Result<std::unique_ptr<Coordinator>> Coordinator::start(const Identity& identity,
                                                        Agreement agreement, double timeout_s) {
  auto listener = open_listener(identity);
  if (!listener) return fail(listener.error());
  std::unique_ptr<Coordinator> coordinator(new Coordinator(std::move(agreement), timeout_s));
  auto run = [raw = coordinator.get(), fd = std::make_shared<Fd>(std::move(*listener))] {
    raw->run(std::move(*fd));
  };
  auto thread = start_thread("the coordinator's thread", std::move(run));
  if (!thread) return fail(thread.error());
  coordinator->thread_ = std::move(*thread);
  return coordinator;
}

Coordinator::Coordinator(Agreement agreement, double timeout_s)
    : agreement_(std::move(agreement)),
      timeout_ns_(static_cast<uint64_t>(timeout_s * 1e9)),
      ranks_(static_cast<size_t>(agreement_.size)) {}

Coordinator::~Coordinator() {
  if (thread_.joinable()) thread_.join();
}

void Coordinator::run(Fd listener) {
  if (!gather(std::move(listener))) return;  // the ranks that had come have the reason
  moved_ns_ = beat_ns_ = looked_ns_ = steady_now_ns();
  for (Rank& rank : ranks_) rank.heard_ns = moved_ns_;
  while (!all_left()) {
    wait_for_events();
    excuse_pause();
    serve_ranks();
    watch();
    if (is_over() && steady_now_ns() > verdict_.at_ns + times::kRunLinger) return;
  }
}

// Gathers the ranks; all of them get the host and the process of each. A rank with another command
// line, or one that has ended, does not come again, so the gathering fails at once (is_rank).
Result<void> Coordinator::gather(Fd listener) {
  const auto address = local_address(listener);
  const Terms terms{.where = address ? address->to_string() : "?",
                    .ranks = static_cast<uint32_t>(agreement_.size),
                    .limit_ns = timeout_ns_};
  const auto judge = [this](const Claim& claim) -> Result<std::string> {
    const nlohmann::json hello = parse(claim.blob);
    const std::string why = disagreement(agreement_, hello, claim.ranks);
    if (!why.empty()) return fail(Error{Status::kConfig, 0, why});
    return nlohmann::json{{"host", displayed(text_in(hello, "host"))},
                          {"pid", number_in(hello, "pid", 0)}}
        .dump();
  };
  const auto is_rank = [this](const Claim& claim) {
    return text_in(parse(claim.blob), "token") == agreement_.token;
  };
  auto gathered = host_group(terms, std::move(listener), {.judge = judge, .is_rank = is_rank});
  if (!gathered) return fail(std::move(gathered.error()));
  for (size_t number = 0; number < ranks_.size(); ++number) {
    const nlohmann::json at = parse(gathered->blobs[number]);
    ranks_[number].connection = std::make_unique<Connection>(
        std::move(gathered->connections[number]), part_limits(ranks_.size()));
    ranks_[number].name = "rank " + std::to_string(number) + " (process " +
                          std::to_string(number_in(at, "pid", 0)) + " on " + text_in(at, "host") +
                          ")";
  }
  return {};
}

void Coordinator::wait_for_events() const {
  std::vector<pollfd> fds;
  for (const Rank& rank : ranks_) {
    if (!rank.connection) continue;
    const int events = POLLIN | (rank.connection->has_output() ? POLLOUT : 0);
    fds.push_back({rank.connection->fd(), static_cast<short>(events), 0});
  }
  (void)poll(fds.data(), fds.size(), kTickMs);
}

// A pause of this thread does not count as silence of the ranks: nothing was read in it.
void Coordinator::excuse_pause() {
  const uint64_t now = steady_now_ns(), away_ns = now - looked_ns_;
  looked_ns_ = now;
  if (away_ns < kPause) return;
  moved_ns_ = std::min(now, moved_ns_ + away_ns);
  for (Rank& rank : ranks_) rank.heard_ns = std::min(now, rank.heard_ns + away_ns);
}

void Coordinator::serve_ranks() {
  for (size_t number = 0; number < ranks_.size(); ++number) {
    Rank& rank = ranks_[number];
    if (!rank.connection) continue;
    std::vector<Frame> frames;
    const bool alive = rank.connection->receive(&frames) && rank.connection->flush();
    for (const Frame& frame : frames) handle(number, frame);
    if (alive) continue;
    if (!rank.left) {
      decide({.text = rank.name + " is gone: " + rank.connection->why() + " (killed, or crashed)",
              .grace_s = kPluginGraceS});
    }
    rank.connection.reset();
    rank.left = true;
  }
}

void Coordinator::handle(size_t number, const Frame& frame) {
  Rank& rank = ranks_[number];
  rank.heard_ns = steady_now_ns();
  switch (frame.type) {
    case FrameType::kPart:
      return take_part(number, frame.body);
    case FrameType::kHeartbeat: {
      const auto beats = static_cast<uint64_t>(number_in(frame.body, "beats", 0));
      if (beats != rank.beats) moved_ns_ = rank.heard_ns;
      rank.beats = beats;
      rank.where = displayed(text_in(frame.body, "where"), kMostWhere);
      return;
    }
    case FrameType::kFailure:
      return take_failure(number, frame.body);
    case FrameType::kFarewell:
      rank.left = true;
      return;
    default:
      return decide({.text = rank.name + " sent a message out of order"});
  }
}

// The first report counts, unless it is only about the failure of another rank.
void Coordinator::take_failure(size_t number, const nlohmann::json& body) {
  const bool is_first = reported_.at_ns == 0;
  if (!is_first && !is_consequence(reported_.text)) return;
  reported_ = {.text = ranks_[number].name + ": " + displayed(text_in(body, "text")),
               .usage = number_in(body, "usage", 0) != 0,
               .reported = true,
               .at_ns = is_first ? steady_now_ns() : reported_.at_ns};
}

void Coordinator::take_part(size_t number, const nlohmann::json& body) {
  Rank& rank = ranks_[number];
  const std::string label = displayed(text_in(body, "label"), kMostWhere);
  if (exchange_.parts == 0) exchange_.label = label;
  if (rank.part || label != exchange_.label ||
      number_in(body, "number", -1) != static_cast<int64_t>(exchange_.number)) {
    return decide({.text = rank.name + " is at step '" + label + "' while others are at '" +
                           exchange_.label + "'"});
  }
  const auto data = body.find("data");
  rank.part = data != body.end() ? *data : nlohmann::json();
  moved_ns_ = steady_now_ns();
  if (++exchange_.parts == ranks_.size()) complete_exchange();
}

void Coordinator::complete_exchange() {
  nlohmann::json parts = nlohmann::json::array();
  for (Rank& rank : ranks_) {
    parts.push_back(std::move(*rank.part));
    rank.part.reset();
  }
  broadcast(FrameType::kWhole, {{"number", exchange_.number}, {"parts", std::move(parts)}});
  exchange_.parts = 0;
  ++exchange_.number;
}

void Coordinator::watch() {
  const uint64_t now = steady_now_ns();
  if (is_over()) return;
  // A dead rank shows as a broken connection here and as a plugin's error elsewhere, and either may
  // come first. The connection names the culprit, so a reported failure waits for it.
  if (reported_.at_ns != 0 && now > reported_.at_ns + times::kFailureReport) {
    return decide(reported_);
  }
  if (now > beat_ns_ + kSecond) {
    beat_ns_ = now;
    broadcast(FrameType::kHeartbeat, nlohmann::json::object());
  }
  if (now > moved_ns_ + timeout_ns_) blame_stall((now - moved_ns_) / kSecond);
}

void Coordinator::blame_stall(uint64_t idle_s) {
  const uint64_t now = steady_now_ns();
  std::string silent, others;
  for (Rank& rank : ranks_) {
    if (!rank.connection) continue;
    if (now > rank.heard_ns + std::min(times::kRankSilence, timeout_ns_ * 6 / 10)) {
      rank.silent = true;
      silent += (silent.empty() ? "" : ", ") + rank.name;
    } else {
      others += "\n  " + rank.name + ": " + rank.where;
    }
  }
  const std::string idle = std::to_string(idle_s) + " s";
  if (silent.empty()) {
    return decide({.text = "nothing has moved for " + idle +
                           " (--timeout) although all ranks are alive:" + others});
  }
  decide({.text = silent +
                  " has not been heard from (stopped, or its host is gone), and nothing has moved "
                  "for " +
                  idle + " (--timeout)"});
}

void Coordinator::decide(Verdict verdict) {
  if (is_over()) return;
  verdict_ = std::move(verdict);
  verdict_.at_ns = steady_now_ns();
  broadcast(FrameType::kVerdict, {{"text", verdict_.text},
                                  {"usage", verdict_.usage ? 1 : 0},
                                  {"grace_s", verdict_.grace_s},
                                  {"reported", verdict_.reported ? 1 : 0}});
}

void Coordinator::broadcast(FrameType type, const nlohmann::json& body) {
  for (Rank& rank : ranks_) {
    if (!rank.connection) continue;
    rank.connection->queue(type, body);
    (void)rank.connection->flush();  // a broken connection shows at the next receive
  }
}

// Before a verdict all ranks must have left. After it, a rank counts as gone when its connection
// has ended, or when it was silent already.
bool Coordinator::all_left() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [this](const Rank& rank) {
    return is_over() ? rank.connection == nullptr || rank.silent : rank.left;
  });
}

}  // namespace slime::rendezvous
