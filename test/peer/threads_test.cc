// Engines with several threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "test/peer/test_engine.h"

namespace slime {
namespace {

using std::chrono::milliseconds;
constexpr int kPatienceMs = 60'000;
constexpr int64_t kNsAMs = 1'000'000;

slime_options with_threads(uint32_t threads) {
  slime_options options = TestEngine::with("ifname=lo");
  options.threads = threads;
  return options;
}

std::ptrdiff_t threads_of_process() {
  return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/task"));
}

// Threads that have ended are counted for a while still, so it may take several trials.
TEST(Threads, AreAsManyAsAskedFor) {
  for (const uint32_t threads : {0u, 1u, 3u, uint32_t{SLIME_THREADS}}) {
    std::ptrdiff_t added = 0;
    for (int i = 0; added != std::max(threads, 1u) && i < 100; ++i) {
      const auto before = threads_of_process();
      TestEngine engine(with_threads(threads));
      added = threads_of_process() - before;
    }
    EXPECT_EQ(added, std::max(threads, 1u));
  }
}

TEST(Threads, MoreThanThereMayBeAreRefused) {
  const slime_options options = with_threads(SLIME_THREADS + 1);
  slime_engine* engine = nullptr;
  EXPECT_EQ(slime_open(&options, &engine), SLIME_ERR_INVALID);
  EXPECT_NE(std::string(slime_last_error()).find("threads is more than 64"), std::string::npos);
}

// An engine that reads memory of another.
struct Reader {
  Reader(TestEngine& owner, const std::vector<char>& region)
      : local(engine.add(room)), peer(engine.know(owner)), remote(engine.remote(peer, region)) {}
  slime_request begin() {
    return engine.begin(peer, SLIME_READ, {local, remote, 0, 0, 8}, 10 * kPatienceMs * kNsAMs);
  }
  bool has_read(slime_request request) {
    slime_result result = SLIME_RESULT_INIT;
    return slime_test(engine.engine, request, &result) == SLIME_OK && result.status == SLIME_OK;
  }

  std::vector<char> room = std::vector<char>(8);
  TestEngine engine;
  slime_region local;
  slime_peer peer;
  slime_remote remote;
};

struct Busy {
  std::atomic<bool> begun = false, may_end = false;
};

// The first thread is in a function of the program, and those of other threads are read.
TEST(Threads, ServePeersWhileAnotherIsBusy) {
  Busy busy;
  std::vector<char> memory(8, 'x');
  TestEngine owner(with_threads(2));
  const auto region = owner.blob_of(owner.add(memory));
  Reader first(owner, region), second(owner, region);
  for (Reader* reader : {&first, &second}) {
    EXPECT_EQ(reader->engine.end(reader->begin()).status, SLIME_OK);
  }
  slime_extra extra = SLIME_EXTRA_INIT;
  extra.deadline_ns = 1;
  extra.user = &busy;
  extra.callback = [](void* user, slime_request, const slime_result*) {
    auto* const of = static_cast<Busy*>(user);
    of->begun = true;
    for (int ms = 0; !of->may_end && ms < kPatienceMs; ++ms) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  };
  slime_request expected = 0;
  ASSERT_EQ(slime_expect(owner.engine, SLIME_ANY_PEER, 1, 1, &extra, &expected), SLIME_OK);
  while (!busy.begun) std::this_thread::sleep_for(milliseconds(1));
  const slime_request requests[] = {first.begin(), second.begin()};
  int done = 0;
  for (int ms = 0; done == 0 && ms < kPatienceMs / 3; ++ms) {
    done += first.has_read(requests[0]);
    done += second.has_read(requests[1]);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(done, 1);
  busy.may_end = true;
}

// Requests that wait for others (SLIME_MORE), to peers that rest and have each their thread.
TEST(Threads, EachEndsWhatIsOverdue) {
  std::vector<char> memory(8), theirs(8);
  TestEngine here(with_threads(2)), first(with_threads(1)), second(with_threads(1));
  const slime_region local = here.add(memory);
  int in_time = 0;  // one after the other
  for (int i = 0; in_time < 4 && i < 20; ++i) {
    TestEngine& other = i % 2 == 0 ? first : second;
    const slime_peer peer = here.know(other);
    if (i < 2) {
      EXPECT_EQ(here.end(here.notify(peer, "a link")).status, SLIME_OK);
    }
    // It has no traffic any more, so its thread looks at it every 5 s.
    std::this_thread::sleep_for(milliseconds(1200));
    slime_extra extra = SLIME_EXTRA_INIT;
    extra.flags = SLIME_MORE | SLIME_COMPLETES;
    extra.deadline_ns = 20'000'000;
    const slime_assignment piece = {local, here.remote(peer, other.blob_of(other.add(theirs))), 0,
                                    0, 8};
    slime_request request = 0;
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(slime_submit(here.engine, peer, SLIME_WRITE, &piece, 1, &extra, &request), SLIME_OK);
    slime_completion one;
    for (size_t count = 0; count == 0;) {
      count = 1;
      ASSERT_EQ(slime_completed(here.engine, &one, &count), SLIME_OK);
      std::this_thread::sleep_for(milliseconds(1));
    }
    in_time = std::chrono::steady_clock::now() - begin < std::chrono::seconds(1) ? in_time + 1 : 0;
  }
  EXPECT_EQ(in_time, 4);
}

}  // namespace
}  // namespace slime
