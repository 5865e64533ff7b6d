// The data path allocates nothing once it is warm, counted through the tables as NCCL calls them:
// the net over tcp on loopback, and CollNet with a switch.
//
// Counted is what the calling thread allocates inside the calls. A machine that stops threads may
// make a rank late, which is a line in the log, and a line is composed on the heap: rounds with a
// line in them are repeated. All else must be zero, however long it takes.
#include "test/boundary/support/coll_switch.h"
#include "test/boundary/support/net.h"
#include "test/support/heap_hooks.h"

namespace slime::boundary {
namespace {

// Calls a table's function and adds what it has allocated.
class HeapCount {
 public:
  template <typename Call>
  auto of(Call&& call) {
    const uint64_t before = test::heap_allocations();
    const auto result = call();
    allocations_ += test::heap_allocations() - before;
    return result;
  }
  uint64_t take() { return std::exchange(allocations_, 0); }

 private:
  uint64_t allocations_ = 0;
};

// Rounds until `wanted` of them were without a line in the log; none of those may have allocated.
template <typename Round>
void expect_no_allocations(HeapCount& heap, int wanted, Round&& round) {
  for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(round());
  int counted = 0;
  for (int i = 0; i < 20 * wanted && counted < wanted; ++i) {
    Log::clear();
    (void)heap.take();
    ASSERT_NO_FATAL_FAILURE(round());
    const uint64_t allocated = heap.take();
    if (!Log::lines().empty()) continue;
    ASSERT_EQ(allocated, 0u) << "in round " << i;
    ++counted;
  }
  EXPECT_GT(counted, 0);
}

TEST(HeapHooks, CountThisThreadsAllocationsAndThoseOfThePlugin) {
  const Plugin plugin;
  const uint64_t before = test::heap_allocations();
  std::thread([] { delete new std::vector<int>(100); }).join();
  const uint64_t of_the_thread = test::heap_allocations() - before;
  void* volatile memory = ::operator new(10);
  ::operator delete(memory);
  EXPECT_EQ(test::heap_allocations() - before - of_the_thread, 1u);
  const auto net = Api::of(plugin, Api::kNewest);
  const CleanEnvironment environment;
  const uint64_t before_init = test::heap_allocations();
  ASSERT_EQ(net->init(), nccl::kSuccess);
  EXPECT_GT(test::heap_allocations(), before_init + 10) << "init opens devices";
  EXPECT_EQ(net->finalize(), nccl::kSuccess);
}

class HeapOfNet : public EveryVersion {
 protected:
  void open(const char* rails) {
    set("NCCL_SLIME_RAILS_PER_IF", rails);
    ASSERT_EQ(net_.init(), nccl::kSuccess);
    pair_ = std::make_unique<Pair>(net_);
    ASSERT_TRUE(pair_->connected);
    from_ = std::make_unique<Buffer>(net_, pair_->send, kBytes);
    to_ = std::make_unique<Buffer>(net_, pair_->recv, kBytes);
  }
  void TearDown() override {
    from_.reset();
    to_.reset();
    pair_.reset();
    finalize();
  }

  bool done(Open* open) {
    int done = 0;
    if (!open->done && open->request != nullptr) {
      EXPECT_EQ(heap_.of([&] { return net_.test(open->request, &done, open->sizes.data()); }),
                nccl::kSuccess);
      open->done = done != 0;
    }
    return open->done;
  }
  // Two messages are under way at a time, the receives are posted first or last.
  void pass(size_t bytes, bool receive_first) {
    std::array<Open, 2> sent, received;
    const auto size = static_cast<int64_t>(bytes);
    ASSERT_TRUE(wait_until([&] {
      for (size_t i = 0; i < 2; ++i) {
        Open& in = received[i];
        if (in.request == nullptr &&
            (receive_first || sent[i].request != nullptr || bytes > 1024)) {
          EXPECT_EQ(heap_.of([&] {
            return net_.irecv_one(pair_->recv, to_->data(), size, 7, to_->mhandle, &in.request);
          }),
                    nccl::kSuccess);
        }
        Open& out = sent[i];
        if (out.request == nullptr) {
          EXPECT_EQ(heap_.of([&] {
            return net_.isend(pair_->send, from_->data(), size, 7, from_->mhandle, &out.request);
          }),
                    nccl::kSuccess);
        }
      }
      bool all = true;
      for (size_t i = 0; i < 2; ++i) {
        const bool sent_all = done(&sent[i]), received_all = done(&received[i]);
        all = all && sent_all && received_all;
      }
      return all || HasFailure();
    })) << bytes;
    void* flush = nullptr;
    EXPECT_EQ(heap_.of([&] { return net_.iflush(pair_->recv, &flush); }), nccl::kSuccess);
    EXPECT_EQ(flush, nullptr);
  }
  // Empty, eager, by CTS, in stripes.
  void pass_all_sizes() {
    for (const size_t bytes :
         {size_t{0}, size_t{8}, size_t{1024}, size_t{16384}, size_t{70000}, kBytes}) {
      for (const bool receive_first : {true, false}) {
        ASSERT_NO_FATAL_FAILURE(pass(bytes, receive_first));
      }
    }
  }

  static constexpr size_t kBytes = 1 << 20;
  HeapCount heap_;
  std::unique_ptr<Pair> pair_;
  std::unique_ptr<Buffer> from_, to_;
};
SLIME_FOR_VERSIONS(HeapOfNet, 6, 9, 12);

TEST_P(HeapOfNet, OneRailAllocatesNothingOnceWarm) {
  ASSERT_NO_FATAL_FAILURE(open("1"));
  expect_no_allocations(heap_, 100, [&] { pass_all_sizes(); });
}

TEST_P(HeapOfNet, TwoRailsAllocateNothingOnceWarm) {
  ASSERT_NO_FATAL_FAILURE(open("2"));
  expect_no_allocations(heap_, 100, [&] { pass_all_sizes(); });
}

class HeapOfColl : public CollSwitch {
 protected:
  // Both ranks add up `elements`, several operations at a time.
  void add_up(size_t elements) {
    constexpr size_t kOperations = 4;
    void* requests[2 * kOperations] = {};
    size_t ended = 0;
    for (size_t i = 0; i < 2 * kOperations; ++i) {
      Rank& rank = ranks_[i % 2];
      const AllreduceCall call = call_of(rank, 0, elements);
      EXPECT_EQ(heap_.of([&] { return coll_.iallreduce(rank.comm, call, &requests[i]); }),
                nccl::kSuccess);
      ASSERT_NE(requests[i], nullptr);
    }
    ASSERT_TRUE(wait_until([&] {
      for (void*& request : requests) {
        int done = 0, size = 0;
        if (request == nullptr) continue;
        EXPECT_EQ(heap_.of([&] { return coll_.test(request, &done, &size); }), nccl::kSuccess);
        if (done == 0) continue;
        request = nullptr;
        ++ended;
      }
      return ended == 2 * kOperations || HasFailure();
    })) << Log::text();
    void* flush = nullptr;
    EXPECT_EQ(heap_.of([&] { return coll_.iflush(ranks_[0].comm, &flush); }), nccl::kSuccess);
  }

  HeapCount heap_;
};
SLIME_FOR_VERSIONS(HeapOfColl, 6, 9, 12);

TEST_P(HeapOfColl, AllreducesAllocateNothingOnceWarm) {
  expect_no_allocations(heap_, 25, [&] {
    for (const size_t elements : {size_t{1}, size_t{200}, kElements}) {
      ASSERT_NO_FATAL_FAILURE(add_up(elements));
    }
  });
}

}  // namespace
}  // namespace slime::boundary
