#include "transports/tcp/frame_reader.h"

#include "transports/channel_common.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

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
  const std::span<Done> room = done.first(std::min(done.size(), kMaxArrivals));
  *count = 0;
  drained_ = false;
  for (size_t moved = 0;;) {
    if (!consume(room, count)) return false;
    if (*count == room.size() || drained_ || moved >= kMaxBytes) return true;
    const ssize_t got = remaining_ ? fetch_payload(fd, kMaxBytes - moved) : fetch_header(fd);
    if (got < 0) return false;
    moved += static_cast<size_t>(got);
  }
}

bool FrameReader::consume(std::span<Done> done, size_t* count) {
  while (*count < done.size()) {
    if (!open_) {
      if (staged() < kFrameHeaderBytes) return true;
      if (!open_frame()) return false;
      if (!open_) continue;  // it was an acknowledgement
    }
    if (remaining_ && staged() && !place_staged()) return false;
    if (remaining_) return true;
    done[(*count)++] = complete();
  }
  return true;
}

bool FrameReader::open_frame() {
  std::memcpy(&header_, &staging_[begin_], kFrameHeaderBytes);
  begin_ += kFrameHeaderBytes;
  const bool is_write = header_.type == static_cast<uint8_t>(FrameType::kWrite);
  const bool is_ack = header_.type == static_cast<uint8_t>(FrameType::kAck) &&
                      header_.length == 0 && header_.flags == 0;
  if (header_.magic != kFrameMagic || (header_.flags & ~kNeedsNoAck) != 0 ||
      !(is_write || is_ack)) {
    return stop(ReadFault::Kind::kNotAFrame);
  }
  if (header_.length > max_message_bytes_) return stop(ReadFault::Kind::kTooLong);
  open_ = is_write;
  remaining_ = header_.length;
  peer_ack_ = header_.ack;
  return true;
}

std::byte* FrameReader::target() const {
  return reinterpret_cast<std::byte*>(header_.remote_address) + (header_.length - remaining_);
}

bool FrameReader::place_staged() {
  const RegionTable::Pin pin(regions_, header_.remote_key, header_.remote_address, header_.length);
  if (!granted(pin)) return false;
  const size_t bytes = std::min<uint64_t>(staged(), remaining_);
  copy_ascending(target(), &staging_[begin_], bytes);
  begin_ += bytes;
  remaining_ -= bytes;
  return true;
}

Done FrameReader::complete() {
  open_ = false;
  ++arrived_;
  const bool wrapping = arrived_ - awaited_ > 1u << 30;
  if ((header_.flags & kNeedsNoAck) == 0 || wrapping) awaited_ = arrived_;
  bytes_ += header_.length;
  return slime::arrived(header_.immediate, header_.length);
}

ssize_t FrameReader::fetch_header(int fd) {
  std::memmove(staging_.data(), &staging_[begin_], staged());  // less than one header
  end_ = staged();
  begin_ = 0;
  const bool after_large = header_.length >= kLargePayload;
  const size_t asked = (after_large ? kStagedBehindLarge : staging_.size()) - end_;
  const ssize_t got = check_received(::recv(fd, &staging_[end_], asked, MSG_DONTWAIT), asked);
  if (got > 0) end_ += static_cast<size_t>(got);
  return got;
}

ssize_t FrameReader::fetch_payload(int fd, size_t budget) {
  const RegionTable::Pin pin(regions_, header_.remote_key, header_.remote_address, header_.length);
  if (!granted(pin)) return -1;
  const size_t wanted = std::min<uint64_t>(remaining_, budget);
  size_t behind = header_.length >= kLargePayload ? kStagedBehindLarge : staging_.size();
  if (wanted < remaining_) behind = 0;
  std::array<iovec, 2> vectors{iovec{target(), wanted}, iovec{staging_.data(), behind}};
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = behind ? 2 : 1;
  const size_t asked = wanted + behind;
  const ssize_t got = check_received(::recvmsg(fd, &message, MSG_DONTWAIT), asked);
  if (got <= 0) return got;
  const size_t of_payload = std::min(static_cast<size_t>(got), wanted);
  remaining_ -= of_payload;
  begin_ = 0;
  end_ = static_cast<size_t>(got) - of_payload;
  return got;
}

// A call that returns less than it was asked for has emptied the socket: another would only say
// EAGAIN.
ssize_t FrameReader::check_received(ssize_t result, size_t asked) {
  if (result > 0) {
    drained_ = static_cast<size_t>(result) < asked;
    return result;
  }
  if (result == 0) {
    stop(ReadFault::Kind::kEnded);
    return -1;
  }
  if (errno == EAGAIN || errno == EINTR) {
    drained_ = true;
    return 0;
  }
  stop(ReadFault::Kind::kSocket, errno);
  return -1;
}

bool FrameReader::granted(const RegionTable::Pin& pin) {
  if (pin.access() == RegionTable::Access::kGranted) return true;
  const bool known = pin.access() == RegionTable::Access::kOutOfBounds;
  return stop(known ? ReadFault::Kind::kOutOfBounds : ReadFault::Kind::kUnknownKey);
}

bool FrameReader::stop(ReadFault::Kind kind, int code) {
  fault_ = {.kind = kind, .code = code};
  return false;
}

}  // namespace slime::tcp
