#include "link/lifeline/lifeline.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "settings/times.h"

namespace slime {

void Lifeline::begin_need(uint64_t now_ns) {
  SLIME_CHECK(enabled());
  if (std::exchange(needed_, true)) return;
  needed_since_ns_ = now_ns;
  warned_ = false;
  broke_because_.clear();
}

// A rail that is sound returns sooner (LinkRail::is_sound).
void Lifeline::warn_once() {
  if (std::exchange(warned_, true)) return;
  SLIME_WARN("peer %s, device %s: no rail is up; the link waits for one for %.0f s at most",
             context_.peer.c_str(), context_.device_name(), static_cast<double>(limit_ns_) * 1e-9);
}

// A dial that is under way has no use any more.
void Lifeline::end_need() {
  if (std::exchange(needed_, false) && !open() && dialer_ != nullptr) dialer_->stop();
}

void Lifeline::take(std::unique_ptr<LifelineStream> stream, uint64_t now_ns) {
  close();
  stream_ = std::move(stream);
  begin_connection(now_ns);
}

void Lifeline::begin_connection(uint64_t now_ns) {
  broke_because_.clear();
  peer_took_ = taken_ = told_ = 0;
  came_ns_ = asked_ns_ = heard_ns_ = now_ns;
}

void Lifeline::close() {
  stream_.reset();
  for (const UnderWay& work : std::exchange(under_way_, {})) {
    if (work.owner != nullptr) work.owner->on_lost(work.part);
  }
}

void Lifeline::break_off(const Error& why) {
  broke_because_ = why.what;
  close();
}

void Lifeline::send(const ControlWork& control) {
  const OutboxPiece& piece = control.piece;
  SLIME_CHECK(open() && piece.bytes <= LifelineHeader::kMostBytes);
  if (under_way_.size() >= kMostUnderWay) {
    (void)context_.fail_protocol("no answer to the control works on the lifeline");
    return;
  }
  under_way_.push_back({control.owner, control.part});
  send_frame({.kind = LifelineHeader::kControl,
              .bytes = static_cast<uint16_t>(piece.bytes),
              .offset = static_cast<uint32_t>(piece.offset),
              .immediate = control_immediate(control.op, control.value)},
             {memory_.outbox() + piece.offset, piece.bytes});
}

void Lifeline::send_frame(LifelineHeader header, std::span<const std::byte> payload) {
  header.taken = told_ = taken_;
  stream_->send(header, payload);
}

Status Lifeline::progress(uint64_t now_ns) {
  frames_left_ = kMostFrames;
  if (!open() && needed_ && dialer_ != nullptr) {
    if (const Status status = dial(now_ns); status != Status::kOk) return status;
  }
  if (open()) watch_connection(now_ns);
  if (needed_ && now_ns - needed_since_ns_ >= times::kLifelineWarning) warn_once();
  if (!needed_ || now_ns - needed_since_ns_ < limit_ns_) return Status::kOk;
  const std::string why = last_failure();
  return context_.fail(make_error(
      Status::kTimeout, 0,
      "no rail has returned for %.0f s, and the peer %s%s%s; check cables, switch ports, routes "
      "and firewalls",
      static_cast<double>(limit_ns_) * 1e-9,
      open() ? "can be reached beside them" : "is not reached", why.empty() ? "" : ": ",
      why.c_str()));
}

// Why the peer is not reached: of the last dial, or else of the last connection. "": nothing
// failed.
std::string Lifeline::last_failure() const {
  const std::string of_dial = dialer_ != nullptr && !open() ? dialer_->last_failure() : "";
  return of_dial.empty() ? broke_because_ : of_dial;
}

// Closes a connection that is of no use any more, or on which the peer is silent; the active end
// asks as long as it has a use for it. Otherwise asks the peer from time to time, and tells it what
// has been taken.
void Lifeline::watch_connection(uint64_t now_ns) {
  if (under_way_.empty()) heard_ns_ = now_ns;
  const bool left = dialer_ != nullptr || now_ns - came_ns_ >= times::kLifelineSilence;
  if (!needed_ && under_way_.empty() && left) return close();
  if (now_ns - heard_ns_ >= times::kLifelineSilence) {
    return break_off(make_error(Status::kTimeout, 0, "the peer does not answer"));
  }
  const bool asks = dialer_ != nullptr && now_ns - asked_ns_ >= times::kLifelineSilence / 4;
  if (asks && under_way_.size() < kMostUnderWay) {
    asked_ns_ = now_ns;
    under_way_.push_back({nullptr, 0});
    send_frame({.kind = LifelineHeader::kAlive}, {});
  } else if (told_ != taken_) {
    send_frame({}, {});
  }
}

Status Lifeline::dial(uint64_t now_ns) {
  Error error;
  const Status status = dialer_->dial(&stream_, &error);
  if (status == Status::kOk) begin_connection(now_ns);
  if (status == Status::kOk || status == Status::kAgain) return Status::kOk;
  return context_.fail(make_error(
      status, error.code, "no rail is up, and the peer is gone: %s; see the log of that process",
      error.what.c_str()));
}

std::optional<uint32_t> Lifeline::next(uint64_t now_ns) {
  LifelineHeader header;
  std::span<const std::byte> payload;
  Error error;
  while (open() && frames_left_ > 0) {
    --frames_left_;
    const Status status = stream_->receive(&header, &payload, &error);
    if (status == Status::kAgain) break;
    if (status != Status::kOk) {
      break_off(error);
      break;
    }
    came_ns_ = now_ns;
    if (!take_answer(header.taken, now_ns)) break;
    if (header.kind == LifelineHeader::kTaken) continue;
    ++taken_;
    if (header.kind == LifelineHeader::kAlive) continue;
    if (!place(header, payload)) break;
    return header.immediate;
  }
  return std::nullopt;
}

// The peer's count of our frames.
bool Lifeline::take_answer(uint32_t taken, uint64_t now_ns) {
  const uint32_t more = taken - peer_took_;
  if (more > under_way_.size()) {
    (void)context_.fail_protocol("a count of more frames than it was sent");
    return false;
  }
  peer_took_ = taken;
  if (more > 0) heard_ns_ = now_ns;
  for (uint32_t i = 0; i < more; ++i) {
    const UnderWay work = under_way_.front();
    under_way_.pop_front();
    if (work.owner != nullptr) work.owner->on_done(work.part);
  }
  return true;
}

bool Lifeline::place(const LifelineHeader& header, std::span<const std::byte> payload) {
  const bool fits = header.kind == LifelineHeader::kControl && is_control(header.immediate) &&
                    header.offset <= memory_.inbox_bytes() &&
                    payload.size() <= memory_.inbox_bytes() - header.offset;
  if (!fits) {
    (void)context_.fail_protocol(
        "a frame of an unknown kind, or a record outside this end's inbox");
    return false;
  }
  if (!payload.empty())
    std::memcpy(memory_.inbox() + header.offset, payload.data(), payload.size());
  return true;
}

}  // namespace slime
