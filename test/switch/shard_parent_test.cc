// What a leaf does with the words of its root, packet by packet.
#include <gtest/gtest.h>

#include <algorithm>

#include "switch/core/shard.h"

namespace slime::net {
namespace {

struct Sent {
  sap::Header header;
  std::vector<std::byte> payload;
  std::vector<SocketAddress> to;
};

class Recorder final : public Outbox {
 public:
  void send(const Outgoing& packet, std::span<const SocketAddress> to) override {
    std::vector<std::byte> bytes(packet.header.begin(), packet.header.end());
    bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
    Sent one{.header = {}, .payload = {}, .to = {to.begin(), to.end()}};
    ASSERT_EQ(sap::decode(bytes, &one.header), sap::Fault::kNone) << "a packet that cannot be";
    one.payload.assign(packet.payload.begin(), packet.payload.end());
    sent.push_back(one);
  }
  std::vector<Sent> sent;
};

SocketAddress address(const char* text) { return SocketAddress::parse(text).value(); }

class ShardParent : public testing::Test {
 protected:
  const SocketAddress root_ = address("10.0.0.9:28880");
  const std::vector<SocketAddress> workers_ = {address("10.0.1.1:1000"), address("10.0.1.2:1000")};
  static constexpr uint32_t kToken = 0x70c3;
  uint32_t token_ = kToken;
  Shard shard_{0, 1};
  Recorder out_;

