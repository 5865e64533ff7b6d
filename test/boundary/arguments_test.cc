// Every function with arguments that no correct caller passes: an error with a sentence, never a
// crash, and nothing written.
#include "test/boundary/support/net.h"

namespace slime::boundary {
namespace {

class Arguments : public EveryVersion {
 protected:
  void SetUp() override {
    ASSERT_EQ(net_.init(), nccl::kSuccess);
    pair_ = std::make_unique<Pair>(net_);
    ASSERT_TRUE(pair_->connected);
    buffer_ = std::make_unique<Buffer>(net_, pair_->recv, 4096);
    Log::clear();
  }
  void TearDown() override {
    buffer_.reset();
    pair_.reset();
    finalize();
  }
  // The call was refused with one sentence that holds `part`.
  void refused(ResultCode code, const std::string& part) {
    EXPECT_EQ(code, nccl::kInternalError);
    EXPECT_EQ(Log::count(nccl::kLogWarn), 1u) << Log::text();
    EXPECT_EQ(Log::count(nccl::kLogWarn, part), 1u) << Log::text();
    Log::clear();
  }
  ResultCode reg(void* comm, void* data, int64_t bytes, void** mhandle) {
    return net_.reg_mr(comm, data, bytes, nccl::kPointerHost, mhandle);
  }
  ResultCode irecv(int n, void** data, int64_t* sizes, int* tags, void** mhandles, void** request) {
    return net_.irecv(pair_->recv, n, data, sizes, tags, mhandles, request);
  }

