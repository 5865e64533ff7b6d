// The notifications that have come to an engine, until its program fetches them.
//
// For each peer there is room for so many and so much; when it is full, those that follow stay with
// their sender. Memory: by these limits, and what the program holds. Threads: any; a mutex guards
// all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "peer/ready_fd.h"

namespace slime {

using NoticeBytes = std::vector<std::byte>;

struct Notice {
  uint64_t peer = 0;  // the handle of its sender
  std::shared_ptr<const NoticeBytes> bytes;
};

class Notices {
 public:
  // Of one peer. One more may come when there are fewer bytes, however long it is.
  static constexpr size_t kMostBytes = size_t{64} << 20;
  static constexpr size_t kMost = 4096;

  // `ready` knows whether some are here.
  explicit Notices(ReadyFd* ready = nullptr) : ready_(ready) {}

  // Whether one of this peer has room. False: fetch() names the peer when it has.
  bool has_room(uint64_t peer);
  void put(Notice notice);
  // The oldest, `most` at most, and the peers that were refused room and have it again.
  std::vector<Notice> fetch(size_t most, std::vector<uint64_t>* peers);
  void drop_of(uint64_t peer);  // it is not known any more

 private:
  struct Share {
    size_t count = 0, bytes = 0;
    bool waits = false;
    bool has_room() const { return count < kMost && bytes < kMostBytes; }
  };

  void tell_ready();

  ReadyFd* const ready_;
  std::mutex mutex_;
  std::deque<Notice> here_;
  std::unordered_map<uint64_t, Share> shares_;  // of peers with some here
};

}  // namespace slime