  void SetUp() override {
    JobSpec spec;
    spec.job = 0x8001;
    spec.generation = 5;
    spec.token = kToken;
    spec.slots = 2;
    spec.max_lanes = 8;
    spec.children = workers_;
    spec.parent = Parent{root_, 3};
    ASSERT_TRUE(shard_.add_job(spec));
  }
  // A packet of one word, or none.
  void take(sap::Type type, uint8_t child, const SocketAddress& from, uint32_t cookie = 0,
            uint8_t generation = 5, uint16_t job = 0x8001) {
    const bool level = type == sap::Type::kStatus;
    const sap::Header header{.type = type,
                             .job = job,
                             .generation = generation,
                             .child = child,
                             .token = token_,
                             .slot = 1,
                             .lanes = uint16_t(type == sap::Type::kQuery ? 0 : 1),
                             .epoch = 1,
                             .cookie = cookie,
                             .level = uint8_t(level ? 1 : 0)};
    std::vector<std::byte> bytes(sap::kHeaderBytes + 4 * header.lanes);
    sap::encode(header, bytes.data());
    if (header.lanes > 0) sap::wire::put32(&bytes[sap::kHeaderBytes], 0b101);
    shard_.handle(bytes, from, 1, out_);
  }
  void contribute_all() {
    for (uint8_t child : {0, 1}) take(sap::Type::kContribution, child, workers_[child]);
    ASSERT_EQ(out_.sent.size(), 1u);
    EXPECT_EQ(out_.sent[0].header.type, sap::Type::kPartial);
    out_.sent.clear();
  }
};

TEST_F(ShardParent, AQuestionGoesUpOnceAllHereHaveContributed) {
  take(sap::Type::kContribution, 0, workers_[0]);
  take(sap::Type::kQuery, 0, workers_[0]);
  ASSERT_EQ(out_.sent.size(), 1u) << "this leaf knows who is missing";
  EXPECT_EQ(out_.sent[0].header.type, sap::Type::kStatus);
  EXPECT_EQ(out_.sent[0].header.level, 0);
  EXPECT_EQ(out_.sent[0].to, std::vector{workers_[0]});
  take(sap::Type::kContribution, 1, workers_[1]);
  out_.sent.clear();
  take(sap::Type::kQuery, 1, workers_[1]);
  ASSERT_EQ(out_.sent.size(), 2u);
  EXPECT_EQ(out_.sent[0].header.type, sap::Type::kPartial) << "it may have been lost";
  EXPECT_EQ(out_.sent[1].header.type, sap::Type::kQuery);
  EXPECT_EQ(out_.sent[1].header.child, 3) << "what we are to the root";
  EXPECT_EQ(out_.sent[1].header.cookie, 1u) << "who asked";
  EXPECT_EQ(out_.sent[1].to, std::vector{root_});
}

TEST_F(ShardParent, TheRootsAnswerGoesToWhoAsked) {
  contribute_all();
  take(sap::Type::kStatus, 3, root_, 1);
  ASSERT_EQ(out_.sent.size(), 1u);
  EXPECT_EQ(out_.sent[0].to, std::vector{workers_[1]});
  EXPECT_EQ(out_.sent[0].header.level, 1) << "the bits are leaves";
  EXPECT_EQ(sap::wire::get32(out_.sent[0].payload.data()), 0b101u);
  take(sap::Type::kStatus, 3, root_, 2);
  take(sap::Type::kStatus, 3, root_, ~0u);
  EXPECT_EQ(out_.sent.size(), 1u) << "nobody of that number is here";
}

// From the root, and from the workers.
TEST_F(ShardParent, WrongTokensAreDropped) {
  contribute_all();
  token_ = 1;
  for (const sap::Type type : {sap::Type::kParentResult, sap::Type::kStatus, sap::Type::kReject}) {
    take(type, 3, root_, 1);
  }
  take(sap::Type::kQuery, 1, workers_[1]);
  EXPECT_TRUE(out_.sent.empty());
  EXPECT_EQ(shard_.counters_of(0x8001)->wrong_token.get(), 4u);
  token_ = kToken;
  take(sap::Type::kParentResult, 3, root_, 1);
  ASSERT_EQ(out_.sent.size(), 1u);
  EXPECT_EQ(out_.sent[0].header.token, kToken) << "and it is in what goes to the workers";
}

TEST_F(ShardParent, TheRootsRefusalGoesToAll) {
  contribute_all();
  take(sap::Type::kReject, 3, root_);
  ASSERT_EQ(out_.sent.size(), 1u);
  EXPECT_EQ(out_.sent[0].header.type, sap::Type::kReject);
  EXPECT_EQ(out_.sent[0].to, workers_);
}

// A word in an answer to numbers of 64 bits is no half of such a number.
TEST_F(ShardParent, ARefusalOfWideNumbersReachesTheWorkers) {
  Shard root(0, 1);
  JobSpec spec;
  spec.job = 0x8001;
  spec.generation = 5;
  spec.token = kToken;
  spec.slots = 2;
  spec.max_lanes = 8;
  spec.children = {address("10.0.0.1:28880"), address("10.0.0.2:28880")};
  spec.children_are_switches = true;
  ASSERT_TRUE(root.add_job(spec));
  Recorder refusals;
  for (const uint16_t lanes : {4, 2}) {
    const sap::Header header{.type = sap::Type::kPartial,
                             .format = sap::Format::kI64,
                             .job = 0x8001,
                             .generation = 5,
                             .child = uint8_t(lanes == 4 ? 0 : 1),
                             .token = kToken,
                             .slot = 1,
                             .lanes = lanes,
                             .epoch = 1,
                             .level = 1};
    std::vector<std::byte> bytes(sap::kHeaderBytes + 4 * size_t{lanes});
    sap::encode(header, bytes.data());
    root.handle(bytes, spec.children[header.child], 1, refusals);
  }
  ASSERT_EQ(refusals.sent.size(), 1u);
  ASSERT_EQ(refusals.sent[0].header.type, sap::Type::kReject);
  std::vector<std::byte> refusal(sap::kHeaderBytes + 4);
  sap::encode(refusals.sent[0].header, refusal.data());
  std::ranges::copy(refusals.sent[0].payload, &refusal[sap::kHeaderBytes]);
  contribute_all();
  shard_.handle(refusal, root_, 1, out_);
  ASSERT_EQ(out_.sent.size(), 1u);
  EXPECT_EQ(out_.sent[0].header.type, sap::Type::kReject);
}

TEST_F(ShardParent, OnlyTheRootSpeaksForTheRoot) {
  contribute_all();
  for (const sap::Type type : {sap::Type::kStatus, sap::Type::kReject, sap::Type::kParentResult}) {
    take(type, 0, workers_[0]);
    take(type, 3, address("10.0.0.9:28881"));
    take(type, 3, root_, 0, 4);          // another generation
    take(type, 3, root_, 0, 5, 0x8002);  // no such job
  }
  EXPECT_TRUE(out_.sent.empty()) << "an answer is not answered: two switches would go on for ever";
}

}  // namespace
}  // namespace slime::net
