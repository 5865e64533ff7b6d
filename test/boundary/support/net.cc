#include "test/boundary/support/net.h"

#include <map>

namespace slime::boundary {

Pair::Pair(Api& net, int device) : net_(net) {
  HandleBytes handle{};
  EXPECT_EQ(net.listen(device, handle.data(), &listening), nccl::kSuccess) << Log::text();
  connected = listening != nullptr && join(net, device, handle, listening, &send, &recv);
}

bool Pair::join(Api& net, int device, HandleBytes& handle, void* listening, void** send,
                void** recv) {
  const bool in_time = wait_until([&] {
    bool good = true;
    if (*send == nullptr) good = net.connect(device, handle.data(), send) == nccl::kSuccess;
    if (*recv == nullptr) good = net.accept(listening, recv) == nccl::kSuccess && good;
    EXPECT_TRUE(good) << "connect or accept failed\n" << Log::text();
    return !good || (*send != nullptr && *recv != nullptr);
  });
  return in_time && *send != nullptr && *recv != nullptr;
}

void Pair::close() {
  if (send != nullptr) {
    EXPECT_EQ(net_.close_send(send), nccl::kSuccess);
  }
  if (recv != nullptr) {
    EXPECT_EQ(net_.close_recv(recv), nccl::kSuccess);
  }
  if (listening != nullptr) {
    EXPECT_EQ(net_.close_listen(listening), nccl::kSuccess);
  }
  send = recv = listening = nullptr;
}

Buffer::Buffer(Api& net, void* comm, size_t bytes)
    : bytes(bytes), net_(net), comm_(comm), memory_(new std::byte[bytes]()) {
  EXPECT_EQ(
      net.reg_mr(comm, memory_.get(), static_cast<int64_t>(bytes), nccl::kPointerHost, &mhandle),
      nccl::kSuccess)
      << Log::text();
  EXPECT_NE(mhandle, nullptr);
}

Buffer::~Buffer() {
  if (mhandle != nullptr) {
    EXPECT_EQ(net_.dereg_mr(comm_, mhandle), nccl::kSuccess);
  }
}

void Buffer::fill(unsigned seed) {
  const auto content = pattern(bytes, seed);
  std::copy(content.begin(), content.end(), memory_.get());
}

bool poll(Api& net, Open* open) {
  if (open->done) return true;
  int done = 0;
  EXPECT_EQ(net.test(open->request, &done, open->sizes.data()), nccl::kSuccess) << Log::text();
  open->done = done != 0;
  return open->done;
}

bool transfer(Api& net, const Pair& pair, const Buffer& from, const Buffer& to, size_t bytes,
              Open* sent, Open* received, int tag) {
  const auto step = [&] {
    if (received->request == nullptr) {
      EXPECT_EQ(net.irecv_one(pair.recv, to.data(), static_cast<int64_t>(to.bytes), tag, to.mhandle,
                              &received->request),
                nccl::kSuccess)
          << Log::text();
    }
    if (sent->request == nullptr) {
      EXPECT_EQ(net.isend(pair.send, from.data(), static_cast<int64_t>(bytes), tag, from.mhandle,
                          &sent->request),
                nccl::kSuccess)
          << Log::text();
    }
    const bool send_done = sent->request && poll(net, sent);
    const bool receive_done = received->request && poll(net, received);
    return testing::Test::HasFailure() || (send_done && receive_done);
  };
  return wait_until(step) && sent->done && received->done;
}

const Plugin& NetTest::shared(int version) {
  static std::map<int, Plugin> plugins;
  return plugins[version];
}

}  // namespace slime::boundary
