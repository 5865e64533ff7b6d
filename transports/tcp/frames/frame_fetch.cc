// How a FrameReader gets bytes from its socket.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "transports/tcp/frames/frame_reader.h"

namespace slime::tcp {

ssize_t FrameReader::fetch_header(int fd) {
  std::memmove(staging_.data(), staging_.data() + begin_, staged());  // less than one header
  end_ = staged();
  begin_ = 0;
  const size_t wanted = after_large_ ? kStagedBehindLarge : staging_.size();
  const size_t asked =
      (list_.filling() ? std::min(list_.missing_header_bytes(), wanted) : wanted) - end_;
  const ssize_t got = check_received(::recv(fd, &staging_[end_], asked, MSG_DONTWAIT), asked);
  if (got > 0) end_ += static_cast<size_t>(got);
  return got;
}

ssize_t FrameReader::fetch_payload(int fd, size_t budget) {
  const size_t wanted = std::min<uint64_t>(remaining_, budget);
  if (refused_) return throw_away(fd, wanted);
  const RegionTable::Pin pinned = pin();
  if (const Verdict verdict = judge(pinned); verdict != Verdict::kPlace) {
    return verdict == Verdict::kThrowAway ? throw_away(fd, wanted) : -1;
  }
  if (!list_.empty() && wanted == remaining_) return fetch_listed(fd, budget);
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

// The rest of the open payload, which is pinned, and those behind it that may be placed.
ssize_t FrameReader::fetch_listed(int fd, size_t budget) {
  std::array<iovec, kMostListed + 1> vectors;
  std::array<std::optional<RegionTable::Pin>, kMostListed> pins;
  size_t count = 1, asked = remaining_;
  vectors[0] = {target(), remaining_};
  for (const FrameHeader& next : list_.rest()) {
    if (asked >= budget) break;
    const auto& pin = pins[count - 1].emplace(regions_, next.remote_key, next.remote_address,
                                              next.length, kRemoteWrite);
    if (pin.access() != RegionTable::Access::kGranted) break;
    vectors[count++] = {reinterpret_cast<void*>(next.remote_address), next.length};
    asked += next.length;
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  const ssize_t got = check_received(::recvmsg(fd, &message, MSG_DONTWAIT), asked);
  if (got <= 0) return got;
  const size_t of_first = std::min<uint64_t>(static_cast<size_t>(got), remaining_);
  remaining_ -= of_first;
  list_.place_ahead(static_cast<size_t>(got) - of_first);
  begin_ = end_ = 0;
  return got;
}

// Nothing is staged now.
ssize_t FrameReader::throw_away(int fd, size_t bytes) {
  const size_t asked = std::min(bytes, staging_.size());
  const ssize_t got = check_received(::recv(fd, staging_.data(), asked, MSG_DONTWAIT), asked);
  begin_ = end_ = 0;
  if (got > 0) remaining_ -= static_cast<size_t>(got);
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

}  // namespace slime::tcp
