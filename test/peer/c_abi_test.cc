// libslime as a C program calls it: two engines of one process, over tcp.
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "test/peer/test_engine.h"

namespace slime {
namespace {

TEST(CAbi, ReadsAndWritesMemoryOfAPeer) {
  TestEngine here, there;
  for (const size_t size : {1, 4096, 1 << 20, 64 << 20}) {
    std::vector<char> mine(size), theirs(size);
    std::iota(theirs.begin(), theirs.end(), 1);
    const slime_region local = here.add(mine), owned = there.add(theirs);
    const slime_peer peer = here.know(there);
    const slime_remote remote = here.remote(peer, there.blob_of(owned));
    const slime_assignment all = {local, remote, 0, 0, size};
    slime_result result = here.run(peer, SLIME_READ, all);
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
    EXPECT_EQ(result.bytes, size);
    EXPECT_TRUE(mine == theirs);
    std::fill(mine.begin(), mine.end(), 'w');
    result = here.run(peer, SLIME_WRITE, all);
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
    EXPECT_TRUE(mine == theirs);
    EXPECT_EQ(slime_deregister(there.engine, owned, -1), SLIME_OK);
    result = here.run(peer, SLIME_READ, all);
    EXPECT_EQ(result.status, SLIME_ERR_REMOTE);
    EXPECT_NE(std::strstr(result.text, "deregistered"), nullptr) << result.text;
    EXPECT_EQ(slime_deregister(here.engine, local, -1), SLIME_OK);
  }
}

TEST(CAbi, AnEngineIsAPeerOfItself) {
  std::vector<char> from(5000, 'f'), to(5000, 't');
  TestEngine only;
  const slime_region local = only.add(from), target = only.add(to);
  const slime_peer self = only.know(only);
  const slime_remote remote = only.remote(self, only.blob_of(target));
  const slime_result result = only.run(self, SLIME_WRITE, {local, remote, 0, 0, 5000});
  EXPECT_EQ(result.status, SLIME_OK) << result.text;
  EXPECT_EQ(from, to);
  slime_request request = 0;
  EXPECT_EQ(only.end(only.notify(self, "me")).status, SLIME_OK);
  const auto came = only.fetch(2);
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].first, self);
  slime_extra extra = SLIME_EXTRA_INIT;
  extra.flags = SLIME_WITH_IMMEDIATE;
  const slime_assignment none = {local, remote, 0, 0, 0};
  ASSERT_EQ(slime_submit(only.engine, self, SLIME_WRITE, &none, 1, &extra, &request), SLIME_OK);
  EXPECT_EQ(only.end(request).status, SLIME_OK);
  ASSERT_EQ(slime_expect(only.engine, self, 0, 1, nullptr, &request), SLIME_OK);
  EXPECT_EQ(only.end(request).status, SLIME_OK);
}

