// How verbs channels fail: the status, and a sentence that says where, what and what to do.
#include <cerrno>

#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

struct Expected {
  ibv_wc_status completion;
  Status status;
  const char* advice;
};

constexpr Expected kExpected[] = {
    {IBV_WC_LOC_LEN_ERR, Status::kInvalid, "see dmesg on both hosts"},
    {IBV_WC_LOC_QP_OP_ERR, Status::kSystem, "this port went down or lost its address"},
    {IBV_WC_LOC_EEC_OP_ERR, Status::kRemote, "see dmesg on both hosts"},
    {IBV_WC_LOC_PROT_ERR, Status::kInvalid, "the memory was deregistered, or unmapped"},
    {IBV_WC_WR_FLUSH_ERR, Status::kRemote, "look for an earlier message"},
    {IBV_WC_MW_BIND_ERR, Status::kRemote, "see dmesg on both hosts"},
    {IBV_WC_BAD_RESP_ERR, Status::kRemote, "see dmesg on both hosts"},
    {IBV_WC_LOC_ACCESS_ERR, Status::kRemote, "see dmesg on both hosts"},
    {IBV_WC_REM_INV_REQ_ERR, Status::kRemote, "the peer's NIC refused the work"},
    {IBV_WC_REM_ACCESS_ERR, Status::kRemote, "the peer's NIC refused the address or key"},
    {IBV_WC_REM_OP_ERR, Status::kRemote, "the peer's NIC refused the work"},
    {IBV_WC_RETRY_EXC_ERR, Status::kRemote, "the peer's NIC does not answer"},
    {IBV_WC_RNR_RETRY_EXC_ERR, Status::kRemote, "the peer has no receive posted"},
    {IBV_WC_LOC_RDD_VIOL_ERR, Status::kRemote, "see dmesg on both hosts"},
    {IBV_WC_REM_INV_RD_REQ_ERR, Status::kRemote, "see dmesg on both hosts"},
    {IBV_WC_REM_ABORT_ERR, Status::kRemote, "see dmesg on both hosts"},
    {IBV_WC_INV_EECN_ERR, Status::kRemote, "see dmesg on both hosts"},
    {IBV_WC_INV_EEC_STATE_ERR, Status::kRemote, "see dmesg on both hosts"},
    {IBV_WC_FATAL_ERR, Status::kSystem, "see dmesg on both hosts"},
    {IBV_WC_RESP_TIMEOUT_ERR, Status::kRemote, "see dmesg on both hosts"},
    {IBV_WC_GENERAL_ERR, Status::kRemote, "see dmesg on both hosts"},
};

TEST(VerbsFailure, EachCompletionStatusSaysWhereWhatAndWhatToDo) {
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(expected.completion);
    TestNics world;
    TestPair pair(world);
    ASSERT_TRUE(pair.connect());
    world.nics.fail_next(expected.completion);
    ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
    const Error error = failure_of(world, *pair.left);
    const std::string number = std::to_string(expected.completion);
    EXPECT_EQ(error.status, expected.status);
    EXPECT_EQ(error.code, expected.completion);
    EXPECT_THAT(error.what, HasSubstr("rail fake0 (qp 0x"));
    EXPECT_THAT(error.what, HasSubstr(" to ::ffff:10.77.0.2 (qp 0x"));
    EXPECT_THAT(error.what, HasSubstr("): fake status " + number + " (status " + number + ", "));
    EXPECT_THAT(error.what, HasSubstr("vendor 0x81), with 1 work not delivered; "));
    EXPECT_THAT(error.what, HasSubstr(expected.advice));
  }
}

TEST(VerbsFailure, AFailureIsForGood) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  world.nics.fail_next(IBV_WC_RETRY_EXC_ERR);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
  const std::string what = failure_of(world, *pair.left).what;
  Status status = Status::kOk;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(post_one(*pair.left, Work()), Status::kRemote);
    EXPECT_TRUE(poll_once(*pair.left, &status).empty());
    EXPECT_EQ(status, Status::kRemote);
    EXPECT_EQ(pair.left->connect(pair.right->address()), Status::kRemote);
  }
  EXPECT_EQ(pair.left->failure().what, what) << "the first one, not what was flushed after it";
  pair.left->fence();
  EXPECT_TRUE(poll_once(*pair.left, &status).empty());
  EXPECT_EQ(status, Status::kOk);
}

TEST(VerbsFailure, WhatWasDeliveredBeforeIsReportedBefore) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
  world.settle();
  world.nics.fail_next(IBV_WC_REM_OP_ERR);
  ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
  world.settle();
  Status status = Status::kOk;
  const std::vector<Done> done = poll_all(*pair.left, &status);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].kind, Done::Kind::kSent);
  EXPECT_EQ(failure_of(world, *pair.left).code, IBV_WC_REM_OP_ERR);
}

