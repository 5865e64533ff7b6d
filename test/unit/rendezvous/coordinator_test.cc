// Rank 0's port and the ranks that come to it.
#include "rendezvous/coordinator.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <future>

#include "rendezvous/member.h"
#include "rendezvous/messages.h"
#include "test/support/strangers.h"

namespace slime::rendezvous {
namespace {

constexpr double kPatienceS = 60;
constexpr int kPatienceMs = 60000;

class Coordination : public testing::Test {
 protected:
  Coordination() {
    identity_.size = agreement_.size = 1;
    identity_.host = address_.host();
    identity_.port = address_.port();
  }

  Result<std::unique_ptr<Member>> join() {
    return Member::join(identity_, agreement_, kPatienceS, &heartbeat_, [] {});
  }
  std::unique_ptr<Coordinator> coordinate(double timeout_s) {
    identity_.listen_fd = listener_.release();
    auto coordinator = Coordinator::start(identity_, agreement_, timeout_s);
    EXPECT_TRUE(coordinator) << coordinator.error().what;
    return coordinator ? std::move(*coordinator) : nullptr;
  }
  Fd accept() const {
    wait_for(listener_.get(), POLLIN);
    Accepted accepted;
    Error error;
    EXPECT_EQ(accept_one(listener_, &accepted, &error), Status::kOk) << error.what;
    return std::move(accepted.fd);
  }
  // The next connection to the port, once it has said hello.
  Fd greet() const {
    Fd fd = accept();
    Hello hello;
    send(fd, bytes_of(Greeting()));
    EXPECT_TRUE(receive(fd, bytes_of(hello)));
    return fd;
  }
  // A connection that says hello in this way, without waiting for a greeting.
  Fd come(uint32_t rank, const std::string& blob) const {
    auto fd = start_connect(address_);
    EXPECT_TRUE(fd) << fd.error().what;
    wait_for(fd->get(), POLLOUT);
    Hello hello;
    hello.rank = rank;
    hello.ranks = static_cast<uint32_t>(agreement_.size);
    hello.blob_bytes = static_cast<uint32_t>(blob.size());
    std::ranges::copy(bytes_of(blob), hello.blob.begin());
    send(*fd, bytes_of(std::as_const(hello)));
    return std::move(*fd);
  }
  // The reason in the answer that comes next.
  static std::string reason(const Fd& fd, Outcome outcome) {
    Greeting greeting;
    Answer answer;
    EXPECT_TRUE(receive(fd, bytes_of(greeting)) && receive(fd, bytes_of(answer)));
    EXPECT_EQ(answer.outcome, outcome);
    std::string reason(std::min<size_t>(answer.bytes, kMaxBlobBytes), '?');
    EXPECT_TRUE(receive(fd, std::as_writable_bytes(std::span(reason))));
    return reason;
  }
  // A rank that has come, as soon as all have.
  static Connection joined(Fd fd) {
    Greeting greeting;
    Answer answer;
    EXPECT_TRUE(receive(fd, bytes_of(greeting)) && receive(fd, bytes_of(answer)));
    EXPECT_EQ(answer.outcome, Outcome::kGathered);
    std::string blobs(answer.bytes, '?');
    Mac mac;
    EXPECT_TRUE(receive(fd, std::as_writable_bytes(std::span(blobs))) && receive(fd, mac));
    return Connection(std::move(fd));
  }
  // What the coordinator tells the rank when the run is over.
  static std::string verdict(Connection* rank) {
    for (;;) {
      std::vector<Frame> frames;
      const bool came = rank->flush() && wait_for(rank->fd(), POLLIN) && rank->receive(&frames);
      for (const Frame& frame : frames) {
        if (frame.type == FrameType::kVerdict) return text_in(frame.body, "text");
      }
      if (!came) return "none: " + rank->why();
    }
  }
  static void send(const Fd& fd, std::span<const std::byte> message) {
    size_t done = 0;
    Error error;
    EXPECT_EQ(send_message(fd, message, &done, &error), Status::kOk) << error.what;
  }
  static bool receive(const Fd& fd, std::span<std::byte> message) {
    size_t done = 0;
    Error error;
    Status status;
    while ((status = receive_message(fd, message, &done, &error)) == Status::kAgain) {
      if (!wait_for(fd.get(), POLLIN)) return false;
    }
    EXPECT_EQ(status, Status::kOk) << error.what;
    return status == Status::kOk;
  }
  static bool wait_for(int fd, short events) {
    pollfd waiting{fd, events, 0};
    const bool came = poll(&waiting, 1, kPatienceMs) == 1;
    EXPECT_TRUE(came);
    return came;
  }

