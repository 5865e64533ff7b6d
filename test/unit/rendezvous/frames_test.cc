// The control connection: whole frames whatever the pieces, and no trust in what arrives.
#include "rendezvous/frames.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace slime::rendezvous {
namespace {

struct Ends {
  Fd raw, other;
};

Ends make_ends() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

std::string frame_bytes(uint32_t magic, uint32_t type, uint32_t length, const std::string& body) {
  const FrameHeader header{magic, type, length};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
}

// What a Connection says to bytes from a stranger.
std::string verdict_on(const std::string& bytes) {
  Ends ends = make_ends();
  Connection wire(std::move(ends.other), {.bytes = 1000, .nesting = 3});
  EXPECT_EQ(write(ends.raw.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  std::vector<Frame> frames;
  return wire.receive(&frames) ? "accepted" : wire.why();
}

TEST(FramesTest, FramesArriveWholeInPieces) {
  Ends ends = make_ends();
  Connection receiver(std::move(ends.other));
  const std::string bytes =
      frame_bytes(kFrameMagic, 4, 9, R"({"n":123})") + frame_bytes(kFrameMagic, 9, 2, "{}");
  std::vector<Frame> frames;
  for (const char byte : bytes) {
    ASSERT_EQ(write(ends.raw.get(), &byte, 1), 1);
    ASSERT_TRUE(receiver.receive(&frames));
  }
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].type, FrameType::kPart);
  EXPECT_EQ(number_in(frames[0].body, "n", -1), 123);
  EXPECT_EQ(frames[1].type, FrameType::kFarewell);
}

TEST(FramesTest, OutputWaitsForRoom) {
  Ends ends = make_ends();
  Connection sender(std::move(ends.raw)), receiver(std::move(ends.other));
  const std::string large(3 << 20, 'x');
  sender.queue(FrameType::kPart, {{"data", large}});
  std::vector<Frame> frames;
  for (int i = 0; i < 1000 && frames.empty(); ++i) {
    ASSERT_TRUE(sender.flush());
    ASSERT_TRUE(receiver.receive(&frames));
  }
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(text_in(frames[0].body, "data"), large);
  EXPECT_FALSE(sender.has_output());
}

TEST(FramesTest, StrangersAreRecognised) {
  EXPECT_NE(verdict_on("GET / HTTP/1.1\r\n\r\n").find("does not speak"), std::string::npos);
  for (const uint32_t type : {0u, 3u, 10u, 99u}) {
    EXPECT_NE(verdict_on(frame_bytes(kFrameMagic, type, 2, "{}")).find("does not speak"),
              std::string::npos);
  }
  EXPECT_NE(verdict_on(frame_bytes(kFrameMagic, 4, 1001, "")).find("oversized"), std::string::npos);
  EXPECT_NE(verdict_on(frame_bytes(kFrameMagic, 4, ~0u, "")).find("oversized"), std::string::npos);
  EXPECT_NE(verdict_on(frame_bytes(kFrameMagic, 4, 3, "{,}")).find("malformed"), std::string::npos);
  EXPECT_EQ(verdict_on(frame_bytes(kFrameMagic, 4, 2, "{}")), "accepted");
}

// A tree of JSON is copied and printed by recursion: 300,000 brackets ended rank 0.
TEST(FramesTest, DeepNestingIsRefused) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  const auto verdict = [&](const std::string& body) {
    return verdict_on(frame_bytes(kFrameMagic, 4, static_cast<uint32_t>(body.size()), body));
  };
  EXPECT_EQ(verdict(nested(3)), "accepted");
  EXPECT_EQ(verdict(R"(["[[[[[[", "\"[[[["])"), "accepted") << "brackets in strings";
  EXPECT_EQ(verdict(R"([[[], []], [{}, {}]])"), "accepted");
  for (const std::string& body :
       {nested(4), std::string(500, '['), std::string(R"({"a":[[{}]]})")}) {
    EXPECT_NE(verdict(body).find("more than 3 brackets within each other"), std::string::npos);
  }
}

// Parts that the coordinator takes fit into the frame that all ranks get.
TEST(FramesTest, AllPartsFitIntoTheWhole) {
  for (const size_t ranks : {2, 16, 17, 1000, 1024}) {
    EXPECT_LE(part_limits(ranks).bytes * ranks, kMaxFrameBytes) << ranks;
    EXPECT_GE(part_limits(ranks).bytes, size_t{64} << 10) << ranks;
  }
  EXPECT_LE(part_limits(2).bytes, size_t{4} << 20);
}

TEST(FramesTest, TheEndIsNoticed) {
  Ends ends = make_ends();
  Connection wire(std::move(ends.other));
  ends.raw.reset();
  std::vector<Frame> frames;
  EXPECT_FALSE(wire.receive(&frames));
  EXPECT_NE(wire.why().find("ended"), std::string::npos);
}

TEST(FramesTest, TextsThatAreNoUtf8AreSentAllTheSame) {
  Ends ends = make_ends();
  Connection sender(std::move(ends.raw)), receiver(std::move(ends.other));
  sender.queue(FrameType::kFailure, {{"text", "caf\xe9"}});
  std::vector<Frame> frames;
  ASSERT_TRUE(sender.flush());
  ASSERT_TRUE(receiver.receive(&frames));
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(text_in(frames[0].body, "text").substr(0, 3), "caf");
}

TEST(FramesTest, ValuesOfAnotherKindCountAsMissing) {
  const nlohmann::json body = {{"text", 5}, {"number", "x"}, {"real", 1.5}};
  EXPECT_EQ(text_in(body, "text"), "");
  EXPECT_EQ(number_in(body, "number", -1), -1);
  EXPECT_EQ(number_in(body, "real", -1), -1);
  EXPECT_EQ(number_in(nlohmann::json::array(), "number", -1), -1);
}

}  // namespace
}  // namespace slime::rendezvous
