// Which verbs rails a host has, and why it has no others.
#include <cerrno>

#include "test/support/kept_warnings.h"
#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

struct Opened {
  std::vector<std::string> names, notes;
  std::string error;
};

Opened open(const FakeVerbs& nics, const Settings& settings = verbs_settings()) {
  Opened opened;
  const auto rails = open_verbs_rails(nics.symbols(), nics.sysfs_root(), settings, &opened.notes);
  if (!rails) {
    opened.error = rails.error().what;
  } else {
    for (const auto& rail : *rails) opened.names.push_back(rail->caps().name);
  }
  return opened;
}

Settings settings_for(const char* hca) {
  Settings settings = verbs_settings();
  settings.hca = hca;
  return settings;
}

TEST(VerbsRail, EachPortIsARailAndTheyAreSortedByName) {
  FakeVerbsOptions options;
  options.names = {"mlx5_1", "bnxt_re0", "mlx5_0"};
  FakeVerbs nics(options);
  const Opened opened = open(nics);
  EXPECT_THAT(opened.names, ElementsAre("bnxt_re0", "mlx5_0", "mlx5_1"));
  EXPECT_THAT(opened.notes, IsEmpty());
  EXPECT_EQ(nics.objects(), 0u) << "something is left of the rails";
}

TEST(VerbsRail, PortsOfOneDeviceHaveTheirNumbers) {
  FakeVerbsOptions options;
  options.devices = 1;
  options.ports = 2;
  FakeVerbs nics(options);
  EXPECT_THAT(open(nics).names, ElementsAre("fake0:1", "fake0:2"));
  const Opened second = open(nics, settings_for("=fake0:2"));
  EXPECT_THAT(second.names, ElementsAre("fake0:2"));
  EXPECT_THAT(second.notes, ElementsAre("fake0:1: excluded by " + variable_of("NCCL_SLIME_HCA")));
}

TEST(VerbsRail, WhatTheFilterExcludesIsNoted) {
  FakeVerbs nics;
  const Opened opened = open(nics, settings_for("^fake1"));
  EXPECT_THAT(opened.names, ElementsAre("fake0"));
  EXPECT_THAT(opened.notes, ElementsAre("fake1:1: excluded by " + variable_of("NCCL_SLIME_HCA")));
}

TEST(VerbsRail, WithoutADeviceThereIsANoteAndNoError) {
  FakeVerbsOptions options;
  options.devices = 0;
  FakeVerbs nics(options);
  const Opened opened = open(nics);
  EXPECT_THAT(opened.names, IsEmpty());
  EXPECT_THAT(opened.notes, ElementsAre(HasSubstr("verbs: no RDMA device")));
  EXPECT_EQ(opened.error, "");
}

TEST(VerbsRail, ADeviceThatDoesNotOpenIsNotedByName) {
  FakeVerbs nics;
  nics.fail_opening(EACCES);
  const Opened opened = open(nics);
  EXPECT_THAT(opened.names, IsEmpty());
  EXPECT_THAT(opened.notes, ElementsAre(HasSubstr("device fake0: ibv_open_device failed"),
                                        HasSubstr("device fake1: ibv_open_device failed")));
  EXPECT_THAT(opened.notes[0], HasSubstr("errno 13"));
}

TEST(VerbsRail, APortThatIsDownIsNotedAndTheOthersAreUsed) {
  FakeVerbs nics;
  nics.set_link(0, false);
  const Opened opened = open(nics);
  EXPECT_THAT(opened.names, ElementsAre("fake1"));
  EXPECT_THAT(opened.notes, ElementsAre(HasSubstr("fake0:1 is not active")));
  EXPECT_EQ(nics.objects(), 0u);
}

TEST(VerbsRail, WithoutLockedMemoryADeviceIsNotUsedAndThereIsAWarning) {
  const test::KeptWarnings warnings("is not used");
  FakeVerbs nics;
  nics.fail_registrations(ENOMEM);
  EXPECT_THAT(open(nics).names, IsEmpty());
  EXPECT_THAT(warnings.lines(), ElementsAre(HasSubstr("device fake0 is not used: ibv_reg_mr of 8 "),
                                            HasSubstr("device fake1 is not used")));
  EXPECT_EQ(nics.objects(), 0u);
}

