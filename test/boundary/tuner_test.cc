// The tuner, asked as each NCCL version asks it.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "test/boundary/support/tuner_api.h"

namespace slime::boundary {
namespace {

constexpr int kAllReduce = 4;
constexpr size_t kLost = 1000, kUnmeasured = 10'000'000, kWon = 100'000;
constexpr char kRules[] =
    "slime-tuner 1\n"
    "avoid  0     65535   4 4\n"
    "prefer 65536 1048576 4 4\n"
    "prefer 0     1000000 16 2\n";

// What NCCL offers for an all_reduce between nodes without NVSwitch.
Costs usual() {
  Costs costs;
  costs.of[kTree] = {40, 45, 60};
  costs.of[kRing] = {50, 55, 30};
  costs.of[kChain][kSimple] = 35;
  return costs;
}

// By version of the tuner's table.
class Tuner : public PluginTest, public testing::WithParamInterface<int> {
 protected:
  Tuner() : tuner_(TunerApi::of(plugin_, GetParam())), net_(Api::of(plugin_, Api::kNewest)) {
    set("NCCL_SLIME_SWITCH", "127.0.0.1:9");  // nobody asks it for anything here
  }
  ~Tuner() override { std::filesystem::remove(path_); }

  void write(const std::string& text) {
    std::ofstream(path_) << text;
    set("NCCL_SLIME_TUNER_FILE", path_.c_str());
  }
  // As NCCL: the net comes first.
  void start(size_t ranks = 4, size_t nodes = 4) {
    ASSERT_NE(tuner_, nullptr);
    ASSERT_EQ(net_->init(), nccl::kSuccess);
    ASSERT_EQ(tuner_->init(ranks, nodes), nccl::kSuccess);
  }
  void stop() {
    EXPECT_EQ(tuner_->destroy(tuner_->context), nccl::kSuccess);
    EXPECT_EQ(net_->finalize(), nccl::kSuccess);
  }
  // Every cost stays, and no demand is made, for any function and size.
  void expect_silence() {
    for (const size_t bytes : {size_t{0}, kLost, kWon, kUnmeasured, SIZE_MAX}) {
      for (int function = 0; function < 15; ++function) {
        Costs costs = usual();
        Choice choice;
        EXPECT_EQ(tuner_->ask(function, bytes, &costs, &choice), nccl::kSuccess);
        EXPECT_EQ(costs, usual());
        EXPECT_EQ(choice, Choice());
      }
    }
  }

