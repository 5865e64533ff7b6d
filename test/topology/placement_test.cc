// Where the thread of our own runs.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/housekeeper.h"
#include "base/interfaces/interfaces.h"
#include "base/machine/sysfs.h"
#include "test/topology/made_up_host.h"

namespace slime {
namespace {

// Where the housekeeper's thread may run.
class Look final : public BackgroundTask {
 public:
  explicit Look(Housekeeper& keeper) : keeper_(keeper) { keeper_.schedule(this, 0); }
  ~Look() override { keeper_.cancel(this); }
  CpuSet result() { return seen_.get_future().get(); }

 private:
  uint64_t run_due(uint64_t /*now_ns*/) override {
    seen_.set_value(CpuSet::of_this_thread());
    return UINT64_MAX;
  }
  Housekeeper& keeper_;
  std::promise<CpuSet> seen_;
};

CpuSet of_keeper(const CpuSet& near) {
  const auto keeper = Housekeeper::get("is tested", near);
  EXPECT_TRUE(keeper);
  return Look(**keeper).result();
}

CpuSet one(size_t cpu) { return CpuSet::parse(std::to_string(cpu)).value(); }

class Placement : public testing::Test {
 protected:
  const CpuSet allowed_ = CpuSet::of_this_thread();
  const CpuSet first_ = one(allowed_.first().value());
  const CpuSet elsewhere_ = CpuSet::parse("8191").value();
};

TEST_F(Placement, NearTheNicsAsFarAsTheMakerMay) {
  EXPECT_EQ(of_keeper(first_), first_);
  EXPECT_EQ(of_keeper(first_ | elsewhere_), first_);
  EXPECT_EQ(of_keeper(allowed_), allowed_);
}

TEST_F(Placement, WhereTheMakerRunsIfNothingElseIsKnownOrAllowed) {
  EXPECT_EQ(of_keeper(CpuSet()), allowed_);
  EXPECT_EQ(of_keeper(elsewhere_), allowed_);
}

TEST_F(Placement, NearAllNicsThatItWorksFor) {
  if (allowed_.count() < 2) GTEST_SKIP() << "this process may use one CPU only";
  size_t cpu = allowed_.first().value() + 1;
  while (!allowed_.contains(cpu)) ++cpu;
  const auto keeper = Housekeeper::get("is tested", first_);
  EXPECT_EQ(of_keeper(CpuSet()), first_) << "still";
  EXPECT_EQ(of_keeper(one(cpu)), first_ | one(cpu));
}

TEST_F(Placement, NeverWiderThanItsMakerAndOnlyItself) {
  std::thread([this] {
    ASSERT_TRUE(first_.apply_to(pthread_self()));
    EXPECT_EQ(of_keeper(allowed_), first_);
    EXPECT_EQ(of_keeper(elsewhere_), first_);
    EXPECT_EQ(CpuSet::of_this_thread(), first_);
  }).join();
  EXPECT_EQ(of_keeper(first_), first_);
  EXPECT_EQ(CpuSet::of_this_thread(), allowed_);
}

TEST(LocalCpus, OfTheNicThatHasAnAddress) {
  test::MadeUpHost host;
  const std::string nic = host.add_nic("pci0000:00/0000:00:03.0", 1);
  host.write("devices/pci0000:00/0000:00:03.0/local_cpulist", "8-15");
  host.write("class/net/eth0/mtu", "1500");
  std::filesystem::create_directory_symlink(nic, host.root() / "class/net/eth0/device");
  const auto at = [](const char* text) { return SocketAddress::parse(text).value(); };
  const std::vector<InterfaceRecord> records = {
      {"lo", 0, at("127.0.0.1")}, {"eth0", 0, std::nullopt}, {"eth0:1", 0, at("10.0.0.9")}};
  const auto near = [&](const char* text) {
    return cpus_near(at(text), records, host.root()).to_string();
  };
  EXPECT_EQ(near("10.0.0.9:28880"), "8-15");
  EXPECT_EQ(near("127.0.0.1"), "");
  EXPECT_EQ(near("10.0.0.8"), "");
  EXPECT_EQ(near("0.0.0.0"), "");
}

TEST(LocalCpus, AreWhatTheKernelSaysOfTheFunction) {
  test::MadeUpHost host;
  const std::string nic = host.add_nic("pci0000:00/0000:00:03.0", 1);
  EXPECT_TRUE(read_local_cpus(nic).empty());
  host.write("devices/pci0000:00/0000:00:03.0/local_cpulist", "56-111,168-223");
  EXPECT_EQ(read_local_cpus(nic).to_string(), "56-111,168-223");
  host.write("devices/pci0000:00/0000:00:03.0/local_cpulist", "56-");
  EXPECT_TRUE(read_local_cpus(nic).empty());
  EXPECT_TRUE(read_local_cpus("").empty());
}

}  // namespace
}  // namespace slime
