// What must be true of the vectors whatever wrote them: sums counted here from the contributions in
// the capture, one result for each child, and how many answers of each kind there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "test/support/check_oracle.h"
#include "test/support/switch_model.h"
#include "test/vectors/vector.h"

namespace slime::vectors {
namespace {

using sap::Type;

struct Counts {
  size_t rounds = 0;   // completed: a result to every child, or a partial sum upwards
  size_t answers = 0;  // results and partial sums again
  size_t statuses = 0, rejects = 0;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& c) {
  return out << "{" << c.rounds << ", " << c.answers << ", " << c.statuses << ", " << c.rejects
             << "}";
}

// Counted by hand from the scenarios, where a hand can.
const std::map<std::string, Counts> kCounts = {
    {"lossless-2", {12, 0, 0, 0}}, {"lossless-3", {12, 0, 0, 0}},    {"loss", {3, 3, 0, 0}},
    {"duplicates", {2, 2, 0, 0}},  {"stale", {5, 1, 0, 0}},          {"reordering", {3, 2, 0, 0}},
    {"tokens", {2, 0, 1, 0}},      {"queries", {2, 1, 4, 0}},        {"rejects", {1, 0, 0, 16}},
    {"malformed", {1, 0, 0, 0}},   {"exponents-only", {4, 1, 0, 0}}, {"specials", {5, 0, 0, 0}},
    {"formats", {28, 0, 0, 0}},    {"wrap", {9, 0, 0, 0}},           {"tree-root", {5, 4, 0, 0}},
};

struct Parsed {
  sap::Header header;
  std::vector<std::byte> payload;
  bool input = false;
  SocketAddress from, to;
};

std::vector<Parsed> parse(const Vector& vector) {
  std::vector<Parsed> all;
  for (const test::CapturedPacket& packet : vector.packets) {
    Parsed parsed{{}, {}, vector.is_input(packet), packet.from, packet.to};
    if (sap::decode(packet.payload, &parsed.header) != sap::Fault::kNone) {
      EXPECT_TRUE(parsed.input) << "a switch answers with packets of SAP/2";
      continue;
    }
    parsed.payload.assign(packet.payload.begin() + sap::kHeaderBytes, packet.payload.end());
    all.push_back(std::move(parsed));
  }
  return all;
}

bool is_sum(Type type) {
  return type == Type::kResult || type == Type::kResultAgain || type == Type::kPartial;
}

class Facts : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto loaded = load_vector("test/vectors/data", GetParam());
    ASSERT_TRUE(loaded) << loaded.error().what;
    vector_ = std::move(*loaded);
    packets_ = parse(vector_);
    ASSERT_FALSE(packets_.empty());
  }
  using Round = std::pair<uint16_t, uint32_t>;
  static Round round_of(const Parsed& p) { return {p.header.slot, p.header.epoch}; }

  bool is_contribution(const Parsed& p) const {
    const Type type = vector_.job.children_are_switches ? Type::kPartial : Type::kContribution;
    const net::JobSpec& job = vector_.job;
    return p.input && p.header.type == type && p.header.generation == job.generation &&
           p.header.job == job.job && p.header.token == job.token &&
           p.header.child < job.children.size() && p.from == job.children[p.header.child];
  }
  // The first of every child to the round of `answer` before it, of its shape.
  std::map<uint8_t, Parsed> contributions_to(size_t answer) const {
    const sap::Header& wanted = packets_[answer].header;
    std::map<uint8_t, Parsed> found;
    for (size_t i = 0; i < answer; ++i) {
      const sap::Header& header = packets_[i].header;
      const bool same = round_of(packets_[i]) == round_of(packets_[answer]) &&
                        header.format == wanted.format && header.op == wanted.op &&
                        header.lanes == wanted.lanes;
      if (same && is_contribution(packets_[i])) found.try_emplace(header.child, packets_[i]);
    }
    return found;
  }

  Vector vector_;
  std::vector<Parsed> packets_;
};

// Every sum that leaves the switch is the sum of exactly one contribution of each child.
TEST_P(Facts, SumsAreSums) {
  const bool leaf = vector_.job.parent.has_value();
  for (size_t at = 0; at < packets_.size(); ++at) {
    const sap::Header& sum = packets_[at].header;
    const bool downwards = vector_.job.children_are_switches && sum.type == Type::kParentResult;
    if (packets_[at].input || !(is_sum(sum.type) || downwards)) continue;
    if (leaf && sum.type != Type::kPartial) continue;  // the parent's: TreeAddsUp
    const auto parts = contributions_to(at);
    ASSERT_EQ(parts.size(), vector_.job.children.size()) << "sum " << at;
    std::vector<std::vector<std::byte>> payloads;
    int exponents[2] = {-128, -128};
    uint32_t special = 0, check = 0;
    for (const auto& [child, part] : parts) {
      payloads.push_back(part.payload);
      for (int i : {0, 1}) exponents[i] = std::max<int>(exponents[i], part.header.exponents[i]);
      special |= part.header.special;
      check += part.header.check;
    }
    EXPECT_EQ(packets_[at].payload, test::reduce_payloads(sum.format, sum.op, payloads));
    for (int i : {0, 1}) EXPECT_EQ(sum.exponents[i], exponents[i]);
    EXPECT_EQ(sum.special, special);
    EXPECT_EQ(sum.check, check);
  }
}

