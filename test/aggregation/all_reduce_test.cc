// Allreduce over a software switch in this process, in every type, and what callers may do wrong.
#include <atomic>
#include <cstring>

#include "test/aggregation/support.h"
#include "test/support/local_switch.h"

namespace slime::aggregation {
namespace {

// The sums of four ranks fit all types exactly; bfloat16 has 8 bits.
int value_of(size_t i, uint32_t rank) { return static_cast<int>(i * (rank + 1) % 29); }

int expected(size_t i, uint32_t ranks, Op op) {
  int result = value_of(i, 0);
  for (uint32_t rank = 1; rank < ranks; ++rank) {
    const int value = value_of(i, rank);
    if (op == Op::kSum) result += value;
    if (op == Op::kMin) result = std::min(result, value);
    if (op == Op::kMax) result = std::max(result, value);
  }
  return result;
}

// Unaligned on purpose, with guards before and behind.
class Tensor {
 public:
  static constexpr size_t kGuard = 13;
  Tensor(DataType type, size_t count)
      : type_(type), count_(count), bytes_(2 * kGuard + count * element_bytes(type), kMark) {}

  void fill(uint32_t rank) {
    for (size_t i = 0; i < count_; ++i) put(type_, data(), i, value_of(i, rank));
  }
  std::byte* data() { return bytes_.data() + kGuard; }
  size_t count_wrong(uint32_t ranks, Op op) {
    size_t wrong = 0;
    for (size_t i = 0; i < count_; ++i) wrong += get(type_, data(), i) != expected(i, ranks, op);
    for (size_t i = 0; i < kGuard; ++i) {
      wrong += (bytes_[i] != kMark) + (bytes_[bytes_.size() - 1 - i] != kMark);
    }
    return wrong;
  }

