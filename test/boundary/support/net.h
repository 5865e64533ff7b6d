// What tests of connections and messages share.
#pragma once

#include <algorithm>

#include "test/boundary/support/api.h"

namespace slime::boundary {

// A sender and a receiver in one process.
class Pair {
 public:
  explicit Pair(Api& net, int device = 0);
  ~Pair() { close(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  // Connects to `listening` and accepts, until both are there.
  static bool join(Api& net, int device, HandleBytes& handle, void* listening, void** send,
                   void** recv);
  void close();

  void* listening = nullptr;
  void* send = nullptr;
  void* recv = nullptr;
  bool connected = false;

 private:
  Api& net_;
};

// Memory that is registered on a connection for as long as it lives.
class Buffer {
 public:
  Buffer(Api& net, void* comm, size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return memory_.get(); }
  void fill(unsigned seed);

  const size_t bytes;
  void* mhandle = nullptr;

 private:
  Api& net_;
  void* const comm_;
  const std::unique_ptr<std::byte[]> memory_;
};

// A request for which test() is called until it is done.
struct Open {
  void* request = nullptr;  // nullptr: not posted yet
  std::array<int, 8> sizes{};
  bool done = false;
};

// Calls test() unless it is done. True: it is.
bool poll(Api& net, Open* open);

// Sends and receives one message, and checks nothing. False: it did not end in time.
bool transfer(Api& net, const Pair& pair, const Buffer& from, const Buffer& to, size_t bytes,
              Open* sent, Open* received, int tag = 7);

// A test of one version's table. Loading takes most of a small test's time, so all tests of a
// version share a copy, which ends each test as it began it: with nothing open.
class NetTest : public PluginTest {
 protected:
  explicit NetTest(int version) : NetTest(shared(version), version) {}
  NetTest(const Plugin& plugin, int version)
      : plugin_(plugin), api_(Api::of(plugin, version)), net_(*api_) {}
  void finalize() { EXPECT_EQ(net_.finalize(), nccl::kSuccess); }

  const Plugin& plugin_;
  const std::unique_ptr<Api> api_;
  Api& net_;

 private:
  static const Plugin& shared(int version);
};

class EveryVersion : public NetTest, public testing::WithParamInterface<int> {
 protected:
  EveryVersion() : NetTest(GetParam()) {}
};

inline std::string version_name(const testing::TestParamInfo<int>& info) {
  return "v" + std::to_string(info.param);
}

}  // namespace slime::boundary

#define SLIME_FOR_VERSIONS(suite, ...) \
  INSTANTIATE_TEST_SUITE_P(Net, suite, testing::Values(__VA_ARGS__), version_name)
#define SLIME_FOR_ALL_VERSIONS(suite) SLIME_FOR_VERSIONS(suite, 6, 7, 8, 9, 10, 11, 12)
