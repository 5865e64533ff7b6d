// A listener that anybody may reach: strangers take neither the places nor the log from the peers.

#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "link/setup/handshake.h"
#include "link/setup/resume.h"
#include "message/message_owner.h"
#include "test/support/manual_clock.h"
#include "test/support/strangers.h"
#include "test/support/tcp_link.h"

namespace slime::test {
namespace {

std::vector<std::string> log_lines;

class ListenerStrangers : public ::testing::Test {
 protected:
  ListenerStrangers() {
    log_lines.clear();
    log::set_sink(
        [](log::Level, const char*, int, const char* text) { log_lines.emplace_back(text); });
    auto opened = Listener::open(*to_.devices, 0, &handle_);
    EXPECT_TRUE(opened) << opened.error().what;
    if (opened) listener_ = std::move(*opened);
    std::memcpy(&fields_, handle_.data(), sizeof fields_);
    address_ = *SocketAddress::unpack(fields_.address);
  }
  ~ListenerStrangers() override { log::set_sink(nullptr); }

  static Settings settings() {
    Settings settings;
    settings.handshake_timeout = 60;
    settings.request_timeout = 100;
    return settings;
  }
  // A look of the listener; nothing comes of it but, perhaps, `receiver_`.
  void look() {
    auto accepted = listener_->accept();
    ASSERT_TRUE(accepted) << accepted.error().what;
    if (*accepted) receiver_ = std::move(*accepted);
  }
  // The listener looks once in a millisecond of its time, of which one second passes at most.
  void look_later() {
    constexpr uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
    if (passed_ns_ < kSecond) clock_.pass(kMillisecond);
    passed_ns_ += kMillisecond;
    look();
  }
  // A peer that knows the handle, and says no more than its hello.
  Fd begin_handshake(MessageType type = MessageType::kHello, const LinkId& link = {}) {
    Fd fd = std::move(*start_connect(address_));
    Error error;
    EXPECT_TRUE(in_time([&] { return finish_connect(fd, address_, &error) == Status::kOk; }));
    HandshakeMessage<Hello> hello;
    hello.value.preamble.type = static_cast<uint16_t>(type);
    hello.value.nonce = fields_.nonce;
    hello.value.link = link;
    hello.value.words = MessageWords().pack();
    hello.value.rails = describe_rails(from_.devices->device(0)->rails());
    EXPECT_EQ(hello.send(fd, &error), Status::kOk) << error.what;
    return fd;
  }
  // What the listener answers to a hello of type kResume.
  Status resume(const LinkId& link, Resumed* resumed) {
    Fd fd = begin_handshake(MessageType::kResume, link);
    HandshakeMessage<Resumed> answer;
    Error error;
    Status status = Status::kAgain;
    EXPECT_TRUE(in_time([&] {
      look();
      return (status = answer.receive(fd, &error)) != Status::kAgain;
    }));
    *resumed = answer.value;
    return status;
  }
  // The listener looks until a peer is through, for a second of its time at most.
  void let_peer_in() {
    passed_ns_ = 0;
    auto connector = std::move(*Connector::open(*from_.devices, 0, handle_));
    std::unique_ptr<SendComm> sender;
    ASSERT_TRUE(in_time([&] {
      look_later();
      auto step = sender ? nullptr : connector->step();
      EXPECT_TRUE(step) << step.error().what;
      if (step && *step) sender = std::move(*step);
      return HasFailure() || (sender && receiver_);
    }));
  }
  // Something that is no hello, from somebody who stays until turned away.
  void send_garbage() {
    Fd fd = std::move(*start_connect(address_));
    Error error;
    ASSERT_TRUE(in_time([&] { return finish_connect(fd, address_, &error) == Status::kOk; }));
    HandshakeMessage<Hello> garbage;
    garbage.value.preamble.magic = 1;
    ASSERT_EQ(garbage.send(fd, &error), Status::kOk) << error.what;
    HandshakeMessage<Welcome> answer;
    ASSERT_TRUE(in_time([&] {
      look();
      return answer.receive(fd, &error) != Status::kAgain;
    }));
  }

