#include "devices/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "devices/devices.h"
#include "message/tag_counters.h"
#include "test/support/fake_rail.h"
#include "test/support/sim_hosts.h"
#include "test/support/temporary_directory.h"

namespace slime::test {
namespace {

class MemoryCacheTest : public ::testing::Test {
 protected:
  FakeRail first{fake_caps("a")}, second{fake_caps("b")};
  MemoryCache cache{{&first, &second}};
  std::array<std::byte, 4096> bytes;
};

TEST_F(MemoryCacheTest, ARangeIsRegisteredOnceOnEveryRail) {
  const auto region = cache.acquire({bytes.data(), bytes.size()});
  ASSERT_TRUE(region);
  EXPECT_EQ((*region)->keys.size(), 2u);
  const auto same = cache.acquire({bytes.data(), bytes.size()});
  ASSERT_TRUE(same);
  EXPECT_EQ(*same, *region);
  EXPECT_EQ(first.registered.size(), 1u);
  EXPECT_EQ(second.registered.size(), 1u);
}

// So nobody has the keys of another registration.
TEST_F(MemoryCacheTest, ARangeThatIsAloneSharesWithNobody) {
  MemoryRange range{bytes.data(), bytes.size()};
  const auto shared = *cache.acquire(range);
  range.alone = true;
  const auto one = *cache.acquire(range), other = *cache.acquire(range);
  EXPECT_NE(one, other);
  EXPECT_NE(one, shared);
  EXPECT_EQ(first.registered.size(), 3u);
  EXPECT_TRUE(cache.release(one));
  EXPECT_EQ(first.registered.size(), 2u);
  EXPECT_TRUE(cache.release(other));
  EXPECT_TRUE(cache.release(shared));
  EXPECT_TRUE(first.registered.empty());
}

TEST_F(MemoryCacheTest, ADmaBufReachesEveryRail) {
  ASSERT_TRUE(cache.acquire({bytes.data(), 512, MemoryKind::kCuda, 7, 4096}));
  for (const FakeRail* rail : {&first, &second}) {
    ASSERT_EQ(rail->registered.size(), 1u);
    const MemoryRange& range = rail->registered.begin()->second;
    EXPECT_EQ(range.address, bytes.data());
    EXPECT_EQ(range.bytes, 512u);
    EXPECT_EQ(range.kind, MemoryKind::kCuda);
    EXPECT_EQ(range.dma_buf, 7);
    EXPECT_EQ(range.dma_buf_offset, 4096u);
  }
}

TEST_F(MemoryCacheTest, TheLastUserDeregisters) {
  const auto region = *cache.acquire({bytes.data(), bytes.size()});
  (void)*cache.acquire({bytes.data(), bytes.size()});
  EXPECT_TRUE(cache.release(region));
  EXPECT_EQ(first.registered.size(), 1u);
  EXPECT_TRUE(cache.release(region));
  EXPECT_TRUE(first.registered.empty());
  EXPECT_FALSE(cache.release(region)) << "released once too often";
}

// Each release ends its own range, in whatever order.
TEST_F(MemoryCacheTest, FindsEachOfManyRanges) {
  constexpr size_t kRanges = 4000;
  std::vector<const MemoryRegion*> regions;
  for (size_t i = 0; i < kRanges; ++i) regions.push_back(*cache.acquire({&bytes[i], 1}));
  for (size_t i = 0; i < kRanges; ++i) EXPECT_EQ(*cache.acquire({&bytes[i], 1}), regions[i]);
  EXPECT_EQ(first.registered.size(), kRanges);
  for (size_t k = 0; k < kRanges; ++k) {
    const size_t i = k * 7 % kRanges;
    EXPECT_TRUE(cache.release(regions[i]) && cache.release(regions[i]));
    EXPECT_EQ(first.registered.size(), kRanges - 1 - k);
    EXPECT_FALSE(first.registered.contains(i + 1)) << "the keys of a FakeRail count up from 1";
  }
}

TEST_F(MemoryCacheTest, APartDoesNotKeepTheKeyOfTheWholeValid) {
  const auto whole = *cache.acquire({bytes.data(), bytes.size()});
  const auto part = *cache.acquire({&bytes[100], 50});
  EXPECT_NE(part, whole);
  EXPECT_TRUE(cache.release(whole));
  ASSERT_EQ(first.registered.size(), 1u);
  EXPECT_EQ(part->bytes, 50u);
  EXPECT_EQ(first.registered.begin()->first, part->keys[0].local);
}

TEST_F(MemoryCacheTest, AnOverlapIsAnEntryOfItsOwn) {
  const auto left = *cache.acquire({&bytes[0], 100});
  const auto right = *cache.acquire({&bytes[50], 100});
  EXPECT_NE(left, right);
  EXPECT_EQ(cache.size(), 2u);
}

TEST_F(MemoryCacheTest, HostAndDeviceMemoryAreNotMixedUp) {
  const auto host = *cache.acquire({bytes.data(), 100});
  const auto cuda = *cache.acquire({bytes.data(), 100, MemoryKind::kCuda});
  EXPECT_NE(host, cuda);
}

TEST_F(MemoryCacheTest, ARangeWithOtherRightsHasOtherKeys) {
  MemoryRange range{bytes.data(), bytes.size()};
  const MemoryRegion* const written = *cache.acquire(range);
  range.rights = kRemoteRead;
  const MemoryRegion* const read = *cache.acquire(range);
  EXPECT_NE(written->keys[0].remote, read->keys[0].remote);
  EXPECT_EQ(first.registered.at(written->keys[0].local).rights, kRemoteWrite);
  EXPECT_EQ(first.registered.at(read->keys[0].local).rights, kRemoteRead);
}

TEST_F(MemoryCacheTest, AFailureOnOneRailLeavesNothingBehind) {
  second.registrations_left = 0;
  const auto region = cache.acquire({bytes.data(), bytes.size()});
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().status, Status::kNoMemory);
  EXPECT_TRUE(first.registered.empty());
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(MemoryCacheTest, ContainsDoesNotOverflow) {
  const auto region = *cache.acquire({bytes.data(), bytes.size()});
  EXPECT_TRUE(region->contains(bytes.data(), bytes.size()));
  EXPECT_TRUE(region->contains(bytes.data() + bytes.size(), 0));
  EXPECT_FALSE(region->contains(bytes.data() + 1, bytes.size()));
  EXPECT_FALSE(region->contains(bytes.data() - 1, 1));
  EXPECT_FALSE(region->contains(bytes.data() + 1, SIZE_MAX));
}

TEST_F(MemoryCacheTest, ThreadsShareIt) {
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 500; ++i) {
        const auto region = cache.acquire({&bytes[t * 64], 64 + i % 3});
        ASSERT_TRUE(region);
        EXPECT_TRUE(cache.release(*region));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_TRUE(first.registered.empty());
}

TEST(TagCounters, TagsThatThePeerNamesCostNoMemory) {
  TagCounters counters;
  for (int32_t tag = 0; tag < 10'000; ++tag) EXPECT_EQ(counters.peek(tag), 0u);
  EXPECT_EQ(counters.size(), 0u);
  ++counters.of(7);
  ++counters.of(8);
  EXPECT_EQ(counters.peek(7), 1u);
  EXPECT_EQ(counters.peek(8), 1u);
  EXPECT_EQ(counters.size(), 2u);
}

std::unique_ptr<Devices> devices_of(const std::vector<RailCaps>& caps, int rails_per_device = 0) {
  std::vector<std::unique_ptr<Rail>> rails;
  for (const RailCaps& each : caps) rails.push_back(std::make_unique<FakeRail>(each));
  Settings settings;
  settings.rails_per_device = rails_per_device;
  return Devices::of_rails(std::move(rails), settings, SteadyClock::instance());
}

RailCaps at(const char* name, uint64_t guid, const char* address) {
  RailCaps caps = fake_caps(name, guid);
  caps.oob_address = address;
  return caps;
}

TEST(Devices, RailsOfOneInterfaceAreOneDevice) {
  const auto devices = devices_of({at("eth0.0", 1, "10.0.0.1"), at("eth0.1", 1, "10.0.0.1"),
                                   at("eth1.0", 2, "10.0.1.1"), at("eth1.1", 2, "10.0.1.1")});
  ASSERT_EQ(devices->device_count(), 2u);
  const DeviceProperties& properties = devices->device(0)->properties();
  EXPECT_EQ(properties.name, "eth0");
  EXPECT_EQ(properties.speed_mbps, 20000u);
  EXPECT_EQ(devices->device(0)->rails().size(), 2u);
  EXPECT_EQ(devices->device(2), nullptr);
  EXPECT_EQ(devices->device(-1), nullptr);
}

TEST(Devices, PortsOfOneNicAreDevicesOfTheirOwn) {
  RailCaps first = at("mlx5_0:1", 1, "10.0.0.1"), second = at("mlx5_0:2", 1, "10.0.0.1");
  first.port = 1;
  second.port = 2;
  EXPECT_EQ(devices_of({first, second})->device_count(), 2u);
}

TEST(Devices, VirtualFunctionsWithoutAGuidAreDevicesOfTheirOwn) {
  RailCaps first = at("mlx5_0", 0, "10.0.0.1"), second = at("mlx5_1", 0, "10.0.0.1");
  first.pci_path = "/sys/devices/pci0000:00/0000:05:00.1";
  second.pci_path = "/sys/devices/pci0000:00/0000:05:00.2";
  EXPECT_EQ(devices_of({first, second})->device_count(), 2u);
}

TEST(Devices, ADeviceIsNearTheCpusOfAllItsRails) {
  const TemporaryDirectory sysfs;
  RailCaps caps[] = {at("eth0", 1, "10.0.0.1"), at("eth1", 2, "10.0.1.1"),
                     at("veth", 3, "10.0.2.1")};
  for (const auto& [index, cpus] : {std::pair(0, "0-3\n"), std::pair(1, "8-11\n")}) {
    const auto function = sysfs.path() / ("0000:0" + std::to_string(index) + ":00.0");
    std::filesystem::create_directory(function);
    std::ofstream(function / "local_cpulist") << cpus;
    caps[index].pci_path = function;
  }
  const auto devices = devices_of({caps[0], caps[1], caps[2]});
  EXPECT_EQ(devices->device(0)->properties().near.to_string(), "0-3");
  EXPECT_EQ(devices->device(2)->properties().near.to_string(), "") << "virtual";
  EXPECT_EQ(devices->device(*devices->merge(std::array{0, 1}))->properties().near.to_string(),
            "0-3,8-11");
}

TEST(Devices, ADeviceTakesTheGpusDmaBufsIfAllOfItsRailsDo) {
  RailCaps first = at("a", 1, "10.0.0.1"), second = at("b", 2, "10.0.1.1");
  EXPECT_FALSE(devices_of({first})->device(0)->properties().takes_device_memory());
  first.dma_buf = true;
  const DeviceProperties properties = devices_of({first})->device(0)->properties();
  EXPECT_TRUE(properties.dma_buf);
  EXPECT_TRUE(properties.takes_device_memory());
  EXPECT_FALSE(properties.takes(MemoryKind::kCuda)) << "by its address";
  EXPECT_FALSE(devices_of({first, second}, 2)->device(0)->properties().takes_device_memory());
}

TEST(Devices, ADeviceTakesItsInterfacesByTurns) {
  const auto devices = devices_of({at("eth0.0", 1, "10.0.0.1"), at("eth0.1", 1, "10.0.0.1"),
                                   at("eth1.0", 2, "10.0.1.1"), at("eth1.1", 2, "10.0.1.1")},
                                  2);
  std::vector<std::string> names;
  for (const Rail* rail : devices->device(0)->rails()) names.push_back(rail->caps().name);
  EXPECT_EQ(names, (std::vector<std::string>{"eth0.0", "eth1.0", "eth0.1", "eth1.1"}));
  EXPECT_EQ(devices->device(0)->properties().name, "eth0+eth1");
}

TEST(Devices, RailsPerDeviceJoinsInterfaces) {
  const auto devices = devices_of({at("eth0", 1, "10.0.0.1"), at("eth1", 2, "10.0.1.1")}, 2);
  ASSERT_EQ(devices->device_count(), 1u);
  EXPECT_EQ(devices->device(0)->properties().name, "eth0+eth1");
  EXPECT_EQ(devices->device(0)->properties().speed_mbps, 20000u);
}

TEST(Devices, MergeMakesADeviceAndKnowsItAgain) {
  const auto devices = devices_of({at("eth0", 1, "10.0.0.1"), at("eth1", 2, "10.0.1.1")});
  const std::array<int, 2> both{0, 1};
  const auto merged = devices->merge(both);
  ASSERT_TRUE(merged);
  EXPECT_EQ(*merged, 2);
  EXPECT_EQ(devices->device(2)->properties().members, (std::vector<int>{0, 1}));
  EXPECT_EQ(*devices->merge(both), 2);
}

TEST(Devices, MergeRefusesWhatItCannotDo) {
  const auto devices = devices_of({at("eth0", 1, "10.0.0.1"), at("eth1", 2, "10.0.1.1")});
  const std::array<int, 2> unknown{0, 2}, twice{1, 1};
  EXPECT_FALSE(devices->merge(unknown));
  EXPECT_FALSE(devices->merge(twice));
  EXPECT_FALSE(devices->merge({}));
  EXPECT_EQ(devices->device_count(), 2u);
}

// A comm has a place for 32 eager messages of the largest size, and hundreds of comms are usual.
TEST(RegisteredBufferTest, TakesMemoryOnlyAsItIsUsed) {
  constexpr size_t kBytes = 1 << 20, kPage = 4096;
  sim::Network network(1);
  SimHost host(network, 1, RailCaps(), Settings(), "a");
  const auto box = RegisteredBuffer::make(host.device(), kBytes);
  ASSERT_TRUE(box);
  std::array<unsigned char, kBytes / kPage> pages;
  ASSERT_EQ(mincore(box->data(), kBytes, pages.data()), 0);
  EXPECT_EQ(std::ranges::count_if(pages, [](unsigned char page) { return page & 1; }), 0);
  EXPECT_TRUE(std::all_of(box->data(), box->data() + kBytes,
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

}  // namespace
}  // namespace slime::test
