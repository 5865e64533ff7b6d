#include "transports/fabric/side_connection.h"

#include <algorithm>
#include <array>

namespace slime::fabric {
namespace {

constexpr size_t kAtOnce = 64;  // words sent, or read, with one call

// A head: 0x6c | message | number of words, 16 bits.
constexpr uint32_t kHeadMark = 0x6c;

uint32_t head_of(SideMessage message, size_t words) {
  return kHeadMark << 24 | static_cast<uint32_t>(message) << 16 | static_cast<uint32_t>(words);
}

bool is_head(uint32_t word) {
  const uint32_t message = word >> 16 & 0xff;
  return word >> 24 == kHeadMark && message >= static_cast<uint32_t>(SideMessage::kHello) &&
         message <= static_cast<uint32_t>(SideMessage::kWarm) &&
         (word & 0xffff) <= SideConnection::kMaxWords;
}

}  // namespace

void SideConnection::send(SideMessage message, std::span<const uint32_t> words) {
  do {
    const auto part = words.first(std::min(words.size(), kMaxWords));
    waiting_.push_back(head_of(message, part.size()));
    waiting_.insert(waiting_.end(), part.begin(), part.end());
    words = words.subspan(part.size());
  } while (!words.empty());
  send_waiting();
}

// A channel has room again when poll() has returned what is sent.
void SideConnection::send_waiting() {
  while (!waiting_.empty() && status_ == Status::kOk) {
    std::array<Work, kAtOnce> works;
    const size_t count = std::min(works.size(), waiting_.size());
    for (size_t i = 0; i < count; ++i) works[i].immediate = waiting_[i];
    size_t taken = 0;
    status_ = channel_->post(std::span(works).first(count), &taken);
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(taken));
    if (taken < count && read() == 0) return;
  }
}

// Polls the channel once. Returns how much that brought.
size_t SideConnection::read() {
  if (incoming_.size() >= kMostWaiting) return 0;
  std::array<Done, kAtOnce> done;
  size_t count = 0;
  const Status status = channel_->poll(done, &count);
  if (status != Status::kOk) status_ = status;
  for (size_t i = 0; i < count; ++i) {
    if (done[i].kind != Done::Kind::kArrived) continue;
    if (done[i].bytes != 0) fail_with("the peer sent bytes where messages are expected");
    incoming_.push_back(done[i].immediate);
  }
  return count;
}

Status SideConnection::fail_with(const char* what) {
  if (failure_.what.empty()) failure_ = make_error(Status::kRemote, 0, "%s", what);
  return failure_.status;
}

Status SideConnection::poll() {
  if (!failure_.what.empty()) return failure_.status;
  send_waiting();
  while (read() > 0) continue;
  if (waiting_.size() > kMostWaiting) fail_with("the peer does not read what it is told");
  arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<ptrdiff_t>(taken_));
  taken_ = 0;
  arrived_.insert(arrived_.end(), incoming_.begin(), incoming_.end());
  incoming_.clear();
  return failure_.what.empty() ? status_ : failure_.status;
}

bool SideConnection::next(SideMessage* message, std::span<const uint32_t>* words) {
  if (taken_ == arrived_.size()) return false;
  const uint32_t head = arrived_[taken_];
  if (!is_head(head)) {
    fail_with("the peer sent something that is no message; use the same libnet-slime on all hosts");
    return false;
  }
  const size_t count = head & 0xffff;
  if (arrived_.size() - taken_ - 1 < count) return false;
  *message = static_cast<SideMessage>(head >> 16 & 0xff);
  *words = std::span<const uint32_t>(arrived_).subspan(taken_ + 1, count);
  taken_ += 1 + count;
  return true;
}

}  // namespace slime::fabric
