#include "transports/tcp/frames/frame_reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/clock.h"
#include "transports/channel_common.h"

namespace slime::tcp {

void copy_ascending(std::byte* to, const std::byte* from, size_t bytes) {
  const auto put = [](std::byte* place, auto value) {
    std::atomic_ref(*reinterpret_cast<decltype(value)*>(place))
        .store(value, std::memory_order_release);
  };
  while (bytes > 0 && reinterpret_cast<uintptr_t>(to) % sizeof(uint64_t) != 0) {
    put(to++, static_cast<uint8_t>(*from++));
    --bytes;
  }
  for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, from, sizeof(word));
    put(to, word);
    to += sizeof(word);
    from += sizeof(word);
  }
  for (; bytes > 0; --bytes) put(to++, static_cast<uint8_t>(*from++));
}

bool FrameReader::read(int fd, std::span<Done> done, size_t* count) {
  const std::span<Done> room = done.first(std::min(done.size(), kMaxDone));
  *count = 0;
  drained_ = false;
  for (size_t moved = 0;;) {
    if (!consume(room, count)) return false;
    if (*count == room.size() || drained_ || moved >= kMaxBytes) break;
    const ssize_t got = remaining_ ? fetch_payload(fd, kMaxBytes - moved) : fetch_header(fd);
    if (got < 0) return false;
    moved += static_cast<size_t>(got);
  }
  if (drained_ && mid_list()) look_at_slow_list();
  return true;
}

bool FrameReader::consume(std::span<Done> done, size_t* count) {
  while (*count < done.size()) {
    if (!open_) {
      if (!list_.ready() && staged() < kFrameHeaderBytes) return true;
      if (!next_frame()) return false;
      if (!open_) continue;  // it was one without a payload
    }
    if (remaining_ && staged() && !place_staged()) return false;
    if (remaining_) return true;
    if (!complete(done, count)) return false;
  }
  return true;
}

// Its header is of the list, or staged.
bool FrameReader::next_frame() {
  listed_ = list_.ready();
  if (listed_) {
    header_ = list_.take();
    return open_frame();
  }
  std::memcpy(&header_, &staging_[begin_], kFrameHeaderBytes);
  begin_ += kFrameHeaderBytes;
  const bool may_need_no_ack = is(FrameType::kWrite);
  if (header_.magic != kFrameMagic || (header_.flags & ~(may_need_no_ack ? kNeedsNoAck : 0)) != 0) {
    return stop(ReadFault::Kind::kNotAFrame);
  }
  if (!is(FrameType::kList) && header_.length > max_message_bytes_)
    return stop(ReadFault::Kind::kTooLong);
  return list_.filling() ? fill_list() : open_frame();
}

bool FrameReader::fill_list() {
  const bool fits = is(FrameType::kSilentWrite) && header_.length > 0 && list_.add(header_);
  return fits || stop(ReadFault::Kind::kNotAFrame);
}

// What has come of it is acknowledged now.
void FrameReader::look_at_slow_list() {
  const uint64_t now_ns = steady_now_ns();
  if (now_ns - list_ns_ < kSlowListNs) return;
  list_ns_ = now_ns;
  awaited_before_list_ = awaited_;
}

bool FrameReader::open_frame() {
  peer_ack_ = header_.ack;
  refused_ = false;
  switch (static_cast<FrameType>(header_.type)) {
    case FrameType::kWrite:
    case FrameType::kSilentWrite:
      return open_write();
    case FrameType::kAnswer:
      return open_answer();
    case FrameType::kRead:
      return answers_.take(header_) || stop(ReadFault::Kind::kTooManyReads);
    case FrameType::kReadDone:
    case FrameType::kReadRefused:
      return open_end_of_read();
    case FrameType::kAck:
      return header_.length == 0 || stop(ReadFault::Kind::kNotAFrame);
    case FrameType::kRefused:
      if (header_.length > 0) return stop(ReadFault::Kind::kNotAFrame);
      return queue_.refused(header_.immediate) || stop(ReadFault::Kind::kNotOfOurs);
    case FrameType::kList:
      awaited_before_list_ = awaited_;
      list_ns_ = steady_now_ns();
      return list_.begin(header_.immediate, header_.length) || stop(ReadFault::Kind::kNotAFrame);
  }
  return stop(ReadFault::Kind::kNotAFrame);
}

bool FrameReader::open_write() {
  open_ = true;
  remaining_ = header_.length - list_.take_ahead(header_.length);
  key_ = header_.remote_key;
  address_ = header_.remote_address;
  right_ = kRemoteWrite;
  return true;
}

