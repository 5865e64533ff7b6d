// Registered memory between guard bytes that nobody may touch.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "transports/rail.h"

namespace slime::contract {

class Region {
 public:
  static constexpr size_t kGuardBytes = 4096;

  // Registered without its guards; filled with kUntouched. `rights`: of peers.
  Region(Rail& rail, size_t bytes, uint8_t rights = kRemoteWrite);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::span<std::byte> bytes() { return std::span(storage_).subspan(kGuardBytes, size_); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(storage_.data() + kGuardBytes); }
  const MemoryKeys& keys() const { return keys_; }
  // The target of a work whose key is, or was, of this region; maybe outside of it.
  void aim(Work* work, uint64_t address) const {
    work->remote_address = address;
    work->remote_offset = address - this->address();
  }
  std::vector<std::byte> copy() const { return storage_; }  // guards too
  void deregister();                                        // before the end of its life
  bool guards_intact() const;
  bool untouched() const;  // all of it, guards too

  static constexpr std::byte kUntouched{0xc5};

 private:
  Rail& rail_;
  const size_t size_;
  std::vector<std::byte> storage_;
  MemoryKeys keys_;
  bool registered_ = false;
};

}  // namespace slime::contract
