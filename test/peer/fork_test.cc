// Children of fork(2) that have a copy of an engine, as data loaders do.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "test/peer/test_engine.h"

namespace slime {
namespace {

constexpr size_t kBytes = 4096;
constexpr unsigned kPatienceS = 60;

struct Pair {
  Pair() : local(here.add(mine)), peer(here.know(there)) {
    remote = here.remote(peer, there.blob_of(there.add(theirs)));
  }
  bool writes() {
    return here.run(peer, SLIME_WRITE, {local, remote, 0, 0, kBytes}).status == SLIME_OK;
  }
  std::vector<char> mine = std::vector<char>(kBytes, 'm'), theirs = std::vector<char>(kBytes);
  TestEngine here, there;
  slime_region local;
  slime_peer peer;
  slime_remote remote;
};

// In the child. Returns which of its expectations fails; 0: none.
int use_copy(Pair& pair) {
  const slime_assignment piece = {pair.local, pair.remote, 0, 0, kBytes};
  slime_request request = 0;
  if (slime_submit(pair.here.engine, pair.peer, SLIME_WRITE, &piece, 1, nullptr, &request) !=
      SLIME_ERR_INVALID)
    return 1;
  if (std::string(slime_last_error()).find("forked from") == std::string::npos) return 2;
  if (slime_deregister(pair.here.engine, pair.local, -1) != SLIME_ERR_INVALID) return 3;
  if (slime_close(pair.here.engine) != SLIME_OK) return 4;
  return slime_close(pair.there.engine) == SLIME_OK ? 0 : 5;
}

// Status of the child; -1: it did not end by itself.
int in_child(const std::function<int()>& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kPatienceS);
    ::_exit(call());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Whatever locks other threads have at that moment.
TEST(Fork, ChildrenMayCloseTheirCopiesAndTheEngineGoesOn) {
  Pair pair;
  ASSERT_TRUE(pair.writes());
  std::atomic<bool> ends = false;
  std::atomic<int> bad = 0;
  std::thread writer([&] {
    while (!ends) bad += !pair.writes();
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(in_child([&] { return use_copy(pair); }), 0) << i;
  ends = true;
  writer.join();
  EXPECT_EQ(bad, 0);
  EXPECT_TRUE(pair.writes());
}

#if !defined(__SANITIZE_THREAD__)  // it allows such children no threads
TEST(Fork, ChildrenMayOpenEnginesOfTheirOwn) {
  Pair pair;
  ASSERT_TRUE(pair.writes());
  const auto address = pair.there.address();
  const auto region = pair.there.blob_of(pair.there.add(pair.theirs));
  const int status = in_child([&] {
    std::vector<char> room(kBytes);
    TestEngine own;
    const slime_region local = own.add(room);
    const slime_peer peer = own.know(address);
    const slime_remote remote = own.remote(peer, region);
    const bool read = own.run(peer, SLIME_READ, {local, remote, 0, 0, kBytes}).status == SLIME_OK;
    own.close();
    return read && room == std::vector<char>(kBytes, 'm') ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(pair.writes());
}
#endif

}  // namespace
}  // namespace slime
