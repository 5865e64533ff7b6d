#include "peer/messages/notices.h"

#include <utility>

namespace slime {

bool Notices::has_room(uint64_t peer) {
  const std::lock_guard lock(mutex_);
  const auto found = shares_.find(peer);
  if (found == shares_.end() || found->second.has_room()) return true;
  found->second.waits = true;
  return false;
}

void Notices::put(Notice notice) {
  const std::lock_guard lock(mutex_);
  Share& share = shares_[notice.peer];
  ++share.count;
  share.bytes += notice.bytes->size();
  here_.push_back(std::move(notice));
  if (here_.size() == 1) tell_ready();
}

void Notices::tell_ready() {
  if (ready_ == nullptr) return;
  if (here_.empty()) {
    ready_->clear(ReadyFd::kNotices);
  } else {
    ready_->set(ReadyFd::kNotices);
  }
}

std::vector<Notice> Notices::fetch(size_t most, std::vector<uint64_t>* peers) {
  const std::lock_guard lock(mutex_);
  std::vector<Notice> fetched;
  for (; !here_.empty() && fetched.size() < most; here_.pop_front()) {
    Notice& notice = fetched.emplace_back(std::move(here_.front()));
    const auto found = shares_.find(notice.peer);
    Share& share = found->second;
    --share.count;
    share.bytes -= notice.bytes->size();
    if (share.has_room() && std::exchange(share.waits, false)) peers->push_back(notice.peer);
    if (share.count == 0) shares_.erase(found);
  }
  if (here_.empty()) tell_ready();
  return fetched;
}

void Notices::drop_of(uint64_t peer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(here_, [peer](const Notice& notice) { return notice.peer == peer; });
  shares_.erase(peer);
  tell_ready();
}

}  // namespace slime