TEST(VerbsFailure, PostingBeforeConnectIsTheCallersFault) {
  TestNics world;
  TestPair pair(world);
  EXPECT_EQ(post_one(*pair.left, Work()), Status::kInvalid);
  EXPECT_THAT(pair.left->failure().what,
              HasSubstr("rail fake0: a work was posted before the channel was connected"));
  Status status = Status::kOk;
  EXPECT_TRUE(poll_once(*pair.left, &status).empty());
  EXPECT_EQ(status, Status::kInvalid);
  EXPECT_EQ(pair.left->connect(pair.right->address()), Status::kInvalid);
}

// A work that no correct caller posts: nothing of its batch is sent, however small it is.
void expect_refused(const std::function<void(Work*)>& spoil) {
  for (const uint32_t length : {8u, 4'096u}) {
    SCOPED_TRACE(length);
    TestNics world;
    TestPair pair(world);
    ASSERT_TRUE(pair.connect());
    TestBuffer from(*world.left, length), to(*world.right, length, 7);
    std::vector<Work> works(3, work_of(from, to, length));
    spoil(&works[2]);
    const uint64_t before = world.nics.counts(0).sends;
    size_t taken = 9;
    ASSERT_EQ(pair.left->post(works, &taken), Status::kInvalid);
    EXPECT_EQ(taken, 0u);
    EXPECT_EQ(world.nics.counts(0).sends, before);
    const Error error = failure_of(world, *pair.left);
    EXPECT_EQ(error.status, Status::kInvalid);
    EXPECT_THAT(error.what, HasSubstr("rail fake0 (qp 0x"));
    EXPECT_THAT(error.what, HasSubstr("nothing was sent"));
    EXPECT_EQ(to.bytes(), std::vector(length, std::byte{7}));
  }
}

TEST(VerbsFailure, ARemoteKeyOfMoreThan32BitsIsRefused) {
  expect_refused([](Work* work) { work->remote_key |= uint64_t{1} << 32; });
  expect_refused([](Work* work) { work->remote_key |= uint64_t{1} << 63; });
}

TEST(VerbsFailure, AWorkFromMemoryThatIsNotRegisteredIsRefused) {
  expect_refused([](Work* work) { work->local_key ^= uint64_t{1} << 40; });
  expect_refused([](Work* work) { work->local_key = 0; });
}

TEST(VerbsFailure, AWorkOutsideItsMemoryIsRefused) {
  expect_refused([](Work* work) { work->local += 1; });
  expect_refused([](Work* work) { work->local -= 1; });
  expect_refused([](Work* work) { work->length += 1; });
  expect_refused([](Work* work) { work->local = nullptr; });
}

TEST(VerbsFailure, AWorkThatIsLongerThanAMessageIsRefused) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  const auto most = static_cast<uint32_t>(world.left->caps().max_message_bytes);
  TestBuffer from(*world.left, most + 1), to(*world.right, most + 1);
  EXPECT_EQ(post_one(*pair.left, work_of(from, to, most)), Status::kOk);
  EXPECT_EQ(post_one(*pair.left, work_of(from, to, most + 1)), Status::kInvalid);
  EXPECT_THAT(pair.left->failure().what, HasSubstr("longer than 8388608"));
}

TEST(VerbsFailure, AnEmptyWorkNeedsNeitherAddressNorKey) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  Work work;
  work.local_key = work.remote_key = UINT64_MAX;
  work.remote_address = UINT64_MAX;
  work.immediate = 5;
  EXPECT_EQ(post_one(*pair.left, work), Status::kOk);
  world.settle();
  Status status = Status::kOk;
  EXPECT_EQ(poll_all(*pair.right, &status).size(), 1u);
  EXPECT_EQ(poll_all(*pair.left, &status).size(), 1u);
}

// The NIC of the peer refuses the key, and both queue pairs end.
TEST(VerbsFailure, BothEndsLearnThatMemoryOfThePeerIsGone) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  TestBuffer from(*world.left, 4'096), to(*world.right, 4'096);
  const Work work = work_of(from, to, 4'096);
  to.deregister();
  ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
  const Error left = failure_of(world, *pair.left), right = failure_of(world, *pair.right);
  EXPECT_EQ(left.code, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(right.code, IBV_WC_WR_FLUSH_ERR);
  EXPECT_THAT(right.what, HasSubstr("rail fake1 (qp 0x"));
}

TEST(VerbsFailure, APostThatTheDriverRefusesHasItsCode) {
  for (const auto& [code, status] :
       {std::pair(EIO, Status::kSystem), {ENOMEM, Status::kNoMemory}}) {
    TestNics world;
    TestPair pair(world);
    ASSERT_TRUE(pair.connect());
    world.nics.fail_sends(0, code);
    const std::vector<Work> works(4);
    size_t taken = 9;
    EXPECT_EQ(pair.left->post(works, &taken), status);
    EXPECT_EQ(taken, 0u);
    EXPECT_EQ(pair.left->failure().code, code);
    EXPECT_THAT(pair.left->failure().what, HasSubstr("ibv_post_send of 4 works failed"));
    EXPECT_THAT(pair.left->failure().what, HasSubstr("rail fake0 (qp 0x"));
  }
}

}  // namespace
}  // namespace slime::verbs