TEST(VerbsRail, AMalformedRangeIsAnError) {
  FakeVerbs nics;
  Settings settings = verbs_settings();
  settings.addr_range = "10.0.0.0";
  const Opened opened = open(nics, settings);
  EXPECT_THAT(opened.error, HasSubstr(variable_of("NCCL_SLIME_ADDR_RANGE")));
  EXPECT_EQ(nics.objects(), 0u);
}

TEST(VerbsRail, AGidIndexThatIsReplacedIsAWarningOfEachPort) {
  const test::KeptWarnings warnings("GID index");
  FakeVerbs nics;
  Settings settings = verbs_settings();
  settings.gid_index = 7;
  const Opened opened = open(nics, settings);
  EXPECT_THAT(opened.names, ElementsAre("fake0", "fake1"));
  EXPECT_THAT(opened.notes, IsEmpty());
  EXPECT_THAT(warnings.lines(),
              ElementsAre(HasSubstr("fake0:1: GID index 7"), HasSubstr("fake1:1: GID index 7")));
}

TEST(VerbsRail, ARangeThatNoGidMeetsIsAWarningOfThePortsThatAreUsed) {
  const test::KeptWarnings warnings("NCCL_SLIME_ADDR_RANGE");
  FakeVerbs nics;
  Settings settings = settings_for("=fake1");
  settings.addr_range = "192.168.0.0/16";
  const Opened opened = open(nics, settings);
  EXPECT_THAT(opened.names, ElementsAre("fake1"));
  EXPECT_THAT(opened.notes, ElementsAre(HasSubstr("fake0:1: excluded")));
  EXPECT_THAT(warnings.lines(), ElementsAre(HasSubstr("fake1:1: no GID is in the range")));
}

// A channel that is opened reads the port again after an event.
TEST(VerbsRail, AWarningIsRepeatedOnlyWhenItHasChanged) {
  const test::KeptWarnings warnings("fake0:1: GID index");
  Settings settings = verbs_settings();
  settings.gid_index = 1;
  TestNics world(settings);
  EXPECT_THAT(warnings.lines(), IsEmpty());
  world.nics.set_gid(0, 1, "::");
  for (int i = 0; i < 2; ++i) {
    world.nics.raise(0, IBV_EVENT_GID_CHANGE);
    ASSERT_TRUE(world.left->open_channel({}));
    EXPECT_THAT(warnings.lines(), ElementsAre(HasSubstr("GID index 1 (")));
  }
}

TEST(VerbsRail, RetriesThatOutlastThePeerTimeoutAreAWarningWhereThereIsARail) {
  const test::KeptWarnings warnings("NCCL_SLIME_PEER_TIMEOUT");
  FakeVerbs nics;
  for (const char* const hca : {"=fake0", "=nosuch0"}) {
    Settings settings = settings_for(hca);
    settings.ib_timeout = 22;
    settings.ib_retry_count = 7;
    const Opened opened = open(nics, settings);
    EXPECT_THAT(opened.notes, testing::Each(HasSubstr(": excluded by ")));
    EXPECT_THAT(warnings.lines(),
                ElementsAre(HasSubstr("=22 with 7 retries lets a NIC wait for a dead peer for")));
  }
}

TEST(VerbsRail, WithoutAnInterfaceForTheHandshakeThereIsANote) {
  FakeVerbs nics;
  Settings settings = verbs_settings();
  settings.ifname = "=nosuch0";
  const Opened opened = open(nics, settings);
  EXPECT_THAT(opened.names, IsEmpty());
  EXPECT_THAT(opened.notes,
              ElementsAre(HasSubstr("fake0: no interface"), HasSubstr("fake1: no interface")));
}

TEST(VerbsRail, TheHandshakeGoesToThePortsOwnInterface) {
  FakeVerbs nics;
  const auto rails = open_verbs_rails(nics.symbols(), nics.sysfs_root(), verbs_settings(), nullptr);
  ASSERT_TRUE(rails);
  ASSERT_EQ(rails->size(), 2u);
  EXPECT_EQ((*rails)[0]->caps().oob_address, "127.0.0.1") << "that of lo";
  EXPECT_EQ((*rails)[0]->caps().transport, "verbs");
}

TEST(VerbsRail, NotesNeedNotBeRead) {
  FakeVerbs nics;
  const auto rails =
      open_verbs_rails(nics.symbols(), nics.sysfs_root(), settings_for("^fake1"), nullptr);
  ASSERT_TRUE(rails);
  EXPECT_EQ(rails->size(), 1u);
}

}  // namespace
}  // namespace slime::verbs