// The read that this frame is about. nullptr: the peer cannot know of it.
Read* FrameReader::find_read() {
  const uint32_t place = header_.immediate;
  return queue_.control().waits_to_ask(place) ? nullptr : reads_.find(place);
}

bool FrameReader::open_answer() {
  const Read* const read = find_read();
  if (read == nullptr) return stop(ReadFault::Kind::kNotOfOurs);
  if (header_.length > kMaxAnswerBytes || header_.length > read->bytes - read->got ||
      (header_.length == 0 && read->bytes > 0)) {
    return stop(ReadFault::Kind::kNotAFrame);
  }
  open_ = true;
  remaining_ = header_.length;
  key_ = read->local_key;
  address_ = reinterpret_cast<uint64_t>(read->to) + read->got;
  right_ = 0;
  refused_ = read->refused;
  return true;
}

// complete() reports it.
bool FrameReader::open_end_of_read() {
  const Read* const read = find_read();
  if (read == nullptr) return stop(ReadFault::Kind::kNotOfOurs);
  const bool too_early = is(FrameType::kReadDone) && read->got < read->bytes;
  if (header_.length > 0 || too_early) return stop(ReadFault::Kind::kNotAFrame);
  open_ = true;
  refused_ = is(FrameType::kReadRefused);
  return true;
}

std::byte* FrameReader::target() const {
  return reinterpret_cast<std::byte*>(address_) + (header_.length - remaining_);
}

bool FrameReader::place_staged() {
  const size_t bytes = std::min<uint64_t>(staged(), remaining_);
  if (!refused_) {
    const RegionTable::Pin pinned = pin();
    const Verdict verdict = judge(pinned);
    if (verdict == Verdict::kFault) return false;
    if (verdict == Verdict::kPlace) copy_staged(bytes);
  }
  begin_ += bytes;
  remaining_ -= bytes;
  return true;
}

// Nobody looks at the bytes of a silent write or of an answer before they are reported.
void FrameReader::copy_staged(size_t bytes) {
  const std::byte* const from = &staging_[begin_];
  is(FrameType::kWrite) ? copy_ascending(target(), from, bytes)
                        : static_cast<void>(std::memcpy(target(), from, bytes));
}

bool FrameReader::complete(std::span<Done> done, size_t* count) {
  open_ = false;
  if (header_.length > 0)
    after_large_ = (listed_ ? list_.bytes() : header_.length) >= kLargePayload;
  if (!refused_) placed_bytes_ += header_.length;
  if (is(FrameType::kWrite) || is(FrameType::kSilentWrite)) return complete_write(done, count);
  complete_answer(done, count);
  return true;
}

bool FrameReader::complete_write(std::span<Done> done, size_t* count) {
  ++arrived_;
  const bool wrapping = arrived_ - awaited_ > 1u << 30;
  if ((header_.flags & kNeedsNoAck) == 0 || wrapping) awaited_ = arrived_;
  if (refused_)
    return queue_.control().refuse_write(arrived_) || stop(ReadFault::Kind::kTooManyRefusals);
  ++placed_writes_;
  if (is(FrameType::kWrite)) {
    done[(*count)++] = slime::arrived(header_.immediate, header_.length);
  }
  return true;
}

void FrameReader::complete_answer(std::span<Done> done, size_t* count) {
  Read& read = *reads_.find(header_.immediate);
  read.got += header_.length;
  read.refused |= refused_;
  if (is(FrameType::kAnswer)) return;
  done[(*count)++] = read.refused ? refused(read.cookie) : sent(read.cookie);
  reads_.end(header_.immediate);
}

// The payload of an answer is thrown away if our own range for it was deregistered.
FrameReader::Verdict FrameReader::judge(const RegionTable::Pin& pinned) {
  using Access = RegionTable::Access;
  if (pinned.access() == Access::kGranted) return Verdict::kPlace;
  refused_ = (header_.flags & kNeedsNoAck) == 0;
  if (refused_) return Verdict::kThrowAway;
  stop(pinned.access() == Access::kOutOfBounds ? ReadFault::Kind::kOutOfBounds
       : pinned.access() == Access::kNoRight   ? ReadFault::Kind::kNoRight
                                               : ReadFault::Kind::kUnknownKey);
  return Verdict::kFault;
}

bool FrameReader::stop(ReadFault::Kind kind, int code) {
  fault_ = {.kind = kind, .code = code};
  return false;
}

}  // namespace slime::tcp
