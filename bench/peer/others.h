// Engines of another process, each with registered memory, which do nothing by themselves.
#pragma once

#include <slime/p2p.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace slime::bench {

// What an engine tells others of itself.
struct Known {
  std::array<std::byte, SLIME_ADDRESS_BYTES> address = {};
  size_t address_bytes = 0;
  std::array<std::byte, SLIME_REGION_BYTES> region = {};
};

struct EngineWithMemory {
  EngineWithMemory(const slime_options& options, size_t bytes)
      : memory(bytes), engine(options), region(engine.register_memory(memory)) {}
  Known known() const {
    Known known;
    const auto address = engine.address();
    std::copy(address.begin(), address.end(), known.address.begin());
    known.address_bytes = address.size();
    known.region = region.advertise();
    return known;
  }
  std::vector<std::byte> memory;
  p2p::Engine engine;
  p2p::Region region;
};

// A peer of this process's engine, and its memory.
struct Target {
  Target(p2p::Engine& engine, const Known& known)
      : peer(engine.add(std::span(known.address).first(known.address_bytes))),
        remote(peer.import(known.region)) {}
  p2p::Peer peer;
  p2p::Remote remote;
};

class Others {
 public:
  // `bytes`: of each one's memory. Before this process has threads.
  Others(size_t engines, size_t bytes, const slime_options& options = SLIME_OPTIONS_INIT)
      : known(engines) {
    std::array<int, 2> ends;
    if (::pipe(ends.data()) != 0) die("pipe");
    pid_ = ::fork();
    if (pid_ < 0) die("fork");
    if (pid_ == 0) serve(ends[1], bytes, options);
    ::close(ends[1]);
    for (Known& one : known) {
      for (size_t got = 0; got < sizeof one;) {
        const ssize_t more = ::read(ends[0], reinterpret_cast<char*>(&one) + got, sizeof one - got);
        if (more <= 0) die("the other process has ended");
        got += static_cast<size_t>(more);
      }
    }
    ::close(ends[0]);
  }
  ~Others() {
    ::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;

  std::vector<Known> known;

 private:
  [[noreturn]] static void die(const char* what) {
    std::perror(what);
    std::exit(3);
  }
  [[noreturn]] void serve(int to, size_t bytes, const slime_options& options) {
    std::vector<std::unique_ptr<EngineWithMemory>> all;
    for (Known& one : known) {
      all.push_back(std::make_unique<EngineWithMemory>(options, bytes));
      one = all.back()->known();
    }
    if (::write(to, known.data(), known.size() * sizeof(Known)) < 0) die("write");
    for (;;) ::pause();
  }

  pid_t pid_ = -1;
};

}  // namespace slime::bench
