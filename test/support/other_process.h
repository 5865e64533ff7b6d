// A process with an engine and a region, beside that of the test.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "test/peer/test_engine.h"

namespace slime {

// Fast without optimisation, too.
inline bool all_are(std::span<const char> memory, char expected) {
  return memory[0] == expected &&
         std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0;
}
inline void set_all(std::span<char> memory, char to) {
  std::memset(memory.data(), to, memory.size());
}

// Memory that the processes which are made later have, too.
class SharedMemory {
 public:
  SharedMemory(size_t bytes, char fill) : bytes_(bytes) {
    void* const mapped =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    data_ = static_cast<char*>(mapped);
    std::memset(data_, fill, bytes);
  }
  ~SharedMemory() { ::munmap(data_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::span<char> bytes() const { return {data_, bytes_}; }

 private:
  const size_t bytes_;
  char* data_ = nullptr;
};

// Its region is full of 'x' at first. It sends notifications back. It is made while this process
// has one thread.
class OtherProcess {
 public:
  explicit OtherProcess(size_t bytes, const char* settings = "ifname=lo")
      : address(address_bytes(settings)), region(SLIME_REGION_BYTES), memory_(bytes, 'x') {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    (void)std::fflush(nullptr);  // or both print what is in the buffers
    pid_ = ::fork();
    if (pid_ == 0) serve(ends[1], settings);
    ::close(ends[1]);
    for (auto* blob : {&address, &region}) {
      // Less than PIPE_BUF, so it comes whole.
      EXPECT_EQ(::read(ends[0], blob->data(), blob->size()), static_cast<ssize_t>(blob->size()));
    }
    ::close(ends[0]);
  }
  ~OtherProcess() { end(); }
  // After SIGSTOP it has stopped.
  void signal(int number) const {
    ASSERT_EQ(::kill(pid_, number), 0);
    if (number != SIGSTOP) return;
    ASSERT_EQ(::waitpid(pid_, nullptr, WUNTRACED), pid_);
  }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  std::span<char> memory() const { return memory_.bytes(); }  // its region

  std::vector<char> address, region;

 private:
  static size_t address_bytes(const char* settings) {
    return TestEngine(settings).address().size();
  }
  [[noreturn]] void serve(int to, const char* settings) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    TestEngine engine(settings);
    for (const auto& blob : {engine.address(), engine.blob_of(engine.add(memory()))}) {
      (void)!::write(to, blob.data(), blob.size());
    }
    for (;;) echo(engine);
  }
  static void echo(TestEngine& engine) {
    slime_notification one;
    size_t count = 1;
    if (slime_notifications(engine.engine, &one, &count) != SLIME_OK) ::_exit(1);
    if (count == 0) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
    slime_request request = 0;
    if (slime_notify(engine.engine, one.peer, one.data, one.bytes, nullptr, &request) != SLIME_OK ||
        slime_release(engine.engine, request) != SLIME_OK ||
        slime_release(engine.engine, one.handle) != SLIME_OK) {
      ::_exit(1);
    }
  }

  const SharedMemory memory_;
  pid_t pid_ = -1;
};

// Another process, and an engine here that knows its region; both have so much memory.
class WithOtherProcess : public testing::Test {
 protected:
  explicit WithOtherProcess(size_t bytes) : other(bytes), mine(bytes, 'a') {}

  OtherProcess other;  // first: this process has one thread until then
  std::vector<char> mine;
  TestEngine here;
  const slime_region local = here.add(mine);
  const slime_peer peer = here.know(other.address);
  const slime_remote remote = here.remote(peer, other.region);
};

}  // namespace slime
