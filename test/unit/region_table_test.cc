// The table of registered memory, also under threads (run it with ThreadSanitizer).
#include <algorithm>
#include <atomic>
#include <set>

#include "test/unit/tcp/support.h"
#include "transports/region_table.h"

namespace slime::tcp {
namespace {

using Access = RegionTable::Access;

Access access_to(const RegionTable& table, uint64_t key, const void* address, uint64_t bytes) {
  return RegionTable::Pin(table, key, reinterpret_cast<uint64_t>(address), bytes).access();
}

TEST(RegionTable, GrantsExactlyTheRange) {
  RegionTable table;
  char memory[100];
  const uint64_t key = *table.add({memory + 10, 50});
  EXPECT_EQ(access_to(table, key, memory + 10, 50), Access::kGranted);
  EXPECT_EQ(access_to(table, key, memory + 59, 1), Access::kGranted);
  EXPECT_EQ(access_to(table, key, memory + 9, 1), Access::kOutOfBounds);
  EXPECT_EQ(access_to(table, key, memory + 10, 51), Access::kOutOfBounds);
  EXPECT_EQ(access_to(table, key, memory + 60, 1), Access::kOutOfBounds);
  EXPECT_EQ(access_to(table, key, memory + 20, UINT64_MAX), Access::kOutOfBounds);
  EXPECT_EQ(access_to(table, key, nullptr, 1), Access::kOutOfBounds);
}

TEST(RegionTable, AKeyDiesWithItsRegistration) {
  RegionTable table;
  char memory[8];
  std::set<uint64_t> keys;
  for (int i = 0; i < 100; ++i) {
    const uint64_t key = *table.add({memory, sizeof(memory)});
    EXPECT_TRUE(keys.insert(key).second) << "the slot is the same, the key must not be";
    EXPECT_EQ(table.size(), 1u);
    EXPECT_TRUE(table.remove(key));
    EXPECT_FALSE(table.remove(key));
    for (const uint64_t old : keys) {
      ASSERT_EQ(access_to(table, old, memory, 1), Access::kUnknownKey);
    }
  }
  EXPECT_EQ(table.size(), 0u);
}

TEST(RegionTable, TheSameRangeAnyNumberOfTimes) {
  RegionTable table;
  char memory[8];
  const uint64_t first = *table.add({memory, 8}), second = *table.add({memory, 8});
  EXPECT_NE(first, second);
  EXPECT_TRUE(table.remove(first));
  EXPECT_EQ(access_to(table, second, memory, 8), Access::kGranted);
}

TEST(RegionTable, RefusesWhatIsNoRange) {
  RegionTable table;
  char memory[8];
  EXPECT_EQ(table.add({nullptr, 8}).error().status, Status::kInvalid);
  EXPECT_EQ(table.add({memory, 0}).error().status, Status::kInvalid);
  EXPECT_EQ(table.add({memory, SIZE_MAX}).error().status, Status::kInvalid);
  EXPECT_FALSE(table.remove(0));
  EXPECT_FALSE(table.remove(UINT64_MAX));
}

TEST(RegionTable, GrowsWithoutMovingAndFillsHolesAgain) {
  RegionTable table;
  std::vector<char> memory(3 * RegionTable::kChunkEntries);
  std::vector<uint64_t> keys;
  for (char& byte : memory) keys.push_back(*table.add({&byte, 1}));
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(access_to(table, keys[i], &memory[i], 1), Access::kGranted);
  }
  uint32_t highest = 0;
  for (const uint64_t key : keys) highest = std::max(highest, static_cast<uint32_t>(key));
  for (const uint64_t key : keys) ASSERT_TRUE(table.remove(key));
  for (char& byte : memory) {
    const uint64_t key = *table.add({&byte, 1});
    ASSERT_LE(static_cast<uint32_t>(key), highest);
  }
}

TEST(RegionTable, RemoveWaitsForThePinsAndLetsNoneIn) {
  RegionTable table;
  char memory[8];
  const uint64_t key = *table.add({memory, sizeof(memory)});
  std::atomic<bool> removed{false};
  std::thread remover;
  {
    const RegionTable::Pin pin(table, key, reinterpret_cast<uint64_t>(memory), 8);
    ASSERT_EQ(pin.access(), Access::kGranted);
    remover = std::thread([&] { removed = table.remove(key); });
    EXPECT_TRUE(eventually([&] { return access_to(table, key, memory, 8) != Access::kGranted; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(removed);
  }
  remover.join();
  EXPECT_TRUE(removed);
}

// Writers write only under a pin; whoever deregisters may use the memory alone afterwards, which
// ThreadSanitizer and the check of the contents both see.
TEST(RegionTable, NobodyWritesAfterRemove) {
  RegionTable table;
  std::vector<uint64_t> memory(16, 0);
  std::atomic<uint64_t> key{0};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> writes{0};
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&, i] {
      while (!stop.load(std::memory_order_relaxed)) {
        std::this_thread::yield();
        const RegionTable::Pin pin(table, key.load(std::memory_order_relaxed),
                                   reinterpret_cast<uint64_t>(&memory[i]), sizeof(uint64_t));
        if (pin.access() != Access::kGranted) continue;
        memory[i] = 1;  // each writer has a word of its own
        writes.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (int round = 0; round < 50; ++round) {
    const uint64_t before = writes.load(std::memory_order_relaxed);
    const uint64_t fresh = *table.add({memory.data(), memory.size() * sizeof(uint64_t)});
    key.store(fresh, std::memory_order_relaxed);
    EXPECT_TRUE(eventually([&] { return writes.load(std::memory_order_relaxed) > before; }));
    ASSERT_TRUE(table.remove(fresh));
    std::ranges::fill(memory, 0);
    std::this_thread::yield();
    ASSERT_TRUE(std::ranges::all_of(memory, [](uint64_t word) { return word == 0; }));
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

TEST(RegionTable, AddAndRemoveFromManyThreads) {
  RegionTable table;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      char memory[64];
      for (int round = 0; round < 500; ++round) {
        const uint64_t first = *table.add({memory, 64}), second = *table.add({memory + 8, 8});
        wrong += access_to(table, first, memory, 64) != Access::kGranted;
        wrong += access_to(table, second, memory, 8) != Access::kOutOfBounds;
        wrong += !table.remove(first);
        wrong += access_to(table, first, memory, 64) != Access::kUnknownKey;
        wrong += !table.remove(second);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace slime::tcp
