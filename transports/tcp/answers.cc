#include "transports/tcp/answers.h"

#include <algorithm>

namespace slime::tcp {

namespace {

constexpr size_t kZeroBytes = 16 << 10;
constexpr std::array<std::byte, kZeroBytes> kZeros{};

}  // namespace

bool Answers::take(const FrameHeader& request) {
  if (count_ == most_) return false;
  append({request.remote_key, request.remote_address, request.immediate, request.length});
  return true;
}

void Answers::refuse_first(ControlFrames& control) {
  gone_ = false;
  refused_too_many_ |= !control.refuse_read(pop().place);
}

// Of the first request that this end may answer.
bool Answers::begin_frame(uint32_t arrived, ControlFrames& control) {
  for (; count_ > 0 && !refused_too_many_; refuse_first(control)) {
    const Request& request = first();
    const RegionTable::Pin pin(regions_, request.key, request.address, request.left, kRemoteRead);
    if (request.left > 0 && pin.access() != RegionTable::Access::kGranted) continue;
    header_ = end_ = FrameHeader();
    header_.type = static_cast<uint8_t>(FrameType::kAnswer);
    end_.type = static_cast<uint8_t>(FrameType::kReadDone);
    header_.immediate = end_.immediate = request.place;
    header_.ack = end_.ack = arrived;
    header_.length = std::min(request.left, kMaxAnswerBytes);
    return true;
  }
  return false;
}

// What is left of the frame. Its memory is pinned, or has gone.
Answers::Vectors Answers::gather() {
  Vectors vectors;
  const size_t sent = payload_sent(), left = header_.length - sent;
  if (offset_ < kFrameHeaderBytes) vectors.add(&header_, kFrameHeaderBytes, offset_);
  if (gone_) {
    vectors.add(kZeros.data(), std::min(left, kZeroBytes), 0);
  } else {
    vectors.add(reinterpret_cast<const std::byte*>(first().address), header_.length, sent);
    if (ends_read()) vectors.add(&end_, kFrameHeaderBytes, offset_ - std::min(offset_, end_at()));
  }
  return vectors;
}

// A read that is not over goes behind the others.
void Answers::moved(size_t bytes, ControlFrames& control) {
  offset_ += bytes;
  if (offset_ < end_at() + (ends_read() ? kFrameHeaderBytes : 0)) return;
  offset_ = 0;
  if (gone_) return refuse_first(control);
  Request request = pop();
  request.left -= header_.length;
  request.address += header_.length;
  if (request.left > 0) append(request);
}

}  // namespace slime::tcp