// Whoever receives a result can tell that it is one, by its check and its copies.
TEST_P(Facts, ChecksVerify) {
  const bool tree = vector_.name.starts_with("tree");
  for (const Parsed& packet : packets_) {
    const sap::Header& header = packet.header;
    if (packet.input || !is_sum(header.type)) continue;
    sap::Contributors all =
        sap::all_ranks(tree ? 4 : static_cast<uint32_t>(vector_.job.children.size()));
    if (header.type == Type::kPartial) {  // of the two ranks below this leaf
      const uint32_t first = 2u * vector_.job.parent->child;
      all = {2, sap::factor(first) + sap::factor(first + 1)};
    }
    EXPECT_TRUE(sap::verifies(header, packet.payload, all));
  }
}

TEST_P(Facts, EachChildGetsOneResult) {
  const Type result = vector_.job.children_are_switches ? Type::kParentResult : Type::kResult;
  std::map<std::pair<Round, std::string>, int> results;
  for (const Parsed& packet : packets_) {
    if (packet.input || packet.header.type != result) continue;
    EXPECT_TRUE(std::ranges::find(vector_.job.children, packet.to) != vector_.job.children.end());
    ++results[{round_of(packet), packet.to.to_string()}];
  }
  // A root of switches has no type of its own for results that it gives again.
  const bool names_repeats = !vector_.job.children_are_switches;
  for (const auto& [key, count] : results) {
    // A round of wrap comes twice, half a circle apart.
    const int once = vector_.name == "wrap" && key.first.second == 1 ? 2 : 1;
    if (names_repeats) {
      EXPECT_EQ(count, once) << key.second;
    }
    for (const SocketAddress& child : vector_.job.children) {
      EXPECT_TRUE(results.count({key.first, child.to_string()})) << child.to_string();
    }
  }
}

// Answers again, statuses and refusals go to who has just asked, and to nobody else.
TEST_P(Facts, AnswersGoToWhoAsked) {
  const Parsed* asked = nullptr;
  for (const Parsed& packet : packets_) {
    if (packet.input) asked = &packet;
    const Type type = packet.header.type;
    if (packet.input ||
        (type != Type::kResultAgain && type != Type::kStatus && type != Type::kReject)) {
      continue;
    }
    ASSERT_NE(asked, nullptr);
    EXPECT_EQ(packet.to.to_string(), asked->from.to_string());
  }
}

Counts count(const Vector& vector, const std::vector<Parsed>& packets) {
  Counts counts;
  std::set<std::pair<uint16_t, uint32_t>> sums;
  size_t to_children = 0;
  for (const Parsed& packet : packets) {
    const sap::Header& header = packet.header;
    if (packet.input) continue;
    counts.statuses += header.type == Type::kStatus;
    counts.rejects += header.type == Type::kReject;
    counts.answers += header.type == Type::kResultAgain;
    to_children += header.type == Type::kResult || header.type == Type::kParentResult;
    sums.insert({header.slot, header.epoch});
  }
  const size_t children = vector.job.children.size();
  // A root of switches has no type of its own for what it sends again.
  counts.rounds = vector.job.children_are_switches ? sums.size() : to_children / children;
  counts.answers += to_children - counts.rounds * children;
  return counts;
}

TEST_P(Facts, CountsAreThoseOfTheScenario) {
  const auto expected = kCounts.find(vector_.name);
  if (expected == kCounts.end()) return;  // random, and leaves: the other facts hold
  EXPECT_EQ(count(vector_, packets_), expected->second);
}

TEST(Tree, AddsUp) {
  std::map<std::string, Vector> at;
  for (const std::string name : {"tree-root", "tree-leaf0", "tree-leaf1"}) {
    auto loaded = load_vector("test/vectors/data", name);
    ASSERT_TRUE(loaded) << loaded.error().what;
    at[name] = std::move(*loaded);
  }
  std::map<uint32_t, std::map<std::string, std::vector<std::byte>>> contributions;
  std::map<uint32_t, std::set<std::string>> served;
  std::vector<std::pair<uint32_t, std::vector<std::byte>>> results;
  for (const auto& [name, vector] : at) {
    for (const Parsed& p : parse(vector)) {
      if (p.input && p.header.type == Type::kContribution) {
        contributions[p.header.epoch][p.from.to_string()] = p.payload;
      }
      if (p.input || (p.header.type != Type::kResult && p.header.type != Type::kResultAgain))
        continue;
      results.emplace_back(p.header.epoch, p.payload);
      served[p.header.epoch].insert(p.to.to_string());
    }
  }
  ASSERT_EQ(contributions.size(), 5u);
  for (const auto& [epoch, payload] : results) {
    std::vector<std::vector<std::byte>> payloads;
    for (const auto& [worker, bytes] : contributions[epoch]) payloads.push_back(bytes);
    ASSERT_EQ(payloads.size(), 4u);
    EXPECT_EQ(payload, test::reduce_payloads(sap::Format::kI32, sap::Op::kSum, payloads));
  }
  for (uint32_t epoch = 1; epoch <= 5; ++epoch) EXPECT_EQ(served[epoch].size(), 4u) << epoch;
}

INSTANTIATE_TEST_SUITE_P(Vectors, Facts, testing::ValuesIn(vector_names("test/vectors/data")),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace slime::vectors
