// How packets of a verbs channel travel: how long its NIC waits for what, and how it marks them.
#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

constexpr uint32_t kSoftwareVendor = 0xffffff;

Path path_of(const Settings& settings, uint32_t vendor_id = 0) {
  FakeVerbsOptions options;
  options.vendor_id = vendor_id;
  FakeVerbs nics(options);
  const auto rails = open_verbs_rails(nics.symbols(), nics.sysfs_root(), settings, nullptr);
  EXPECT_TRUE(rails && rails->size() == 2);
  const auto port = static_cast<VerbsRail&>(*rails->front()).port();
  EXPECT_TRUE(port);
  return Path::from(**port, settings, kNoTrafficClass);
}

struct Waiting {
  double peer_timeout;
  int retries, timeout;
};

// Four times 4.096 us times 2 to the power of the time-out, once more than the retries: at most 3/4
// of NCCL_SLIME_PEER_TIMEOUT.
TEST(VerbsPath, TheTimeOutFollowsFromThatOfThePeer) {
  ASSERT_EQ(Settings().ib_timeout, 0);
  ASSERT_EQ(Settings().peer_timeout, 60.0);
  ASSERT_EQ(Settings().ib_retry_count, 7);
  for (const Waiting& each : {Waiting{60, 7, 18},
                              {8, 7, 15},
                              {8, 0, 18},
                              {60, 0, 21},
                              {60, 3, 19},
                              {3'600, 7, 24},
                              {0.001, 7, 2},
                              {0.00001, 7, 1}}) {
    SCOPED_TRACE(testing::Message() << each.peer_timeout << " s, " << each.retries << " retries");
    Settings settings = verbs_settings();
    settings.ib_timeout = 0;
    settings.peer_timeout = each.peer_timeout;
    settings.ib_retry_count = each.retries;
    const Path path = path_of(settings);
    EXPECT_EQ(path.timeout, each.timeout);
    EXPECT_EQ(path.retries, each.retries);
  }
}

TEST(VerbsPath, ATimeOutThatIsSetIsTakenAsItIs) {
  for (const int timeout : {1, 14, 31}) {
    Settings settings = verbs_settings();
    settings.ib_timeout = timeout;
    EXPECT_EQ(path_of(settings).timeout, timeout);
  }
}

TEST(VerbsPath, SoftwareNeverTriesWithoutEnd) {
  for (const int retries : {0, 3, 6, 7}) {
    Settings settings = verbs_settings();
    settings.ib_retry_count = retries;
    EXPECT_EQ(path_of(settings, kSoftwareVendor).retries, std::min(retries, 6));
    EXPECT_EQ(path_of(settings).retries, retries);
  }
}

TEST(VerbsPath, QueuePairsWaitAsThePathSays) {
  Settings settings = verbs_settings(3);
  settings.ib_timeout = 0;
  settings.ib_retry_count = 7;
  FakeVerbsOptions options;
  options.vendor_id = kSoftwareVendor;
  TestNics world(settings, options);
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  const std::vector<ibv_qp_attr> all = world.nics.attributes(0);
  ASSERT_EQ(all.size(), 3u);
  for (const ibv_qp_attr& each : all) {
    EXPECT_EQ(each.timeout, 18);
    EXPECT_EQ(each.retry_cnt, 6);
    EXPECT_EQ(each.rnr_retry, 7) << "a peer that does not poll is asked without end";
  }
}

std::vector<int> classes_of(int of_channel, int of_settings) {
  Settings settings = verbs_settings(2);
  settings.ib_traffic_class = of_settings;
  TestNics world(settings);
  TestPair pair(world);
  pair.left =
      *world.left->open_channel({.active = true, .traffic_class = of_channel, .first = true});
  EXPECT_TRUE(pair.connect());
  std::vector<int> classes;
  for (const ibv_qp_attr& each : world.nics.attributes(0)) {
    classes.push_back(each.ah_attr.grh.traffic_class);
  }
  for (const ibv_qp_attr& each : world.nics.attributes(1)) {
    EXPECT_EQ(each.ah_attr.grh.traffic_class, std::max(of_settings, 0))
        << "each end marks what it sends";
  }
  return classes;
}

TEST(VerbsPath, TheRailsTrafficClassIsStrongerThanTheCommunicators) {
  EXPECT_THAT(classes_of(104, 32), ElementsAre(32, 32));
  EXPECT_THAT(classes_of(104, 0), ElementsAre(0, 0)) << "0 is a class, too";
  EXPECT_THAT(classes_of(255, -1), ElementsAre(255, 255));
  EXPECT_THAT(classes_of(kNoTrafficClass, 32), ElementsAre(32, 32));
  EXPECT_THAT(classes_of(kNoTrafficClass, -1), ElementsAre(0, 0));
}

TEST(VerbsPath, ASettingForAllRailsIsTheStrongest) {
  Settings settings = verbs_settings();
  settings.traffic_class = 104;  // so each channel is opened with it
  settings.ib_traffic_class = 32;
  FakeVerbs nics;
  const auto rails = open_verbs_rails(nics.symbols(), nics.sysfs_root(), settings, nullptr);
  ASSERT_TRUE(rails);
  const auto real = static_cast<VerbsRail&>(*rails->front()).last_port();
  EXPECT_EQ(Path::from(*real, settings, 104).traffic_class, 104);
}

TEST(VerbsPath, TheServiceLevelIsThatOfTheSettings) {
  Settings settings = verbs_settings();
  settings.service_level = 5;
  TestNics world(settings);
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  for (const ibv_qp_attr& each : world.nics.attributes(0)) EXPECT_EQ(each.ah_attr.sl, 5);
}

}  // namespace
}  // namespace slime::verbs
