#include "link/lifeline/lifeline.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "settings/times.h"

namespace slime {

void Lifeline::rails_gone(uint64_t now_ns) {
  SLIME_CHECK(wanted());
  if (std::exchange(needed_, true)) return;
  needed_since_ns_ = now_ns;
  last_failure_.clear();
  SLIME_WARN("peer %s, device %s: no rail is up; the link waits for one for %.0f s at most",
             context_.peer.c_str(), context_.device_name(), static_cast<double>(limit_ns_) * 1e-9);
}

void Lifeline::take(std::unique_ptr<LifelineStream> stream) {
  close();
  stream_ = std::move(stream);
  opened(context_.devices.clock().now_ns());
}

void Lifeline::opened(uint64_t now_ns) {
  peer_took_ = taken_ = told_ = 0;
  asked_ns_ = heard_ns_ = now_ns;
}

void Lifeline::close() {
  stream_.reset();
  for (const UnderWay& work : std::exchange(under_way_, {})) {
    if (work.owner != nullptr) work.owner->on_lost(work.part);
  }
}

void Lifeline::broken(const Error& why) {
  last_failure_ = why.what;
  close();
}

void Lifeline::send(const ControlWork& control) {
  const OutboxPiece& piece = control.piece;
  SLIME_CHECK(open() && piece.bytes <= LifelineHeader::kMostBytes);
  if (under_way_.size() == kMostUnderWay) {
    (void)context_.fail_protocol("no answer to its control works");
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
  if (!open() && needed_ && dialer_ != nullptr) {
    if (const Status status = dial(now_ns); status != Status::kOk) return status;
  }
  if (open()) {
    if (under_way_.empty()) heard_ns_ = now_ns;
    const bool done = !needed_ && under_way_.empty() && dialer_ != nullptr;
    const bool silent = now_ns - heard_ns_ >= times::kLifelineSilence;
    if (done) return close(), Status::kOk;
    if (silent) {
      broken(make_error(Status::kTimeout, 0, "the peer does not answer"));
    } else if (dialer_ != nullptr && now_ns - asked_ns_ >= times::kLifelineSilence / 4) {
      asked_ns_ = now_ns;
      under_way_.push_back({nullptr, 0});
      send_frame({.kind = LifelineHeader::kAlive}, {});
    } else if (told_ != taken_) {
      send_frame({}, {});
    }
  }
  if (!needed_ || now_ns - needed_since_ns_ < limit_ns_) return Status::kOk;
  return context_.fail(make_error(Status::kTimeout, 0,
                                  "no rail has returned for %.0f s, and the peer %s%s%s",
                                  static_cast<double>(limit_ns_) * 1e-9,
                                  open() ? "can be reached beside them" : "is not reached",
                                  last_failure_.empty() ? "" : ": ", last_failure_.c_str()));
}

Status Lifeline::dial(uint64_t now_ns) {
  Error error;
  const Status status = dialer_->dial(&stream_, &error);
  if (status == Status::kOk) opened(now_ns);
  if (status == Status::kAgain) last_failure_ = dialer_->last_failure();
  if (status == Status::kOk || status == Status::kAgain) return Status::kOk;
  return context_.fail(make_error(status, error.code, "no rail is up, and the peer is gone: %s",
                                  error.what.c_str()));
}

std::optional<uint32_t> Lifeline::next() {
  LifelineHeader header;
  std::span<const std::byte> payload;
  Error error;
  while (open()) {
    const Status status = stream_->receive(&header, &payload, &error);
    if (status == Status::kAgain) break;
    if (status != Status::kOk) {
      broken(error);
      break;
    }
    if (!take_answer(header.taken)) break;
    if (header.kind == LifelineHeader::kTaken) continue;
    ++taken_;
    if (header.kind == LifelineHeader::kAlive) continue;
    if (!place(header, payload)) break;
    return header.immediate;
  }
  return std::nullopt;
}

// The peer's count of our frames.
bool Lifeline::take_answer(uint32_t taken) {
  const uint32_t more = taken - peer_took_;
  if (more > under_way_.size()) {
    (void)context_.fail_protocol("answers to frames that it did not get");
    return false;
  }
  peer_took_ = taken;
  if (more > 0) heard_ns_ = context_.devices.clock().now_ns();
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
    (void)context_.fail_protocol("a control work that does not fit its inbox");
    return false;
  }
  if (!payload.empty())
    std::memcpy(memory_.inbox() + header.offset, payload.data(), payload.size());
  return true;
}

}  // namespace slime