 private:
  static constexpr std::byte kMark{0xa5};
  const DataType type_;
  const size_t count_;
  std::vector<std::byte> bytes_;
};

void reduce_and_check(Context& context, DataType type, Op op, size_t count, bool in_place) {
  Tensor send(type, count), receive(type, count);
  send.fill(context.rank());
  Tensor& result = in_place ? send : receive;
  EXPECT_OK(context.all_reduce({send.data(), result.data(), count, type, op}));
  EXPECT_EQ(result.count_wrong(context.ranks(), op), 0u)
      << name_of(type) << ", op " << static_cast<int>(op) << ", " << count << " elements, rank "
      << context.rank() << (in_place ? ", in place" : "");
}

class AllReduce : public testing::Test {
 protected:
  LocalSwitch switch_;
};

class AllReduceRanks : public AllReduce, public testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, AllReduceRanks, testing::Values(1, 2, 3, 4));

TEST_P(AllReduceRanks, EveryTypeAndOperation) {
  Group group(options_for(GetParam(), switch_.address()));
  ASSERT_TRUE(group.well());
  group.each([](Context& context, uint32_t) {
    for (const DataType type : kAllTypes) {
      for (const Op op : {Op::kSum, Op::kMin, Op::kMax}) {
        if (op != Op::kSum && is_float_type(type)) continue;
        for (const size_t count : {size_t{0}, size_t{1}, size_t{777}, size_t{9001}}) {
          reduce_and_check(context, type, op, count, count % 2 == 1);
        }
      }
    }
    reduce_and_check(context, DataType::kFloat32, Op::kSum, 300'000, true);
    reduce_and_check(context, DataType::kUint8, Op::kSum, 300'000, false);
  });
}

TEST_F(AllReduce, RunsManyAtOnce) {
  Group group(options_for(3, switch_.address()));
  ASSERT_TRUE(group.well());
  group.each([](Context& context, uint32_t rank) {
    constexpr size_t kOperations = 20;
    std::vector<Tensor> tensors;
    std::vector<Request> requests(kOperations);
    for (size_t i = 0; i < kOperations; ++i) tensors.emplace_back(kAllTypes[i % 9], i * 100);
    for (size_t i = 0; i < kOperations; ++i) {
      tensors[i].fill(rank);
      EXPECT_OK(context.all_reduce_async(
          {tensors[i].data(), tensors[i].data(), i * 100, kAllTypes[i % 9], Op::kSum},
          &requests[i]));
    }
    bool done = false;  // the last first
    while (!done && !testing::Test::HasFailure()) EXPECT_OK(context.test(requests.back(), &done));
    for (size_t i = 0; i < kOperations; ++i) {
      EXPECT_OK(context.wait(requests[i], 20));
      EXPECT_EQ(tensors[i].count_wrong(3, Op::kSum), 0u) << i;
    }
    EXPECT_OK(context.test(requests[0], &done));
    EXPECT_TRUE(done) << "done stays done";
  });
}

TEST_F(AllReduce, RefusesOneMoreThanItTakes) {
  Group group(options_for(2, switch_.address()));
  ASSERT_TRUE(group.well());
  std::vector<int32_t> data[2] = {std::vector<int32_t>(65, 1), std::vector<int32_t>(65, 2)};
  std::vector<Request> requests[2] = {std::vector<Request>(65), std::vector<Request>(65)};
  const auto start = [&](size_t rank, size_t i) {
    return group[rank].all_reduce_async({&data[rank][i], &data[rank][i], 1, DataType::kInt32},
                                        &requests[rank][i]);
  };
  for (size_t i = 0; i < Context::kMaxOutstanding; ++i) EXPECT_OK(start(0, i));
  expect_fails(start(0, 64), Code::kWouldBlock, "64 operations are under way");
  EXPECT_EQ(requests[0][64].id, 0u);
  for (size_t i = 0; i < Context::kMaxOutstanding; ++i) EXPECT_OK(start(1, i));
  group.each([&](Context& context, uint32_t rank) {
    for (size_t i = 0; i < Context::kMaxOutstanding; ++i) {
      EXPECT_OK(context.wait(requests[rank][i], 20));
    }
    EXPECT_OK(start(rank, 64));
    EXPECT_OK(context.wait(requests[rank][64], 20));
    EXPECT_EQ(data[rank], std::vector<int32_t>(65, 3));
  });
}

// The synchronous call waits for a place instead.
TEST_F(AllReduce, WaitsForAPlace) {
  Group group(options_for(2, switch_.address()));
  ASSERT_TRUE(group.well());
  group.each([&](Context& context, uint32_t) {
    std::vector<int32_t> data(65, 5);
    std::vector<Request> requests(Context::kMaxOutstanding);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_OK(context.all_reduce_async({&data[i], &data[i], 1, DataType::kInt32}, &requests[i]));
    }
    EXPECT_OK(context.all_reduce({&data[64], &data[64], 1, DataType::kInt32}, 20));
    for (const Request& request : requests) EXPECT_OK(context.wait(request, 20));
    EXPECT_EQ(data, std::vector<int32_t>(65, 10));
  });
}

TEST_F(AllReduce, ThreadsMayWaitSideBySide) {
  Group group(options_for(2, switch_.address()));
  ASSERT_TRUE(group.well());
  group.each([&](Context& context, uint32_t) {
    std::vector<float> data[2] = {std::vector<float>(50'000, 1), std::vector<float>(50'000, 2)};
    Request requests[2];
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_OK(context.all_reduce_async({data[i].data(), data[i].data(), 50'000}, &requests[i]));
    }
    each_rank(2, [&](uint32_t i) {
      EXPECT_OK(context.wait(requests[i], 20));
      EXPECT_EQ(data[i], std::vector<float>(50'000, i == 0 ? 2 : 4));
      EXPECT_GT(context.statistics().results, 0u);
    });
  });
}

TEST_F(AllReduce, WaitMayBeRepeatedAfterItsTimeout) {
  Group group(options_for(2, switch_.address()));
  ASSERT_TRUE(group.well());
  int32_t data[2] = {1, 2};
  Request requests[2];
  EXPECT_OK(group[0].all_reduce_async({&data[0], &data[0], 1, DataType::kInt32}, &requests[0]));
  expect_fails(group[0].wait(requests[0], 0.1), Code::kTimeout, "rank 0 of 2");
  EXPECT_OK(group[1].all_reduce_async({&data[1], &data[1], 1, DataType::kInt32}, &requests[1]));
  group.each([&](Context& context, uint32_t rank) {
    EXPECT_OK(context.wait(requests[rank], 20));
    EXPECT_EQ(data[rank], 3);
  });
}

// Its caller has the buffer back, so nothing may come into it any more.
TEST_F(AllReduce, TimeoutOfTheSynchronousCallIsForGood) {
  Group group(options_for(2, switch_.address()));
  ASSERT_TRUE(group.well());
  int32_t data = 7;
  expect_fails(group[0].all_reduce({&data, &data, 1, DataType::kInt32}, 0.1), Code::kTimeout,
               "at its end");
  EXPECT_EQ(data, 7);
  expect_fails(group[0].all_reduce({&data, &data, 1, DataType::kInt32}, 0.1), Code::kTimeout,
               "at its end");
  EXPECT_GT(group[0].statistics().sent, 0u) << "what was counted stays";
}

TEST_F(AllReduce, NamesWhatIsWrongWithArguments) {
  Group group(options_for(1, switch_.address()));
  ASSERT_TRUE(group.well());
  Context& context = group[0];
  std::vector<float> data(8);
  const auto refused = [&](const Reduction& reduction, Code code, const std::string& part) {
    Request request;
    expect_fails(context.all_reduce(reduction), code, part);
    expect_fails(context.all_reduce_async(reduction, &request), code, part);
    EXPECT_EQ(request.id, 0u);
  };
  float* const at = data.data();
  refused({nullptr, at, 1}, Code::kInvalid, "NULL");
  refused({at, nullptr, 1}, Code::kInvalid, "NULL");
  refused({at, at + 1, 2}, Code::kInvalid, "overlap");
  refused({at + 1, at, 2}, Code::kInvalid, "overlap");
  for (const size_t count : {SIZE_MAX / 2, size_t{1} << 62, size_t{1} << 61}) {
    refused({at, at, count}, Code::kInvalid,
            std::to_string(count) + " elements of 4 bytes do not fit into memory");
  }
  refused({at, at, 1, static_cast<DataType>(9)}, Code::kInvalid, "no type 9");
  refused({at, at, 1, DataType::kInt32, static_cast<Op>(3)}, Code::kInvalid, "operation 3");
  refused({at, at, 1, DataType::kFloat32, Op::kMax}, Code::kUnsupported, "of integers only");
  EXPECT_OK(context.all_reduce({nullptr, nullptr, 0}));
  EXPECT_OK(context.all_reduce({at, at + 1, 1}));  // side by side
  bool done = false;
  expect_fails(context.test(Request{}, &done), Code::kInvalid, "not started by this Context");
  expect_fails(context.test(Request{99}, &done), Code::kInvalid, "not started by this Context");
  expect_fails(context.wait(Request{99}), Code::kInvalid, "not started by this Context");
  expect_fails(context.test(Request{1}, nullptr), Code::kInvalid, "done is NULL");
  expect_fails(context.all_reduce_async({at, at, 1}, nullptr), Code::kInvalid, "request is NULL");
  EXPECT_EQ(element_bytes(DataType::kBfloat16), 2u);
  EXPECT_EQ(element_bytes(static_cast<DataType>(9)), 0u);
}

// Whose operations differ, hears so: the switch does not add what does not fit.
TEST_F(AllReduce, DifferentOperationsFail) {
  int32_t data[2] = {1, 1};  // longer than the group, which may still write there
  Group group(options_for(2, switch_.address()));
  ASSERT_TRUE(group.well());
  Request requests[2];
  for (const size_t rank : {0, 1}) {
    const auto type = rank == 0 ? DataType::kInt32 : DataType::kUint8;
    EXPECT_OK(group[rank].all_reduce_async({&data[rank], &data[rank], 1, type}, &requests[rank]));
  }
  bool refused = false;
  for (int i = 0; i < 600 && !refused; ++i) {
    for (const size_t rank : {0, 1}) {
      const Outcome outcome = group[rank].wait(requests[rank], 0.05);
      EXPECT_FALSE(outcome) << "rank " << rank;
      refused = refused || outcome.code == Code::kRemote;
    }
  }
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace slime::aggregation
