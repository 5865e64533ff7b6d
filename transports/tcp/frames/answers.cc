#include "transports/tcp/frames/answers.h"

#include <algorithm>

namespace slime::tcp {

namespace {

constexpr size_t kZeroBytes = 16 << 10;
constexpr std::array<std::byte, kZeroBytes> kZeros{};

}  // namespace

Answers::Headers::Headers(const Request& request, uint32_t arrived, uint32_t most) {
  answer.type = static_cast<uint8_t>(FrameType::kAnswer);
  end.type = static_cast<uint8_t>(FrameType::kReadDone);
  answer.immediate = end.immediate = request.place;
  answer.ack = end.ack = arrived;
  answer.length = std::min(request.left, most);
}

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
    headers_ = Headers(request, arrived, most_bytes_);
    return true;
  }
  return false;
}

// What is left of the frame. Its memory is pinned, or has gone.
Answers::Vectors Answers::gather() {
  Vectors vectors;
  const size_t sent = payload_sent(), left = headers_.answer.length - sent;
  if (offset_ < kFrameHeaderBytes) vectors.add(&headers_.answer, kFrameHeaderBytes, offset_);
  if (gone_) {
    for (size_t zeros = 0; zeros < left; zeros += kZeroBytes)
      vectors.add(kZeros.data(), std::min(left - zeros, kZeroBytes), 0);
  } else {
    vectors.add(reinterpret_cast<const std::byte*>(first().address), headers_.answer.length, sent);
    if (ends_read())
      vectors.add(&headers_.end, kFrameHeaderBytes, offset_ - std::min(offset_, end_at()));
  }
  return vectors;
}

// Behind one that ends.
void Answers::gather_further(uint32_t arrived, Further* further, Vectors* vectors) {
  if (!ends_read()) return;
  size_t bytes = headers_.answer.length;
  for (size_t i = 0; i < further->pins.size() && i + 1 < count_; ++i) {
    const Request& request = at(i + 1);
    bytes += request.left;
    if (request.left > most_bytes_ || bytes > kTogetherBytes) return;
    const auto& pin =
        further->pins[i].emplace(regions_, request.key, request.address, request.left, kRemoteRead);
    if (request.left > 0 && pin.access() != RegionTable::Access::kGranted) return;
    Headers& headers = further->headers[i] = Headers(request, arrived, most_bytes_);
    vectors->add(&headers.answer, kFrameHeaderBytes, 0);
    vectors->add(reinterpret_cast<const std::byte*>(request.address), request.left, 0);
    vectors->add(&headers.end, kFrameHeaderBytes, 0);
  }
}

// The next frame has begun if the kernel has any of it.
void Answers::moved(size_t bytes, std::span<const Headers> further, ControlFrames& control) {
  offset_ += bytes;
  for (size_t next = 0; offset_ >= frame_bytes(); ++next) {
    offset_ -= frame_bytes();
    end_frame(control);
    if (offset_ == 0) return;
    SLIME_CHECK(next < further.size());
    headers_ = further[next];
  }
}

// A read that is not over goes behind the others.
void Answers::end_frame(ControlFrames& control) {
  if (gone_) return refuse_first(control);
  Request request = pop();
  request.left -= headers_.answer.length;
  request.address += headers_.answer.length;
  if (request.left > 0) append(request);
}

}  // namespace slime::tcp
