// slime-switchd as a process, over an agent that goes wrong while the switch is in use: the control
// channel goes on, and SIGTERM ends the daemon.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "switch/protocol/client.h"
#include "test/p4/fake_bmv2.h"
#include "test/support/raw_agent.h"
#include "test/support/temporary_directory.h"

extern char** environ;

namespace slime::p4 {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kGenerous{30};  // the machine may be busy
constexpr uint64_t kGenerousNs = 30'000'000'000;

class Daemon {
 public:
  explicit Daemon(const SocketAddress& agent) {
    const std::string config = directory_.path() / "switch.yaml";
    std::ofstream(config) << "device: {driver: bmv2, runtime: \"" << agent.to_string() << "\"}\n"
                          << "data: {listen: \"10.0.0.254:28880\", shards: 1}\n"
                          << "control: {listen: \"127.0.0.1:0\"}\n"
                          << "hosts:\n"
                          << "  10.0.0.1: {mac: \"02:00:00:00:01:01\", port: 1}\n"
                          << "  10.0.0.2: {mac: \"02:00:00:00:01:02\", port: 2}\n";
    const char* build = std::getenv("SLIME_BUILD_DIR");
    std::string program = std::string(build ? build : "build") + "/bin/slime-switchd";
    std::string option = "--config", name = config;
    char* arguments[] = {program.data(), option.data(), name.data(), nullptr};
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = Fd(ends[0]);
    read_control();
  }
  ~Daemon() {
    if (pid_ <= 0) return;
    (void)kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  const std::optional<SocketAddress>& control() const { return control_; }
  uint64_t peak_kib() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10);
    }
    return UINT64_MAX;
  }
  // The exit status after SIGTERM; -1: it does not end.
  int end() {
    (void)kill(pid_, SIGTERM);
    const auto late = steady_clock::now() + kGenerous;
    for (int status = 0; steady_clock::now() < late;) {
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return -1;
  }

 private:
  // From the line that says it is ready; absent if it ends without.
  void read_control() {
    std::string text;
    for (char c = 0; read(output_.get(), &c, 1) == 1 && c != '\n';) text += c;
    const size_t at = text.find("control ");
    if (at == std::string::npos) return;
    const size_t begin = at + 8;
    auto address = SocketAddress::parse(text.substr(begin, text.find(',', begin) - begin));
    if (address) control_ = *address;
  }

  test::TemporaryDirectory directory_;
  pid_t pid_ = -1;
  Fd output_;
  std::optional<SocketAddress> control_;
};

control::CreateJob job_of(const std::string& tenant) {
  control::CreateJob job{.tenant = tenant,
                         .slots_wanted = 4,
                         .lanes_wanted = 64,
                         .formats_wanted = sap::kWordFormats,
                         .formats_least = sap::kWordFormats,
                         .children = {}};
  for (const char* child : {"10.0.0.1:4000", "10.0.0.2:4000"}) {
    job.children.push_back(*SocketAddress::parse(child));
  }
  return job;
}

std::unique_ptr<SwitchClient> client(const Daemon& daemon, const std::string& tenant) {
  auto opened = SwitchClient::open(*daemon.control(), {{}, tenant}, kGenerousNs);
  EXPECT_TRUE(opened) << opened.error().what;
  return opened ? std::move(*opened) : nullptr;
}

// What becomes of an agent in mid-run: its calls hang, or something else is at its port.
struct Case {
  const char* name;
  bool hangs;
  std::string first;
  int drip_ms;
};
const Case kCases[] = {{"Hangs", true, "", 0},
                       {"Silent", false, "", 0},
                       {"Drips", false, std::string("\x80\1\0\2\0\0\x40\0", 8),
                        100},  // a reply and the size of its name
                       {"Lies", false, std::string("\x80\1\0\2\x7f\xff\xff\xff", 8) + "name", 0},
                       {"Banner", false, "SSH-2.0-OpenSSH_9.2p1\r\n", 0}};

class BadAgent : public testing::TestWithParam<Case> {};

// For three seconds one tenant asks for jobs, which the device cannot get, and an operator for
// counters. Another tenant's heartbeats and an operator's questions are answered meanwhile.
TEST_P(BadAgent, HoldsNobodyElse) {
  auto agent = std::make_unique<FakeBmv2>();
  const std::string at_port = agent->address().to_string();
  Daemon daemon(agent->address());
  ASSERT_TRUE(daemon.control()) << "it is not ready";
  const auto steady = client(daemon, "steady");
  ASSERT_TRUE(steady);
  const auto grant = steady->create_job(job_of("steady"), kGenerousNs);
  ASSERT_TRUE(grant) << grant.error().what;

  std::unique_ptr<test::RawAgent> other;
  if (GetParam().hangs) {
    agent->change([](FakeState& state) { state.hang = true; });
  } else {
    agent = nullptr;
    other = std::make_unique<test::RawAgent>(GetParam().first, GetParam().drip_ms, at_port);
  }
  std::atomic<int> refused = 0;
  std::jthread busy([&](const std::stop_token& enough) {
    const auto greedy = client(daemon, "greedy"), reader = client(daemon, "");
    while (greedy && reader && !enough.stop_requested()) {
      if (!greedy->create_job(job_of("greedy"), kGenerousNs)) ++refused;
      EXPECT_TRUE(reader->report(true, kGenerousNs));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  steady_clock::duration worst{};
  const auto begin = steady_clock::now();
  int beats = 0;
  for (; steady_clock::now() - begin < std::chrono::seconds(3) || refused == 0; ++beats) {
    const auto asked = steady_clock::now();
    ASSERT_LT(asked - begin, kGenerous);
    const auto beat = steady->heartbeat(grant->job, kGenerousNs);
    ASSERT_TRUE(beat) << beat.error().what;
    worst = std::max(worst, steady_clock::now() - asked);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  busy.request_stop();
  busy.join();
  EXPECT_LT(worst, kGenerous);
  std::printf(
      "%d heartbeats, the slowest took %lld ms; %d jobs were refused\n", beats,
      static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(worst).count()),
      refused.load());
  EXPECT_LT(daemon.peak_kib(), uint64_t{1} << 20);
  const auto ending = steady_clock::now();
  EXPECT_EQ(daemon.end(), 0);
  std::printf("ended in %lld ms\n",
              static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                         steady_clock::now() - ending)
                                         .count()));
}

INSTANTIATE_TEST_SUITE_P(, BadAgent, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace slime::p4
