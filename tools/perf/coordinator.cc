#include "tools/perf/coordinator.h"

#include <poll.h>

#include <algorithm>

#include "base/clock.h"
#include "tools/common/resources.h"
#include "tools/perf/net_api.h"

namespace slime::perf {
namespace {

constexpr uint64_t kSecond = 1000000000;
constexpr uint64_t kTickMs = 100;
// A dead rank shows as a broken connection here and as a plugin's error elsewhere, and either may
// come first. The connection names the culprit, so a reported failure waits for it a little.
constexpr uint64_t kFailureGrace = kSecond;
constexpr uint64_t kLinger = 6 * kSecond;  // for the ranks to leave after a verdict
// A dead rank is known here at once. Plugins have to notice by themselves, and that they do so is
// worth seeing: the ranks go on for a little, until their plugin reports it or this time is over.
constexpr int kPluginGraceS = 3;
constexpr uint64_t kSilence = 5 * kSecond;  // heartbeats come once a second
constexpr uint64_t kAbsence = kSecond / 2;  // of this thread, which waits for kTickMs at most

uint64_t now_ns() { return SteadyClock::instance().now_ns(); }

// Ranks may resolve rank 0's name to different addresses, so all are listened on, except where
// the run is on this host only.
Result<Fd> open_listener(const Identity& identity) {
  if (identity.listen_fd >= 0) return Fd(identity.listen_fd);
  const bool local = identity.host == "127.0.0.1" || identity.host == "localhost";
  const bool ipv6 = identity.host.find(':') != std::string::npos;
  auto address = SocketAddress::parse(local ? "127.0.0.1" : ipv6 ? "::" : "0.0.0.0");
  if (!address) return fail(address.error());
  address->set_port(identity.port);
  auto listener = listen_on(*address);
  if (!listener) {
    listener.error().what += "; rank 0 must listen on port " + std::to_string(identity.port) +
                             identity.port_source + ": choose another by --rendezvous HOST:PORT";
  }
  return listener;
}

}  // namespace

nlohmann::json to_json(const Agreement& agreement) {
  return {{"token", agreement.token},
          {"size", agreement.size},
          {"version", agreement.version},
          {"arguments", agreement.arguments}};
}

std::string disagreement(const Agreement& wanted, const nlohmann::json& hello) {
  // Say nothing about this run to somebody who is not part of it.
  if (text_in(hello, "token") != wanted.token) return "you belong to another run (wrong token)";
  if (number_in(hello, "size", -1) != wanted.size) return "you expect another number of ranks";
  if (text_in(hello, "version") != wanted.version) {
    return "you are version " + text_in(hello, "version") + ", rank 0 is " + wanted.version;
  }
  if (text_in(hello, "arguments") != wanted.arguments) {
    return "your arguments differ: " + text_in(hello, "arguments") +
           "; rank 0's: " + wanted.arguments;
  }
  const int64_t rank = number_in(hello, "rank", -1);
  return rank < 0 || rank >= wanted.size ? "your rank is out of range" : "";
}

Result<std::unique_ptr<Coordinator>> Coordinator::start(const Identity& identity,
                                                        Agreement agreement, double timeout_s) {
  auto listener = open_listener(identity);
  if (!listener) return fail(listener.error());
  std::unique_ptr<Coordinator> coordinator(
      new Coordinator(std::move(*listener), std::move(agreement), timeout_s));
  auto thread =
      tools::start_thread("the coordinator's thread", [raw = coordinator.get()] { raw->run(); });
  if (!thread) return fail(thread.error());
  coordinator->thread_ = std::move(*thread);
  return coordinator;
}

Coordinator::Coordinator(Fd listener, Agreement agreement, double timeout_s)
    : port_(std::move(listener)),
      agreement_(std::move(agreement)),
      timeout_ns_(static_cast<uint64_t>(timeout_s * 1e9)),
      seats_(static_cast<size_t>(agreement_.size)) {
  started_ns_ = moved_ns_ = beat_ns_ = looked_ns_ = now_ns();
}

Coordinator::~Coordinator() {
  if (thread_.joinable()) thread_.join();
}

void Coordinator::run() {
  while (!all_left()) {
    wait_for_events();
    excuse_absence();
    for (Caller& caller : port_.look()) seat(std::move(caller));
    serve_seats();
    watch();
    if (judged_ns_ != 0 && now_ns() > judged_ns_ + kLinger) return;
  }
}

void Coordinator::wait_for_events() {
  std::vector<pollfd> fds;
  port_.add_to(&fds);
  const auto add = [&fds](const Wire& wire) {
    fds.push_back({wire.fd(), static_cast<short>(POLLIN | (wire.has_output() ? POLLOUT : 0)), 0});
  };
  for (const Seat& seat : seats_) {
    if (seat.wire) add(*seat.wire);
  }
  (void)poll(fds.data(), fds.size(), kTickMs);
}

// A thread that was held up has heard nobody meanwhile; that is no silence of theirs.
void Coordinator::excuse_absence() {
  const uint64_t now = now_ns(), away_ns = now - looked_ns_;
  looked_ns_ = now;
  if (away_ns < kAbsence) return;
  moved_ns_ = std::min(now, moved_ns_ + away_ns);
  for (Seat& seat : seats_) seat.heard_ns = std::min(now, seat.heard_ns + away_ns);
  port_.excuse(away_ns);
}

void Coordinator::seat(Caller caller) {
  const nlohmann::json& hello = caller.hello;
  std::string why = disagreement(agreement_, hello);
  const int64_t rank = number_in(hello, "rank", -1);
  if (why.empty() && judged_ns_ != 0) why = verdict_;
  if (why.empty() && seats_[static_cast<size_t>(rank)].wire != nullptr) {
    why = "rank " + std::to_string(rank) + " is here already";
  }
  if (!why.empty()) {
    caller.wire.queue(FrameType::kRefused, {{"text", why}});
    (void)caller.wire.flush();
    const bool ours = text_in(hello, "token") == agreement_.token;
    if (!ours) port_.note_stranger();
    // One of ours, started otherwise: it will not come back.
    if (ours && judged_ns_ == 0) {
      judge(
          static_cast<int>(rank),
          "rank " + std::to_string(rank) + " on " + text_in(hello, "host") + " was refused: " + why,
          true);
    }
    return;
  }
  Seat& seat = seats_[static_cast<size_t>(rank)];
  seat.wire = std::make_unique<Wire>(std::move(caller.wire));
  seat.wire->allow(kMaxFrameBytes);
  seat.host = text_in(hello, "host");
  seat.pid = number_in(hello, "pid", 0);
  seat.heard_ns = moved_ns_ = now_ns();
  if (++seated_ < seats_.size()) return;
  nlohmann::json ranks = nlohmann::json::array();
  for (const Seat& one : seats_) ranks.push_back({{"host", one.host}, {"pid", one.pid}});
  broadcast(FrameType::kWelcome, {{"ranks", ranks}});
}

void Coordinator::serve_seats() {
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    Seat& seat = seats_[rank];
    if (!seat.wire) continue;
    std::vector<Frame> frames;
    const bool alive = seat.wire->receive(&frames) && seat.wire->flush();
    for (const Frame& frame : frames) handle(rank, frame);
    if (alive) continue;
    if (!seat.left && judged_ns_ == 0) {
      judge(static_cast<int>(rank),
            describe(rank) + " is gone: " + seat.wire->why() + " (killed, or crashed)", false,
            kPluginGraceS);
    }
    seat.wire.reset();
    seat.left = true;
  }
}

