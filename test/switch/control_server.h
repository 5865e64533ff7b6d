// The control channel over TCP on loopback. One thread turns server and client in turn under a
// virtual clock, so that deadlines pass when the test says so.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "switch/controller/server.h"
#include "switch/protocol/client.h"
#include "test/switch/control_support.h"

namespace slime::net::test {

using control::Message;
using control::Refusal;
using control::Refused;

inline const SecretKey kKey = key_of("a key of thirty-two bytes or so.");

// A peer that is no SwitchClient.
struct Stranger {
  explicit Stranger(const SocketAddress& to) : fd(start_connect(to).value()) {}
  void send(std::span<const std::byte> bytes) {
    (void)!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // What came so far; `closed` says whether that is all.
  std::vector<std::byte> received;
  bool closed = false;
  void receive() {
    std::byte buffer[4096];
    for (;;) {
      const ssize_t got = recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got > 0) {
        received.insert(received.end(), buffer, buffer + got);
        continue;
      }
      closed = closed || got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
      return;
    }
  }
  // The last frame, if it is one that is whole.
  std::optional<Message> last() {
    std::optional<Message> message;
    std::span<const std::byte> rest = received;
    while (rest.size() >= control::kHeaderBytes) {
      const auto header =
          control::decode_header(rest.first(control::kHeaderBytes), control::kMaxAnswerBytes);
      if (!header) break;
      const size_t bytes = control::kHeaderBytes + header->payload_bytes + control::kMacBytes;
      if (rest.size() < bytes) break;
      const auto payload = rest.subspan(control::kHeaderBytes, header->payload_bytes);
      if (auto found = control::decode_payload(header->type, payload)) message = *found;
      rest = rest.subspan(bytes);
    }
    return message;
  }
  Fd fd;
};

class ControlServerFixture : public testing::Test {
 protected:
  void start(ServerOptions options) {
    options.listen = SocketAddress::parse("127.0.0.1").value();
    server_.reset();
    controller_ = std::make_unique<Controller>(
        driver_, ControllerOptions{.max_jobs = 8, .lease_ns = 10 * kSecond}, clock_);
    auto opened = ControlServer::open(*controller_, options);
    ASSERT_TRUE(opened) << opened.error().what;
    server_ = std::move(*opened);
  }
  void start(const SecretKey& key) {
    ServerOptions options;
    options.keys.common = key;
    start(options);
  }

  // Turns the server until `done`, for a real minute at most.
  bool turn_until(const std::function<bool()>& done) {
    const auto& real = SteadyClock::instance();
    const uint64_t end = real.now_ns() + 60 * kSecond;
    do {
      server_->run();
      if (done()) return true;
      pollfd ready{server_->descriptor(), POLLIN, 0};
      (void)poll(&ready, 1, 1);
    } while (real.now_ns() < end);
    return false;
  }
  std::unique_ptr<SwitchClient> client(const SecretKey& key, const std::string& tenant = {}) {
    auto client = SwitchClient::start(server_->address(), {key, tenant}, 5 * kSecond, clock_);
    EXPECT_TRUE(client) << client.error().what;
    return client ? std::move(*client) : nullptr;
  }
  Status finish(SwitchClient& client) {
    Status status = Status::kAgain;
    turn_until([&] { return (status = client.progress(&error_)) != Status::kAgain; });
    return status;
  }
  // The answer, or Refused with what went wrong with the connection.
  Message ask(SwitchClient& client, const Message& request) {
    Status status = client.post(request, 5 * kSecond, &error_);
    if (status == Status::kOk) status = finish(client);
    if (status != Status::kOk) return Refused{Refusal::kInternal, "CONNECTION: " + error_.what};
    return client.answer();
  }
  bool is_closed(Stranger& stranger) {
    return turn_until([&] {
      stranger.receive();
      return stranger.closed;
    });
  }
  const ControlCounters& counters() const { return controller_->counters(); }

  ManualClock clock_;
  FakeDriver driver_;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<ControlServer> server_;
  Error error_;
};

}  // namespace slime::net::test