// Both dial at the same time, and use one link.
TEST(CAbi, TwoEnginesThatDialEachOtherBothGetThrough) {
  for (int round = 0; round < 20; ++round) {
    std::vector<char> a(100, 'a'), b(100, 'b');
    TestEngine left, right;
    const slime_region in_left = left.add(a), in_right = right.add(b);
    const slime_peer to_right = left.know(right), to_left = right.know(left);
    slime_remote remote_of_left = 0, remote_of_right = 0;
    ASSERT_EQ(slime_import(left.engine, to_right, right.blob_of(in_right).data(), &remote_of_left),
              SLIME_OK);
    ASSERT_EQ(slime_import(right.engine, to_left, left.blob_of(in_left).data(), &remote_of_right),
              SLIME_OK);
    const slime_assignment first = {in_left, remote_of_left, 0, 50, 50};
    const slime_assignment second = {in_right, remote_of_right, 0, 50, 50};
    slime_request one = 0, other = 0;
    ASSERT_EQ(slime_submit(left.engine, to_right, SLIME_WRITE, &first, 1, nullptr, &one), SLIME_OK);
    ASSERT_EQ(slime_submit(right.engine, to_left, SLIME_WRITE, &second, 1, nullptr, &other),
              SLIME_OK);
    slime_result result = SLIME_RESULT_INIT;
    EXPECT_EQ(slime_wait(left.engine, one, 20'000'000'000, &result), SLIME_OK);
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
    EXPECT_EQ(slime_wait(right.engine, other, 20'000'000'000, &result), SLIME_OK);
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
    EXPECT_EQ(std::string(b.begin() + 50, b.end()), std::string(50, 'a'));
    EXPECT_EQ(std::string(a.begin() + 50, a.end()), std::string(50, 'b'));
  }
}

TEST(CAbi, ThreadsSubmitToOnePeerAtOnce) {
  constexpr size_t kThreads = 4, kPieces = 2000, kBytes = 512;
  std::vector<char> mine(kThreads * kPieces * kBytes), theirs(mine.size());
  TestEngine here, there;
  std::iota(mine.begin(), mine.end(), 3);
  const slime_region local = here.add(mine);
  const slime_peer peer = here.know(there);
  const slime_remote remote = here.remote(peer, there.blob_of(there.add(theirs)));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<slime_request> open;
      for (size_t i = 0; i < kPieces; ++i) {
        const uint64_t offset = (t * kPieces + i) * kBytes;
        const slime_assignment piece = {local, remote, offset, offset, kBytes};
        slime_request request = 0;
        ASSERT_EQ(slime_submit(here.engine, peer, SLIME_WRITE, &piece, 1, nullptr, &request),
                  SLIME_OK);
        open.push_back(request);
      }
      for (const slime_request request : open) {
        slime_result result = SLIME_RESULT_INIT;
        ASSERT_EQ(slime_wait(here.engine, request, -1, &result), SLIME_OK);
        ASSERT_EQ(result.status, SLIME_OK) << result.text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(mine == theirs);
}

TEST(CAbi, SaysWhatIsWrongWithARequest) {
  std::vector<char> mine(100), theirs(100);
  TestEngine here, there;
  const slime_region local = here.add(mine), owned = there.add(theirs);
  const slime_peer peer = here.know(there);
  const slime_remote remote = here.remote(peer, there.blob_of(owned));
  const struct {
    slime_assignment piece;
    const char* says;
  } cases[] = {
      {{local + 1, remote, 0, 0, 1}, "no such local region"},
      {{0, remote, 0, 0, 1}, "no such local region"},
      {{local, 0, 0, 0, 1}, "no such region of that peer"},
      {{local, remote + 1, 0, 0, 1}, "no such region of that peer"},
      {{remote, local, 0, 0, 1}, "no such local region"},
      {{local, remote, 0, 0, 101}, "not inside the local region of 100 bytes"},
      {{local, remote, 1, 0, UINT64_MAX}, "not inside the local region"},
      {{local, remote, 0, 90, 11}, "not inside the remote region of 100 bytes"},
  };
  for (const auto& [piece, says] : cases) {
    slime_request request = 0;
    EXPECT_EQ(slime_submit(here.engine, peer, SLIME_READ, &piece, 1, nullptr, &request),
              SLIME_ERR_INVALID);
    EXPECT_NE(std::strstr(slime_last_error(), says), nullptr) << slime_last_error();
  }
}

TEST(CAbi, MemoryThatNoNicReachesIsRefused) {
  std::vector<char> memory(100);
  TestEngine here;
  slime_region region = 0;
  slime_memory terms = SLIME_MEMORY_INIT;
  const auto refused = [&](int status, const char* says) {
    EXPECT_EQ(slime_register(here.engine, memory.data(), memory.size(), &terms, &region), status);
    EXPECT_NE(std::strstr(slime_last_error(), says), nullptr) << slime_last_error();
  };
  terms.kind = SLIME_CUDA;
  refused(SLIME_ERR_UNSUPPORTED, "register host memory");
  terms.kind = SLIME_CUDA_DMA_BUF;
  refused(SLIME_ERR_UNSUPPORTED, "register host memory");
  terms.dma_buf = -1;
  refused(SLIME_ERR_INVALID, "memory.dma_buf is no descriptor");
  terms.kind = SLIME_CUDA_DMA_BUF + 1;
  refused(SLIME_ERR_INVALID, "memory.kind is unknown");
}

}  // namespace
}  // namespace slime