void Coordinator::handle(size_t rank, const Frame& frame) {
  Seat& seat = seats_[rank];
  seat.heard_ns = now_ns();
  switch (frame.type) {
    case FrameType::kPart:
      return take_part(rank, frame.body);
    case FrameType::kHeartbeat: {
      const auto pulse = static_cast<uint64_t>(number_in(frame.body, "pulse", 0));
      if (pulse != seat.pulse) moved_ns_ = seat.heard_ns;
      seat.pulse = pulse;
      seat.where = text_in(frame.body, "where");
      return;
    }
    case FrameType::kFailure:
      return take_failure(rank, frame.body);
    case FrameType::kFarewell:
      seat.left = true;
      return;
    default:
      return judge(static_cast<int>(rank), describe(rank) + " sent a message out of order");
  }
}

// The first one counts, unless it only says that another rank has failed.
void Coordinator::take_failure(size_t rank, const nlohmann::json& body) {
  if (failure_ns_ != 0 && !is_consequence(failure_)) return;
  if (failure_ns_ == 0) failure_ns_ = now_ns();
  failed_rank_ = static_cast<int>(rank);
  failure_ = describe(rank) + ": " + text_in(body, "text");
  usage_failure_ = number_in(body, "usage", 0) != 0;
}

void Coordinator::take_part(size_t rank, const nlohmann::json& body) {
  Seat& seat = seats_[rank];
  const std::string label = text_in(body, "label");
  if (parts_ == 0) label_ = label;
  if (seat.has_part || seated_ < seats_.size() || label != label_ ||
      number_in(body, "number", -1) != static_cast<int64_t>(exchange_)) {
    return judge(static_cast<int>(rank), describe(rank) + " is at step '" + label +
                                             "' while others are at '" + label_ + "'");
  }
  seat.has_part = true;
  const auto data = body.find("data");
  seat.part = data != body.end() ? *data : nlohmann::json();
  moved_ns_ = now_ns();
  if (++parts_ == seats_.size()) complete_exchange();
}

