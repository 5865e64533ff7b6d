// A small server of pages in one thread: coroutines that wait for requests, and a loop that resumes
// them. Two engines of one process stand for two processes.
//
//     example-coroutine
//
// Exit status: 0: all pages are right; 1: an error.
#include <poll.h>
#include <slime/p2p.h>

#include <algorithm>
#include <cstdio>
#include <exception>

namespace {

using namespace std::chrono_literals;
namespace p2p = slime::p2p;

// A coroutine that nobody waits for: it begins at once, and frees itself.
struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

constexpr size_t kPages = 64, kPage = 4096;

// Reads a page, then tells its owner that it may be used again.
Task fetch(p2p::Peer peer, const p2p::Region& mine, const p2p::Remote& theirs, size_t page,
           size_t* done) {
  try {
    const uint64_t offset = page * kPage;
    co_await peer.read(mine.to(theirs, offset, offset, kPage)).deadline(10s);
    co_await peer.notify("page " + std::to_string(page));
  } catch (const p2p::Error& error) {
    std::fprintf(stderr, "page %zu: %s\n", page, error.what());
  }
  ++*done;
}

int run() {
  std::vector<std::byte> cache(kPages * kPage), remote_cache(kPages * kPage, std::byte{7});
  p2p::Engine here, there;
  const p2p::Region mine = here.register_memory(cache);
  const p2p::Region owned = there.register_memory(remote_cache);
  p2p::Peer peer = here.add(there.address());
  const p2p::Remote theirs = peer.import(owned.advertise());
  size_t done = 0, told = 0;
  for (size_t page = 0; page < kPages; ++page) fetch(peer, mine, theirs, page, &done);
  pollfd readable{here.event_fd(), POLLIN, 0};
  while (done < kPages && ::poll(&readable, 1, 60'000) == 1) here.resume_completed();
  while (there.notification()) ++told;
  const auto right = std::ranges::count(cache, std::byte{7});
  std::printf("%zu pages, %zu were told of, %td bytes are right\n", done, told, right);
  return static_cast<size_t>(right) == cache.size() && told == kPages ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const p2p::Error& error) {
    std::fprintf(stderr, "%s: %s\n", slime_status_name(error.status()), error.what());
    return 1;
  }
}
