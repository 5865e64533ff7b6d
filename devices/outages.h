// Which rails are down, over all links of the process: a cause that many links see is one warning.
//
// State: for each cause the number of links that have lost a rail by it. Threads: any.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace slime {

class Outages {
 public:
  // A link has lost a rail. True: it is the first by this cause.
  bool begin(const std::string& cause) {
    const std::lock_guard lock(mutex_);
    return ++links_[cause] == 1;
  }
  // The rail is back, or the link has ended. True: it was the last one.
  bool end(const std::string& cause) {
    const std::lock_guard lock(mutex_);
    const auto at = links_.find(cause);
    if (at == links_.end() || --at->second > 0) return false;
    links_.erase(at);
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, size_t> links_;  // as many causes at most as links have rails
};

}  // namespace slime