  const Plugin plugin_;
  const std::unique_ptr<TunerApi> tuner_;
  const std::unique_ptr<Api> net_;
  const std::string path_ = "/tmp/slime-tuner-test-" + std::to_string(getpid());
};
class TunerWithTable : public Tuner {};     // NCCL 2.22 and later
class TunerWithoutTable : public Tuner {};  // NCCL 2.21
INSTANTIATE_TEST_SUITE_P(Tuner, Tuner, testing::Values(2, 3, 4, 5), version_name);
INSTANTIATE_TEST_SUITE_P(Tuner, TunerWithTable, testing::Values(3, 4, 5), version_name);
INSTANTIATE_TEST_SUITE_P(Tuner, TunerWithoutTable, testing::Values(2), version_name);

TEST_P(Tuner, IsCompleteAndNamed) {
  EXPECT_STREQ(tuner_->name(), "SLIME");
  EXPECT_TRUE(tuner_->complete());
}

TEST_P(Tuner, TakesCollNetWhereItWon) {
  write(kRules);
  start();
  EXPECT_EQ(tuner_->decide(kAllReduce, kWon, usual()), (Choice{kChain, kSimple}));
  EXPECT_EQ(tuner_->decide(kAllReduce, 65536, usual()), (Choice{kChain, kSimple}));
  EXPECT_EQ(tuner_->decide(kAllReduce, 1048576, usual()), (Choice{kChain, kSimple}));
  EXPECT_EQ(tuner_->decide(kAllReduce, 1048577, usual()), (Choice{kRing, kSimple}));
  EXPECT_EQ(tuner_->decide(kAllReduce, kUnmeasured, usual()), (Choice{kRing, kSimple}));
  for (const int other : {0, 1, 2, 3, 5}) {
    EXPECT_EQ(tuner_->decide(other, kWon, usual()), (Choice{kRing, kSimple})) << other;
  }
  EXPECT_EQ(Log::count(nccl::kLogInfo,
                       "all_reduce by CollNet, where supported, for 65536 to 1048576 bytes; not "
                       "for 0 to 65535 bytes; otherwise as NCCL chooses"),
            1u)
      << Log::text();
  EXPECT_EQ(Log::count(nccl::kLogWarn), 0u) << Log::text();
  stop();
}

TEST_P(Tuner, AvoidsCollNetWhereItLost) {
  write(kRules);
  start();
  Costs costs = usual();
  costs.of[kChain][kSimple] = 1;  // NCCL's own model would take it
  const Choice expected = GetParam() == 2 ? Choice{kChain, kSimple} : Choice{kRing, kSimple};
  EXPECT_EQ(tuner_->decide(kAllReduce, kLost, costs), expected);
  EXPECT_EQ(tuner_->decide(kAllReduce, kUnmeasured, costs), (Choice{kChain, kSimple}));
  // Nothing else is left: the collective must not fail.
  Costs alone;
  alone.of[kChain][kSimple] = 35;
  EXPECT_EQ(tuner_->decide(kAllReduce, kLost, alone), (Choice{kChain, kSimple}));
  stop();
}

TEST_P(Tuner, SpeaksOfItsShapeOnly) {
  write(kRules);
  start(16, 2);
  EXPECT_EQ(tuner_->decide(kAllReduce, kLost, usual()), (Choice{kChain, kSimple}));
  stop();
  for (const auto& [ranks, nodes] : {std::pair<size_t, size_t>{4, 2}, {16, 16}, {8, 8}, {1, 1}}) {
    Log::clear();
    start(ranks, nodes);
    expect_silence();
    EXPECT_EQ(Log::count(nccl::kLogInfo, "no line for this shape"), 1u) << Log::text();
    stop();
  }
}

TEST_P(Tuner, AvoidsWhatWasNotMeasuredIfToldSo) {
  write(std::string(kRules) + "otherwise avoid\n");
  Costs costs = usual();
  costs.of[kChain][kSimple] = 1;
  const Choice expected = GetParam() == 2 ? Choice{kChain, kSimple} : Choice{kRing, kSimple};
  for (const size_t ranks : {4, 5}) {
    start(ranks, ranks);
    EXPECT_EQ(tuner_->decide(kAllReduce, kUnmeasured, costs), expected);
    EXPECT_EQ(tuner_->decide(kAllReduce + 1, kUnmeasured, costs), (Choice{kChain, kSimple}));
    EXPECT_EQ(Log::count(nccl::kLogInfo, "; otherwise not"), 1u) << Log::text();
    Log::clear();
    stop();
  }
}

// Two communicators at once, with different answers.
TEST_P(Tuner, KeepsCommunicatorsApart) {
  write(kRules);
  start(4, 4);
  void* const first = tuner_->context;
  ASSERT_EQ(tuner_->init(16, 2), nccl::kSuccess);
  EXPECT_EQ(tuner_->decide(kAllReduce, kLost, usual()), (Choice{kChain, kSimple}));
  EXPECT_EQ(tuner_->destroy(tuner_->context), nccl::kSuccess);
  tuner_->context = first;
  EXPECT_EQ(tuner_->decide(kAllReduce, kLost, usual()), (Choice{kRing, kSimple}));
  EXPECT_EQ(tuner_->decide(kAllReduce, kWon, usual()), (Choice{kChain, kSimple}));
  stop();
}

// What NCCL may have left enabled, in all combinations.
constexpr std::array<Choice, 6> kPlaces = {{{kTree, kSimple},
                                            {kRing, kLl},
                                            {kRing, kSimple},
                                            {kDirect, kSimple},
                                            {kChain, kSimple},
                                            {kNvls, kSimple}}};

Costs combination(unsigned enabled) {
  Costs costs;
  for (size_t i = 0; i < kPlaces.size(); ++i) {
    if ((enabled >> i & 1) == 0) continue;
    costs.of[kPlaces[i].algorithm][kPlaces[i].protocol] = static_cast<float>(10 + (i * 7) % 5);
  }
  return costs;
}

// Nothing but CollNet's costs has changed, and nothing ruled out has come back.
void expect_only_coll_net_changed(const Costs& before, const Costs& after) {
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      EXPECT_EQ(after.of[a][p] >= 0, before.of[a][p] >= 0) << a << " " << p;
      const bool ours = (a == kDirect || a == kChain) && p == kSimple && before.of[a][p] >= 0;
      if (ours) continue;
      EXPECT_EQ(after.of[a][p], before.of[a][p]) << a << " " << p;
    }
  }
}

TEST_P(Tuner, NeverEnablesWhatNcclRuledOut) {
  write(kRules);
  start();
  for (unsigned enabled = 0; enabled < 1U << kPlaces.size(); ++enabled) {
    const Costs costs = combination(enabled);
    const bool chain = (enabled >> 4 & 1) != 0;
    const bool coll_net = chain || (enabled >> 3 & 1) != 0;
    const bool other = (enabled & 0b100111) != 0;
    for (const size_t bytes : {kLost, kUnmeasured, kWon}) {
      SCOPED_TRACE(testing::Message() << "enabled " << enabled << ", " << bytes << " bytes");
      Costs advised = costs;
      Choice demanded;
      ASSERT_EQ(tuner_->ask(kAllReduce, bytes, &advised, &demanded), nccl::kSuccess);
      expect_only_coll_net_changed(costs, advised);
      const Choice taken = tuner_->decide(kAllReduce, bytes, costs);
      ASSERT_EQ(taken.algorithm >= 0, coll_net || other);
      // v2 knows of the chain only, and cannot avoid.
      const bool v2 = GetParam() == 2;
      if (bytes == kUnmeasured || (v2 && (bytes == kLost || !chain))) {
        EXPECT_EQ(taken, cheapest(costs));
      } else {
        EXPECT_EQ(taken.coll_net(), bytes == kWon ? coll_net : coll_net && !other);
      }
    }
  }
  stop();
}