void Coordinator::complete_exchange() {
  nlohmann::json parts = nlohmann::json::array();
  for (Seat& seat : seats_) {
    parts.push_back(std::move(seat.part));
    seat.part = nullptr;
    seat.has_part = false;
  }
  broadcast(FrameType::kWhole, {{"number", exchange_}, {"parts", std::move(parts)}});
  parts_ = 0;
  ++exchange_;
}

void Coordinator::watch() {
  const uint64_t now = now_ns();
  if (judged_ns_ != 0) return;
  if (failure_ns_ != 0 && now > failure_ns_ + kFailureGrace) {
    reported_ = true;
    return judge(failed_rank_, failure_, usage_failure_);
  }
  if (now > beat_ns_ + kSecond) {
    beat_ns_ = now;
    broadcast(FrameType::kHeartbeat, nlohmann::json::object());
  }
  if (now > moved_ns_ + timeout_ns_) blame_stall((now - moved_ns_) / kSecond);
}

void Coordinator::blame_stall(uint64_t idle_s) {
  const uint64_t now = now_ns();
  std::string missing, silent, others;
  int culprit = -1;
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    Seat& seat = seats_[rank];
    if (!seat.wire) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    } else if (now > seat.heard_ns + std::min(kSilence, timeout_ns_ * 6 / 10)) {
      seat.silent = true;
      culprit = static_cast<int>(rank);
      silent += (silent.empty() ? "" : ", ") + describe(rank);
    } else {
      others += "\n  " + describe(rank) + ": " + seat.where;
    }
  }
  const std::string idle = std::to_string(idle_s) + " s";
  if (seated_ < seats_.size()) {
    return judge(-1, "no rank joined for " + idle + "; missing: rank " + missing + " of " +
                         std::to_string(seats_.size()) + port_.summary_of_strangers());
  }
  if (!silent.empty()) {
    return judge(culprit, silent +
                              " has not been heard from (stopped, or its host is gone), and "
                              "nothing has moved for " +
                              idle + " (--timeout)");
  }
  judge(-1,
        "nothing has moved for " + idle + " (--timeout) although all ranks are alive:" + others);
}

void Coordinator::judge(int culprit, const std::string& text, bool usage, int grace_s) {
  if (judged_ns_ != 0) return;
  judged_ns_ = now_ns();
  verdict_ = text;
  broadcast(FrameType::kVerdict, {{"culprit", culprit},
                                  {"text", text},
                                  {"usage", usage ? 1 : 0},
                                  {"grace_s", grace_s},
                                  {"reported", reported_ ? 1 : 0}});
}

void Coordinator::broadcast(FrameType type, const nlohmann::json& body) {
  for (Seat& seat : seats_) {
    if (!seat.wire) continue;
    seat.wire->queue(type, body);
    (void)seat.wire->flush();  // a broken connection shows at the next receive
  }
}

std::string Coordinator::describe(size_t rank) const {
  const Seat& seat = seats_[rank];
  return "rank " + std::to_string(rank) + " (process " + std::to_string(seat.pid) + " on " +
         seat.host + ")";
}

// After a verdict nobody else is waited for, and no rank that does not answer.
bool Coordinator::all_left() const {
  if (judged_ns_ == 0 && seated_ < seats_.size()) return false;
  return std::all_of(seats_.begin(), seats_.end(), [this](const Seat& seat) {
    return judged_ns_ == 0 ? seat.left : seat.wire == nullptr || seat.silent;
  });
}

}  // namespace slime::perf