  std::unique_ptr<Pair> pair_;
  std::unique_ptr<Buffer> buffer_;
};
SLIME_FOR_ALL_VERSIONS(Arguments);

TEST_P(Arguments, OfDevicesAndProperties) {
  AnyProperties properties;
  refused(net_.devices(nullptr), "ndev is NULL");
  refused(net_.properties(0, nullptr), "props is NULL");
  refused(net_.properties(-1, &properties), "device -1 does not exist");
  refused(net_.properties(1, &properties), "device 1 does not exist");
  EXPECT_EQ(properties.name, nullptr);
}

class ArgumentsWithContext : public Arguments {};
SLIME_FOR_VERSIONS(ArgumentsWithContext, 11, 12);

TEST_P(ArgumentsWithContext, OfInit) { refused(net_.init_into(nullptr), "ctx is NULL"); }

TEST_P(Arguments, OfListen) {
  HandleBytes handle{};
  void* listening = &handle;
  refused(net_.listen(0, nullptr, &listening), "handle is NULL");
  refused(net_.listen(0, handle.data(), nullptr), "listenComm is NULL");
  refused(net_.listen(99, handle.data(), &listening), "device 99");
  EXPECT_EQ(listening, &handle);
  EXPECT_EQ(handle, HandleBytes{});
}

TEST_P(Arguments, OfConnectAndAccept) {
  HandleBytes handle{};
  void* comm = &handle;
  refused(net_.connect(0, nullptr, &comm), "handle is NULL");
  refused(net_.connect(0, handle.data(), nullptr), "sendComm is NULL");
  refused(net_.connect(-1, handle.data(), &comm), "device -1");
  refused(net_.accept(pair_->listening, nullptr), "recvComm is NULL");
  refused(net_.accept(nullptr, &comm), "listenComm");
  refused(net_.accept(pair_->send, &comm), "listenComm");
  EXPECT_EQ(comm, &handle);
}

TEST_P(Arguments, OfRegistration) {
  void* const send = pair_->send;
  std::byte memory[128];
  void* mhandle = memory;
  refused(reg(nullptr, memory, 128, &mhandle), "sendComm or recvComm");
  refused(reg(pair_->listening, memory, 128, &mhandle), "sendComm or recvComm");
  refused(reg(send, nullptr, 128, &mhandle), "data is NULL");
  refused(reg(send, memory, 128, nullptr), "mhandle is NULL");
  refused(reg(send, memory, 0, &mhandle), "cannot register 0 bytes");
  refused(reg(send, memory, -1, &mhandle), "cannot register -1");
  refused(net_.reg_mr(send, memory, 128, 77, &mhandle), "memory type 77");
  refused(net_.reg_mr(send, memory, 128, nccl::kPointerCuda, &mhandle),
          "cannot register CUDA memory");
  refused(net_.reg_dma_buf(send, memory, 128, 3, &mhandle), "DMA-BUF");
  refused(net_.reg_dma_buf(nullptr, memory, 128, 3, &mhandle), "sendComm");
  EXPECT_EQ(net_.dereg_mr(send, nullptr), nccl::kSuccess) << "as in NCCL's own transports";
  refused(net_.dereg_mr(send, memory), "not an mhandle");
  refused(net_.dereg_mr(nullptr, buffer_->mhandle), "sendComm or recvComm");
  EXPECT_EQ(mhandle, memory);
}

TEST_P(Arguments, OfSending) {
  auto& pair = *pair_;
  auto& buffer = *buffer_;
  void* request = &buffer;
  void* const mhandle = buffer.mhandle;
  refused(net_.isend(nullptr, buffer.data(), 8, 0, mhandle, &request), "sendComm");
  refused(net_.isend(pair.recv, buffer.data(), 8, 0, mhandle, &request), "sendComm");
  refused(net_.isend(pair.send, buffer.data(), 8, 0, mhandle, nullptr), "request is NULL");
  refused(net_.isend(pair.send, buffer.data(), 8, 0, nullptr, &request), "mhandle is NULL");
  refused(net_.isend(pair.send, nullptr, 8, 0, mhandle, &request), "outside the registered");
  refused(net_.isend(pair.send, buffer.data() + 4090, 8, 0, mhandle, &request),
          "outside the registered 4096 bytes");
  refused(net_.isend(pair.send, buffer.data(), -5, 0, mhandle, &request),
          "cannot transfer -5 bytes");
  refused(net_.isend(pair.send, buffer.data(), (int64_t{1} << 30) + 1, 0, mhandle, &request),
          "cannot transfer 1073741825 bytes");
  EXPECT_EQ(request, &buffer);
}

TEST_P(Arguments, OfReceiving) {
  auto& buffer = *buffer_;
  void* request = &buffer;
  void* data[9];
  void* mhandles[9];
  int tags[9] = {};
  int64_t sizes[9];
  std::fill(std::begin(data), std::end(data), buffer.data());
  std::fill(std::begin(mhandles), std::end(mhandles), buffer.mhandle);
  std::fill(std::begin(sizes), std::end(sizes), 8);
  refused(net_.irecv(nullptr, 1, data, sizes, tags, mhandles, &request), "recvComm");
  refused(net_.irecv(pair_->send, 1, data, sizes, tags, mhandles, &request), "recvComm");
  refused(irecv(0, data, sizes, tags, mhandles, &request), "a group of 0 receives");
  refused(irecv(-1, data, sizes, tags, mhandles, &request), "a group of -1 receives");
  refused(irecv(9, data, sizes, tags, mhandles, &request), "a group of 9 receives");
  refused(irecv(1, nullptr, sizes, tags, mhandles, &request), "data is NULL");
  refused(irecv(1, data, nullptr, tags, mhandles, &request), "sizes is NULL");
  refused(irecv(1, data, sizes, nullptr, mhandles, &request), "tags is NULL");
  refused(irecv(1, data, sizes, tags, nullptr, &request), "mhandles is NULL");
  refused(irecv(1, data, sizes, tags, mhandles, nullptr), "request is NULL");
  sizes[7] = 4097;
  refused(irecv(8, data, sizes, tags, mhandles, &request), "outside the registered");
  sizes[7] = -3;
  refused(irecv(8, data, sizes, tags, mhandles, &request), "cannot transfer -3 bytes");
  EXPECT_EQ(request, &buffer);
}

TEST_P(Arguments, OfFlushAndTest) {
  void* request = this;
  refused(net_.iflush(nullptr, &request), "recvComm");
  refused(net_.iflush(pair_->send, &request), "recvComm");
  refused(net_.iflush(pair_->recv, nullptr), "request is NULL");
  EXPECT_EQ(request, this);
  EXPECT_EQ(net_.iflush(pair_->recv, &request), nccl::kSuccess);
  EXPECT_EQ(request, nullptr) << "host memory needs no flush";
  int done = 5;
  refused(net_.test(nullptr, &done, nullptr), "request is NULL");
  EXPECT_EQ(done, 5);
  void* posted = nullptr;
  ASSERT_EQ(net_.irecv_one(pair_->recv, buffer_->data(), 8, 0, buffer_->mhandle, &posted),
            nccl::kSuccess);
  ASSERT_NE(posted, nullptr);
  refused(net_.test(posted, nullptr, nullptr), "done is NULL");
}

TEST_P(Arguments, OfClosing) {
  auto& pair = *pair_;
  refused(net_.close_send(nullptr), "sendComm");
  refused(net_.close_recv(nullptr), "recvComm");
  refused(net_.close_listen(nullptr), "listenComm");
  refused(net_.close_send(pair.recv), "sendComm");
  refused(net_.close_recv(pair.listening), "recvComm");
  refused(net_.close_listen(pair.send), "listenComm");
  void* const send = pair.send;
  EXPECT_EQ(net_.close_send(send), nccl::kSuccess);
  pair.send = nullptr;
  refused(net_.close_send(send), "sendComm");
}

class ArgumentsWithMerging : public Arguments {};
SLIME_FOR_VERSIONS(ArgumentsWithMerging, 9, 10, 11, 12);

TEST_P(ArgumentsWithMerging, OfMerging) {
  const std::vector<int> members = {0, 0};
  int merged = 42;
  refused(net_.merge(&merged, nullptr, 0), "props is NULL");
  refused(net_.merge(nullptr, &members, 1), "d is NULL");
  refused(net_.merge(&merged, &members, 0), "cannot merge 0 devices");
  refused(net_.merge(&merged, &members, 1000000), "cannot merge");
  refused(net_.merge(&merged, std::vector<int>{0, 9}), "device 9 does not exist");
  refused(net_.merge(&merged, members), "merge");
  EXPECT_EQ(merged, 42);
}

}  // namespace
}  // namespace slime::boundary
