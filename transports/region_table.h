// The registered memory of one rail, as its backend's data path looks it up. Registering takes a
// mutex; the data path does not.
//
// A key is an entry's index and 32 random bits, so that neither an old key nor a guessed one opens
// an entry that was filled again. A channel pins a region while the kernel copies into
// it or out of it, and deregistering waits for the pins. A pin lasts for one system call, which
// does not block.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "transports/rail.h"

namespace slime {

class RegionTable {
 public:
  static constexpr size_t kChunkEntries = 256;
  static constexpr size_t kMaxChunks = 4096;  // a million registrations

  RegionTable() = default;
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;
  ~RegionTable();

  // An error where it is empty or wraps.
  static Result<void> check(const MemoryRange& range);
  // `handle`: the name that the rail's hardware has for it.
  Result<uint64_t> add(const MemoryRange& range, uint64_t handle = 0);
  // For a handle that exists only after the key. Nothing else uses the key yet.
  void set_handle(uint64_t key, uint64_t handle) { find(key)->handle = handle; }
  bool remove(uint64_t key);  // false: no such registration (any more)
  size_t size() const;

  enum class Access : uint8_t {
    kGranted,
    kUnknownKey,
    kOutOfBounds,
    kNoRight,  // registered, but not for that
  };

  // Holds [address, address + length) of one region in place while it lives.
  class Pin {
   public:
    // `right`: kRemoteWrite or kRemoteRead for a peer; 0: for this end.
    Pin(const RegionTable& table, uint64_t key, uint64_t address, uint64_t length,
        uint8_t right = 0);
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    ~Pin();
    Access access() const { return access_; }
    // Of the region, unless the key is unknown.
    uint64_t start() const { return start_; }
    uint64_t handle() const { return handle_; }
    MemoryKind kind() const { return kind_; }

   private:
    std::atomic<uint64_t>* state_ = nullptr;
    Access access_ = Access::kUnknownKey;
    uint64_t start_ = 0, handle_ = 0;
    MemoryKind kind_ = MemoryKind::kHost;
  };

 private:
  // state: generation (32 bits, 0: the entry is free) | dead (1) | pins (31)
  static constexpr uint64_t kDead = uint64_t{1} << 31;
  static constexpr uint64_t kPins = kDead - 1;

  struct alignas(64) Entry {  // a line of its own: pins of two regions do not disturb each other
    std::atomic<uint64_t> state{0};
    uint64_t address = 0;  // these two change only while the entry is free and nobody has pinned it
    uint64_t bytes = 0;
    uint64_t handle = 0;
    MemoryKind kind = MemoryKind::kHost;
    uint8_t rights = 0;
  };
  using Chunk = std::array<Entry, kChunkEntries>;

  Entry* find(uint64_t key) const;
  Result<uint32_t> free_index();

  std::array<std::atomic<Chunk*>, kMaxChunks> chunks_{};  // chunks never move
  mutable Mutex mutex_;  // guards what follows, and the filling of chunks_
  std::vector<uint32_t> free_;
  uint32_t entries_used_ = 0;  // entries that were in use at least once
  size_t size_ = 0;
};

}  // namespace slime