TEST_P(TunerWithTable, TakesTheCheaperOfTwoCollNets) {
  write(kRules);
  start();
  Costs costs = usual();
  costs.of[kDirect][kSimple] = 34;
  EXPECT_EQ(tuner_->decide(kAllReduce, kWon, costs), (Choice{kDirect, kSimple}));
  costs.of[kDirect][kSimple] = 36;
  EXPECT_EQ(tuner_->decide(kAllReduce, kWon, costs), (Choice{kChain, kSimple}));
  stop();
}

TEST_P(TunerWithTable, SurvivesStrangeTables) {
  write(kRules);
  start();
  for (const int rows : {-1, 0, 3}) {  // too few to hold CollNet
    Costs costs = usual();
    Choice choice;
    EXPECT_EQ(tuner_->ask(kAllReduce, kWon, &costs, &choice, rows), nccl::kSuccess);
    EXPECT_EQ(costs, usual());
  }
  for (const float odd : {NAN, -1024.0F}) {  // NCCL multiplies costs of fp8, ignored ones too
    Costs costs = usual();
    costs.of[kChain][kSimple] = odd;
    EXPECT_EQ(tuner_->decide(kAllReduce, kWon, costs), (Choice{kRing, kSimple}));
  }
  Costs six = usual();  // NCCL 2.22
  Choice choice;
  EXPECT_EQ(tuner_->ask(kAllReduce, kWon, &six, &choice, 6), nccl::kSuccess);
  EXPECT_EQ(cheapest(six), (Choice{kChain, kSimple}));
  stop();
}

// NCCL 2.21 passes no table: there the tuner itself reads what NCCL_PROTO excludes.
TEST_P(TunerWithoutTable, HeedsNcclProtoWhereNcclDoesNot) {
  write(kRules);
  start();
  for (const char* proto : {"LL", "^Simple", "ll,ll128"}) {
    set("NCCL_PROTO", proto);
    EXPECT_EQ(tuner_->decide(kAllReduce, kWon, usual()), (Choice{kRing, kSimple})) << proto;
  }
  for (const char* proto : {"", "^LL128", "Simple", "LL,simple"}) {
    set("NCCL_PROTO", proto);
    EXPECT_EQ(tuner_->decide(kAllReduce, kWon, usual()), (Choice{kChain, kSimple})) << proto;
  }
  stop();
}

TEST_P(Tuner, StandsAside) {
  const auto aside = [this](const char* reason) {
    Log::clear();
    start();
    expect_silence();
    EXPECT_EQ(Log::count(nccl::kLogInfo, reason), 1u) << Log::text();
    EXPECT_EQ(Log::count(nccl::kLogInfo, "tuner"), 1u) << Log::text();
    EXPECT_EQ(Log::count(nccl::kLogWarn), 0u) << Log::text();
    stop();
  };
  aside("nothing was measured (NCCL_SLIME_TUNER_FILE is not set)");
  write(kRules);
  set("NCCL_ALGO", "ring");
  aside("NCCL_ALGO=ring is set");
  set("NCCL_ALGO", "");
  set("NCCL_SLIME_TUNER", "0");
  aside("NCCL_SLIME_TUNER is 0");
  set("NCCL_SLIME_TUNER", "1");
  set("NCCL_SLIME_SWITCH", "");
  aside("NCCL_SLIME_SWITCH names no switch");
}

// Users without a switch read nothing of a tuner.
TEST_P(Tuner, IsSilentWithoutASwitch) {
  set("NCCL_SLIME_SWITCH", "");
  start();
  expect_silence();
  EXPECT_EQ(Log::count(nccl::kLogInfo, "tuner"), 0u) << Log::text();
  stop();
}

TEST_P(Tuner, WarnsOfABadFileAndStandsAside) {
  write("slime-tuner 1\nprefer 10 5 4 4\n");
  start();
  expect_silence();
  EXPECT_EQ(Log::count(nccl::kLogWarn, "tuner file " + path_ + ": line 2, \"prefer 10 5 4 4\""), 1u)
      << Log::text();
  EXPECT_EQ(Log::count(nccl::kLogWarn), 1u) << Log::text();
  EXPECT_EQ(Log::count(nccl::kLogInfo, "NCCL_SLIME_TUNER_FILE cannot be used"), 1u) << Log::text();
  stop();
}

// NCCL may load us for the tuner alone, and may ask before or without a net of ours.
TEST_P(Tuner, NeedsNoNet) {
  write(kRules);
  ASSERT_EQ(tuner_->init(4, 4, nullptr), nccl::kSuccess);
  expect_silence();
  EXPECT_EQ(tuner_->destroy(tuner_->context), nccl::kSuccess);
  tuner_->context = nullptr;
  expect_silence();
  EXPECT_EQ(tuner_->destroy(nullptr), nccl::kSuccess);
}

}  // namespace
}  // namespace slime::boundary