  Fd listener_ = *listen_on(*SocketAddress::parse("127.0.0.1"));
  const SocketAddress address_ = *local_address(listener_);
  Identity identity_;
  Agreement agreement_{"token", 1, "version", "arguments"};
  Heartbeat heartbeat_;
};

#define EXPECT_SAYS(text, part) EXPECT_NE(text.find(part), std::string::npos) << text

TEST_F(Coordination, TakesARankBehindManyStrangers) {
  test::Strangers strangers;
  SLIME_NEEDS_MANY(strangers);
  const auto coordinator = coordinate(kPatienceS);
  strangers.come(address_, test::Strangers::kMany);
  const auto member = join();
  ASSERT_TRUE(member) << member.error().what;
  (*member)->leave();
}

// All of it is in the backlog before anybody looks: no time can be too short.
TEST_F(Coordination, TheErrorAboutAMissingRankCountsTheStrangers) {
  agreement_.size = 2;
  const Fd silent = come(1, "no hello"), other = come(1, R"({"token": "of another run"})");
  const Fd rank = come(0, hello_of(agreement_).dump());
  const auto coordinator = coordinate(0.3);
  const std::string text = reason(rank, Outcome::kFailed);
  EXPECT_SAYS(text, "rank 1 of 2 did not come in time");
  EXPECT_SAYS(text, "; 2 strangers were turned away");
  const std::string refused = reason(other, Outcome::kRefused);
  EXPECT_EQ(refused, "you belong to another run (wrong token)");
}

TEST_F(Coordination, ARankThatWasStartedOtherwiseEndsTheRun) {
  agreement_.size = 3;
  const Fd first = come(0, hello_of(agreement_).dump());
  const Fd other = come(1, hello_of({"token", 3, "version", "others"}).dump());
  const auto coordinator = coordinate(kPatienceS);
  EXPECT_SAYS(reason(other, Outcome::kRefused), "your arguments differ: others; rank 0's: arg");
  EXPECT_SAYS(reason(first, Outcome::kFailed), "rank 1 on 127.0.0.1 was refused: your arguments");
  const Fd late = come(2, hello_of(agreement_).dump());
  EXPECT_SAYS(reason(late, Outcome::kFailed), "rank 1 on 127.0.0.1 was refused: your arguments");
}

TEST_F(Coordination, ANumberThatIsTakenEndsTheRun) {
  agreement_.size = 3;
  const std::string hello = hello_of(agreement_).dump();
  const Fd first = come(1, hello), second = come(1, hello);
  const auto coordinator = coordinate(kPatienceS);
  EXPECT_SAYS(reason(second, Outcome::kRefused), "it is rank 1, which has come already");
  EXPECT_SAYS(reason(first, Outcome::kFailed), "rank 1 on 127.0.0.1 was refused: it says");
  const Fd third = come(0, hello), fourth = come(2, hello);
  EXPECT_SAYS(reason(third, Outcome::kFailed), "rank 1 on 127.0.0.1 was refused: it says");
  EXPECT_SAYS(reason(fourth, Outcome::kFailed), "rank 1 on 127.0.0.1 was refused: it says");
}

TEST_F(Coordination, ARankThatGoesWhileOthersAreAwaitedEndsTheRun) {
  agreement_.size = 3;
  const std::string hello = hello_of(agreement_).dump();
  const Fd first = come(0, hello);
  Fd second = come(1, hello);
  const auto coordinator = coordinate(kPatienceS);
  Greeting greeting;
  EXPECT_TRUE(receive(second, bytes_of(greeting)));
  second.reset();
  EXPECT_SAYS(reason(first, Outcome::kFailed), "rank 1 on 127.0.0.1 is gone (killed, or crashed)");
  const Fd late = come(2, hello);
  EXPECT_SAYS(reason(late, Outcome::kFailed), "rank 1 on 127.0.0.1 is gone (killed, or crashed)");
}

TEST_F(Coordination, ARankThatIsResetBeforeTheAnswerTriesAgain) {
  auto joined = std::async(std::launch::async, [this] { return join(); });
  abort_connection(accept());
  abort_connection(greet());
  const Fd fd = greet();
  const std::vector<std::byte> content =
      pack_blobs(std::vector<std::string>{R"({"host": "here", "pid": 1})"});
  Answer answer;
  answer.bytes = static_cast<uint32_t>(content.size());
  send(fd, bytes_of(std::as_const(answer)));
  send(fd, content);
  send(fd, Mac{});
  const auto member = joined.get();
  ASSERT_TRUE(member) << member.error().what;
  ASSERT_EQ((*member)->ranks().size(), 1u);
  EXPECT_EQ((*member)->ranks()[0].host, "here");
}

TEST_F(Coordination, ARankThatIsResetSaysWhenNobodyListensAnyMore) {
  auto joined = std::async(std::launch::async, [this] { return join(); });
  Fd first = greet();
  listener_.reset();
  abort_connection(std::move(first));
  const auto member = joined.get();
  ASSERT_FALSE(member);
  EXPECT_SAYS(member.error().what, "is gone: ");
}

// What a rank says of itself goes to the terminals of all ranks.
TEST_F(Coordination, TextsOfARankAreCleanAndShort) {
  nlohmann::json hello = hello_of(agreement_);
  hello["host"] = "\x1b[2Jhost\r\n";
  Fd fd = come(0, hello.dump());
  const auto coordinator = coordinate(kPatienceS);
  Connection rank = joined(std::move(fd));
  rank.queue(FrameType::kFailure, {{"text", "\x1b]0;x\a \nforged" + std::string(1 << 20, 'x')}});
  const std::string text = verdict(&rank);
  EXPECT_SAYS(text, "on  [2Jhost  ):  ]0;x   forgedxxx");
  EXPECT_LT(text.size(), 2000u);
}

// The coordinator would copy and print it, by recursion.
TEST_F(Coordination, ARankWhosePartIsTooDeepIsNamed) {
  agreement_.size = 2;
  const std::string hello = hello_of(agreement_).dump();
  Fd first = come(0, hello), second = come(1, hello);
  const auto coordinator = coordinate(kPatienceS);
  Connection rank = joined(std::move(first)), deep = joined(std::move(second));
  const std::string body = R"({"number":0,"label":"x","data":)" + std::string(300'000, '[') +
                           std::string(300'000, ']') + "}";
  const FrameHeader header{kFrameMagic, static_cast<uint32_t>(FrameType::kPart),
                           static_cast<uint32_t>(body.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += body;
  for (size_t sent = 0; sent < bytes.size();) {
    wait_for(deep.fd(), POLLOUT);
    const ssize_t n = ::send(deep.fd(), &bytes[sent], bytes.size() - sent, MSG_DONTWAIT);
    ASSERT_TRUE(n > 0 || errno == EAGAIN) << strerror(errno);
    sent += n > 0 ? static_cast<size_t>(n) : 0;
  }
  const std::string text = verdict(&rank);
  EXPECT_SAYS(text, "rank 1 (process 0 on ");
  EXPECT_SAYS(text, "JSON with more than 32 brackets within each other");
}

}  // namespace
}  // namespace slime::rendezvous