  ManualClock clock_;
  TcpHost from_{settings()}, to_{settings(), clock_};
  uint64_t passed_ns_ = 0;
  Handle handle_;
  AddressFields fields_;
  SocketAddress address_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<RecvComm> receiver_;
};

TEST_F(ListenerStrangers, DoNotDelayAPeer) {
  Strangers strangers;
  SLIME_NEEDS_MANY(strangers);
  strangers.come(address_, Strangers::kMany, [this] { look_later(); });
  let_peer_in();
}

size_t descriptors() {
  using Entries = std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(Entries("/proc/self/fd"), Entries()));
}

// Handshakes that nobody goes on with have a bound, too: each holds a descriptor and the memory of
// a receiver.
TEST_F(ListenerStrangers, WhoKnowTheHandleHaveABoundToo) {
  Strangers limits;
  SLIME_NEEDS_MANY(limits);
  look();
  const size_t before = descriptors();
  std::vector<Fd> begun;
  size_t most = 0;
  while (begun.size() < Strangers::kMany) {
    begun.push_back(begin_handshake());
    if (begun.size() % 50 != 0) continue;
    look_later();
    most = std::max(most, descriptors() - before - begun.size());
    ASSERT_FALSE(HasFailure()) << begun.size();
  }
  EXPECT_GT(most, 0u);
  EXPECT_LE(most, 100u) << "64 callers, 16 handshakes, and the listeners of rails";
  let_peer_in();
  EXPECT_LE(log_lines.size(), 6u) << "two reasons, each at most once a second of at most three";
}

// More peers than that at the same time, all of one host, connect one after the other.
TEST_F(ListenerStrangers, ManyPeersOfOneHostAllGetThrough) {
  constexpr size_t kPeers = 40;
  std::vector<std::unique_ptr<Connector>> connectors;
  while (connectors.size() < kPeers) {
    connectors.push_back(std::move(*Connector::open(*from_.devices, 0, handle_)));
  }
  std::vector<std::unique_ptr<SendComm>> senders;
  std::vector<std::unique_ptr<RecvComm>> receivers;
  ASSERT_TRUE(in_time([&] {
    std::erase_if(connectors, [&](auto& connector) {
      auto step = connector->step();
      EXPECT_TRUE(step) << step.error().what;
      if (!step || !*step) return !step;
      senders.push_back(std::move(*step));
      return true;
    });
    look_later();
    if (receiver_) receivers.push_back(std::move(receiver_));
    return HasFailure() || (senders.size() == kPeers && receivers.size() == kPeers);
  }));
}

TEST_F(ListenerStrangers, OutOfDescriptorsItTriesAgain) {
  look();
  const Fd waiting = begin_handshake();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit tight{static_cast<rlim_t>(waiting.get() + 1), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int i = 0; i < 1000 && !HasFailure(); ++i) look();
  clock_.pass(seconds_to_ns(settings().request_timeout));
  auto accepted = listener_->accept();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(log_lines.size(), 1u);
  EXPECT_NE(log_lines[0].find("out of descriptors"), std::string::npos) << log_lines[0];
  ASSERT_FALSE(accepted) << "its time is over";
  EXPECT_NE(accepted.error().what.find("out of descriptors"), std::string::npos)
      << accepted.error().what;
  Error error;
  HandshakeMessage<Welcome> welcome;
  ASSERT_TRUE(in_time([&] {
    look();
    return HasFailure() || welcome.receive(waiting, &error) == Status::kOk;
  }));
}

TEST_F(ListenerStrangers, AreInTheErrorOfAPeerThatNeverCame) {
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(send_garbage());
  clock_.pass(seconds_to_ns(settings().request_timeout));
  auto accepted = listener_->accept();
  ASSERT_FALSE(accepted);
  EXPECT_NE(accepted.error().what.find("3 strangers"), std::string::npos) << accepted.error().what;
}

TEST_F(ListenerStrangers, HaveOneLineASecond) {
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(send_garbage());
  EXPECT_EQ(log_lines.size(), 1u);
  clock_.pass(1'000'000'000);
  ASSERT_NO_FATAL_FAILURE(send_garbage());
  ASSERT_EQ(log_lines.size(), 2u);
  EXPECT_NE(log_lines[1].find("19 more"), std::string::npos) << log_lines[1];
}

// A reset before the welcome means that the place went to somebody else; an orderly end means no.
TEST(ConnectorAtAFullListener, TriesAgainAfterAResetButNotAfterAnEnd) {
  TcpHost from{Settings()};
  const Fd listener = *listen_on(*SocketAddress::parse("127.0.0.1"));
  AddressFields fields;
  fields.address = local_address(listener)->pack();
  Handle handle;
  handle.fill(std::byte{0});
  std::memcpy(handle.data(), &fields, sizeof fields);
  auto connector = std::move(*Connector::open(*from.devices, 0, handle));
  Error error;
  Accepted visitor;
  const auto steps_until_accepted = [&] {
    return in_time([&] {
      auto step = connector->step();
      EXPECT_TRUE(step) << step.error().what;
      return !step || accept_one(listener, &visitor, &error) == Status::kOk;
    });
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(steps_until_accepted());
    abort_connection(std::move(visitor.fd));
  }
  ASSERT_TRUE(steps_until_accepted());
  HandshakeMessage<Hello> hello;
  const auto receive_hello = [&] {
    return in_time([&] {
      EXPECT_TRUE(connector->step());
      return hello.receive(visitor.fd, &error) == Status::kOk;
    });
  };
  ASSERT_TRUE(receive_hello());
  // Welcomed, and reset before it confirms: it was stopped meanwhile.
  HandshakeMessage<Welcome> welcome;
  welcome.value.words = MessageWords().pack();
  welcome.value.rails = describe_rails(from.devices->device(0)->rails());
  welcome.value.channels = welcome.value.rails.count;
  ASSERT_EQ(welcome.send(visitor.fd, &error), Status::kOk) << error.what;
  abort_connection(std::move(visitor.fd));
  ASSERT_TRUE(steps_until_accepted());
  hello.restart();
  ASSERT_TRUE(receive_hello());
  visitor.fd.reset();
  ASSERT_TRUE(in_time([&] { return !connector->step(); }));
}

TEST_F(ListenerStrangers, ALinkThatIsNotThereIsNotKnown) {
  Resumed resumed;
  EXPECT_EQ(resume({std::byte{1}}, &resumed), Status::kOk);
  EXPECT_TRUE(valid(resumed.preamble, MessageType::kResumed));
  EXPECT_EQ(resumed.known, 0u);
}

// The other end may be through with the handshake, and have lost its rails since then.
TEST_F(ListenerStrangers, ALinkWhoseHandshakeIsUnderWayIsToBeDialedAgain) {
  const LinkId link = {std::byte{1}};
  const Fd peer = begin_handshake(MessageType::kHello, link);
  HandshakeMessage<Welcome> welcome;
  Error error;
  ASSERT_TRUE(in_time([&] {
    look();
    return welcome.receive(peer, &error) == Status::kOk;
  }));
  Resumed resumed;
  EXPECT_EQ(resume(link, &resumed), Status::kRemote) << "the connection is reset";
}

}  // namespace
}  // namespace slime::test
