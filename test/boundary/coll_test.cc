// The CollNet tables without a switch: what NCCL asks before it connects, and calls that no correct
// caller makes.
#include "test/boundary/support/coll_api.h"

namespace slime::boundary {
namespace {

constexpr const char* kNobody = "127.0.0.1:1";  // no switch is there

class Coll : public CollTest {};
SLIME_FOR_ALL_VERSIONS(Coll);

TEST_P(Coll, TablesAreCompleteAndNamed) {
  EXPECT_STREQ(coll_.name(), "SLIME");
  EXPECT_TRUE(coll_.complete());
}

TEST_P(Coll, HasNoDevicesWithoutASwitch) {
  init();
  int count = -1;
  EXPECT_EQ(coll_.devices(&count), nccl::kSuccess);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(net_.devices(&count), nccl::kSuccess);
  EXPECT_EQ(count, 1) << "the net has";
  finalize_both();
}

// Results that mean nothing are not for a training run.
TEST_P(Coll, HasNoDevicesInADebuggingMode) {
  set("NCCL_SLIME_SWITCH", kNobody);
  set("NCCL_SLIME_DEBUG_MODE", "instant");
  init();
  int count = -1;
  EXPECT_EQ(coll_.devices(&count), nccl::kSuccess);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(Log::count(nccl::kLogWarn, "NCCL_SLIME_DEBUG_MODE=instant"), 1u) << Log::text();
  EXPECT_EQ(net_.devices(&count), nccl::kSuccess);
  EXPECT_EQ(count, 1) << "the net has";
  finalize_both();
}

// NCCL puts both into one topology by path and name, and uses one's numbers for the other.
TEST_P(Coll, HasTheDevicesOfTheNetWithASwitch) {
  set("NCCL_SLIME_SWITCH", kNobody);
  init();
  int count = -1;
  EXPECT_EQ(coll_.devices(&count), nccl::kSuccess);
  EXPECT_EQ(count, 1);
  AnyProperties reduces, properties;
  EXPECT_EQ(coll_.properties(0, &reduces), nccl::kSuccess);
  EXPECT_EQ(net_.properties(0, &properties), nccl::kSuccess);
  EXPECT_STREQ(reduces.name, properties.name);
  refused(coll_.devices(nullptr), "ndev is NULL");
  refused(coll_.properties(1, &properties), "device 1 does not exist");
  finalize_both();
}

TEST_P(Coll, SupportsSumsOfNumbersUpTo64BitsAndExtremesOfIntegers) {
  init();
  for (int type = -1; type <= 13; ++type) {
    const bool is_integer = type >= nccl::kInt8 && type <= nccl::kUint64;
    const bool is_float =
        type == nccl::kFloat16 || type == nccl::kFloat32 || type == nccl::kBfloat16;
    for (int op = -1; op <= 6; ++op) {
      const bool wanted = (op == nccl::kSum && (is_integer || is_float)) ||
                          ((op == nccl::kMax || op == nccl::kMin) && is_integer);
      int supported = 77;
      EXPECT_EQ(coll_.reduce_support(type, op, &supported), nccl::kSuccess);
      EXPECT_EQ(supported, wanted ? 1 : 0) << "type " << type << ", operation " << op;
    }
  }
  refused(coll_.reduce_support(nccl::kInt32, nccl::kSum, nullptr), "supported is NULL");
  finalize_both();
}

TEST_P(Coll, RefusesBadArgumentsOfListen) {
  set("NCCL_SLIME_SWITCH", kNobody);
  init();
  HandleBytes handle{};
  void* listening = &handle;
  refused(coll_.listen(0, nullptr, &listening), "handle is NULL");
  refused(coll_.listen(0, handle.data(), nullptr), "listenComm is NULL");
  refused(coll_.listen(99, handle.data(), &listening), "device 99");
  EXPECT_EQ(listening, &handle);
  EXPECT_EQ(handle, HandleBytes{});
  refused(coll_.close_listen(nullptr), "listenComm");
  refused(coll_.close_listen(&handle), "listenComm");
  finalize_both();
}

// Whatever the reason, NCCL forgets a listenComm whose connect fails, so it must be gone.
TEST_P(Coll, FreesTheListenCommWhenConnectFails) {
  set("NCCL_SLIME_SWITCH", kNobody);
  init();
  const size_t before = open_descriptors();
  HandleBytes handle{};
  void* handles[2] = {handle.data(), nullptr};
  const auto fails = [&](void** given, int ranks, int rank, const std::string& part) {
    void* listening = nullptr;
    ASSERT_EQ(coll_.listen(0, handle.data(), &listening), nccl::kSuccess);
    EXPECT_GT(open_descriptors(), before);
    void* comm = &handle;
    refused(coll_.connect(given, ranks, rank, listening, &comm), part);
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(open_descriptors(), before);
    refused(coll_.close_listen(listening), "listenComm");
  };
  fails(nullptr, 2, 0, "handles is NULL");
  fails(handles, 2, 0, "a handle is NULL");
  fails(handles, 0, 0, "rank 0 of 0");
  fails(handles, 1, 1, "rank 1 of 1");
  fails(handles, 1, -1, "rank -1 of 1");
  void* comm = &handle;
  refused(coll_.connect(handles, 1, 0, nullptr, &comm), "listenComm");
  EXPECT_EQ(comm, nullptr);
  refused(coll_.connect(handles, 1, 0, &handle, nullptr), "collComm is NULL");
  finalize_both();
}

class CollConnect : public CollTest {
 protected:
  // Rank 0 of `ranks`, whose other ranks never come. Returns the seconds it took to fail.
  double fail_alone(int ranks, ResultCode* code) {
    const size_t before = open_descriptors();
    std::array<HandleBytes, 2> bytes{};
    void *listening = nullptr, *other = nullptr, *comm = &bytes;
    EXPECT_EQ(coll_.listen(0, bytes[0].data(), &listening), nccl::kSuccess);
    EXPECT_EQ(coll_.listen(0, bytes[1].data(), &other), nccl::kSuccess);
    void* handles[2] = {bytes[0].data(), bytes[1].data()};
    const auto began = std::chrono::steady_clock::now();
    *code = coll_.connect(handles, ranks, 0, listening, &comm);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(coll_.close_listen(other), nccl::kSuccess);
    EXPECT_TRUE(wait_until([&] { return open_descriptors() == before; }));
    Log::clear();
    refused(coll_.close_listen(listening), "listenComm");
    return took.count();
  }
};
SLIME_FOR_VERSIONS(CollConnect, 6, 8, 10, 12);

TEST_P(CollConnect, FailsSoonWhereNoSwitchIs) {
  set("NCCL_SLIME_SWITCH", kNobody);
  init();
  ResultCode code = nccl::kSuccess;
  EXPECT_LT(fail_alone(1, &code), 30);
  EXPECT_NE(code, nccl::kSuccess);
  finalize_both();
}

TEST_P(CollConnect, FailsInTimeWhenAMemberNeverComes) {
  set("NCCL_SLIME_SWITCH", kNobody);
  set("NCCL_SLIME_CONNECT_TIMEOUT", "1");
  init();
  ResultCode code = nccl::kSuccess;
  EXPECT_LT(fail_alone(2, &code), 30);
  EXPECT_NE(code, nccl::kSuccess);
  finalize_both();
}

TEST_P(Coll, RefusesUnknownComms) {
  set("NCCL_SLIME_SWITCH", kNobody);
  init();
  HandleBytes handle{};
  void* listening = nullptr;
  ASSERT_EQ(coll_.listen(0, handle.data(), &listening), nccl::kSuccess);
  int32_t memory[4] = {};
  void *request = this, *mhandle = this;
  for (void* comm : {static_cast<void*>(nullptr), listening}) {
    refused(coll_.reg_mr(comm, memory, 16, nccl::kPointerHost, &mhandle), "collComm");
    refused(coll_.iallreduce(comm, {.send = memory, .receive = memory, .count = 4}, &request),
            "collComm");
    refused(coll_.iflush(comm, &request), "collComm");
  }
  refused(coll_.reg_dma_buf(nullptr, memory, 16, 3, &mhandle), "collComm");
  refused(coll_.dereg_mr(nullptr, memory), "collComm");
  refused(coll_.close_coll(nullptr), "collComm");
  refused(coll_.close_coll(memory), "collComm");
  refused(coll_.close_coll(listening), "collComm");
  EXPECT_EQ(request, this);
  EXPECT_EQ(mhandle, this);
  int done = 5;
  refused(coll_.test(nullptr, &done, nullptr), "is not open");
  EXPECT_EQ(done, 5);
  EXPECT_EQ(coll_.close_listen(listening), nccl::kSuccess);
  finalize_both();
}

TEST_P(Coll, ListensAndClosesWithoutLeakingDescriptors) {
  set("NCCL_SLIME_SWITCH", kNobody);
  init();
  const size_t before = open_descriptors();
  for (int round = 0; round < 50; ++round) {
    HandleBytes handle{};
    void* listening = nullptr;
    ASSERT_EQ(coll_.listen(0, handle.data(), &listening), nccl::kSuccess);
    ASSERT_NE(listening, nullptr);
    EXPECT_NE(handle, HandleBytes{});
    ASSERT_EQ(coll_.close_listen(listening), nccl::kSuccess);
    refused(coll_.close_listen(listening), "listenComm");
  }
  EXPECT_TRUE(wait_until([&] { return open_descriptors() == before; }));
  finalize_both();
}

}  // namespace
}  // namespace slime::boundary
