#include "transports/region_table.h"

#include <cinttypes>
#include <new>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace slime {

namespace {

Result<uint32_t> new_generation() {
  for (;;) {
    auto generation = random_number<uint32_t>();
    if (!generation || *generation != 0) return generation;  // 0 marks a free entry
  }
}

}  // namespace

RegionTable::~RegionTable() {
  for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
}

RegionTable::Entry* RegionTable::find(uint64_t key) const {
  const uint32_t index = static_cast<uint32_t>(key);
  if (index >= kChunkEntries * kMaxChunks) return nullptr;
  Chunk* chunk = chunks_[index / kChunkEntries].load(std::memory_order_acquire);
  return chunk ? &(*chunk)[index % kChunkEntries] : nullptr;
}

Result<uint32_t> RegionTable::free_index() {
  SLIME_CHECK(mutex_.held());
  if (!free_.empty()) {
    const uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  if (entries_used_ == kChunkEntries * kMaxChunks) {
    return fail(make_error(Status::kNoMemory, 0,
                           "%u memory ranges are registered on one rail, which is the most it "
                           "can hold; deregister ranges that are not used any more",
                           entries_used_));
  }
  auto& chunk = chunks_[entries_used_ / kChunkEntries];
  if (!chunk.load(std::memory_order_relaxed)) {
    Chunk* fresh = new (std::nothrow) Chunk;
    if (!fresh) {
      return fail(make_error(Status::kNoMemory, 0,
                             "no memory for another %zu bytes of the table "
                             "of registered memory",
                             sizeof(Chunk)));
    }
    chunk.store(fresh, std::memory_order_release);
  }
  return entries_used_++;
}

Result<void> RegionTable::check(const MemoryRange& range) {
  const auto start = reinterpret_cast<uint64_t>(range.address);
  if (start != 0 && range.bytes != 0 && start + range.bytes >= start) return {};
  return fail(make_error(Status::kInvalid, 0, "cannot register %zu bytes at %p: not a range",
                         range.bytes, range.address));
}

Result<uint64_t> RegionTable::add(const MemoryRange& range, uint64_t handle) {
  if (auto checked = check(range); !checked) return fail(std::move(checked.error()));
  auto generation = new_generation();
  if (!generation) return fail(std::move(generation.error()));
  const std::lock_guard lock(mutex_);
  auto index = free_index();
  if (!index) return fail(std::move(index.error()));
  const uint64_t key = uint64_t{*generation} << 32 | *index;
  Entry* entry = find(key);
  SLIME_CHECK(entry->state.load(std::memory_order_relaxed) == 0);
  entry->address = reinterpret_cast<uint64_t>(range.address);
  entry->bytes = range.bytes;
  entry->handle = handle;
  entry->kind = range.kind;
  entry->rights = range.rights;
  entry->state.store(uint64_t{*generation} << 32, std::memory_order_release);
  ++size_;
  return key;
}

bool RegionTable::remove(uint64_t key) {
  Entry* entry = find(key);
  if (!entry) return false;
  uint64_t state = entry->state.load(std::memory_order_relaxed);
  do {
    if (state >> 32 != key >> 32 || key >> 32 == 0 || state & kDead) return false;
  } while (!entry->state.compare_exchange_weak(state, state | kDead, std::memory_order_relaxed));
  while (entry->state.load(std::memory_order_acquire) & kPins) std::this_thread::yield();
  entry->state.store(0, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  free_.push_back(static_cast<uint32_t>(key));
  --size_;
  return true;
}

size_t RegionTable::size() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

RegionTable::Pin::Pin(const RegionTable& table, uint64_t key, uint64_t address, uint64_t length,
                      uint8_t right) {
  Entry* entry = table.find(key);
  if (!entry || key >> 32 == 0) return;
  uint64_t state = entry->state.load(std::memory_order_relaxed);
  do {
    if (state >> 32 != key >> 32 || state & kDead) return;
  } while (!entry->state.compare_exchange_weak(state, state + 1, std::memory_order_acquire,
                                               std::memory_order_relaxed));
  state_ = &entry->state;
  const uint64_t offset = address - entry->address;  // wraps to something large if it lies before
  const bool inside = offset <= entry->bytes && length <= entry->bytes - offset;
  const bool permitted = (entry->rights & right) == right;
  access_ = inside ? Access::kGranted : Access::kOutOfBounds;
  if (!permitted) access_ = Access::kNoRight;
  start_ = entry->address;
  handle_ = entry->handle;
  kind_ = entry->kind;
}

RegionTable::Pin::~Pin() {
  if (!state_) return;
  [[maybe_unused]] const uint64_t pinned = state_->fetch_sub(1, std::memory_order_release);
  SLIME_CHECK((pinned & kPins) > 0);
}

}  // namespace slime
