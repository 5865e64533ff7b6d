// Silent writes and reads of one end of a link, with the memory at both ends, and what became of
// them: each is done or refused once, its bytes are right by then, and nothing is written later.
// Thread: that of the link.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "link/link.h"
#include "link/transfer_queue.h"

namespace slime::test {

class QuietTransfers {
 public:
  static constexpr uint32_t kSlots = 6;  // at once
  static constexpr uint64_t kMostBytes = 9000;

  // Of `own`, to and from `peer`.
  QuietTransfers(Device& own, Device& peer) : here_(own), there_(peer) {}

  // A new link, with all slots idle. The old one is gone.
  void serve(Link& link) {
    link_ = &link;
    slots_ = std::make_unique<std::array<Slot, kSlots>>();
    reads_ = std::make_unique<TransferQueue>(link.rails(), link.scheduler());
    writes_ = std::make_unique<TransferQueue>(link.rails(), link.scheduler());
    here_.clear();
    there_.clear();
  }
  void end() {
    slots_ = nullptr;
    reads_ = nullptr;
    writes_ = nullptr;
  }

  bool idle(uint32_t slot) const { return !(*slots_)[slot].busy; }
  bool all_idle() const {
    return std::ranges::none_of(*slots_, [](const Slot& slot) { return slot.busy; });
  }
  // `is_bad`: with a key that the peer never gave out.
  void begin(uint32_t slot, Opcode opcode, uint64_t bytes, uint64_t pattern, bool is_bad) {
    Slot& of = (*slots_)[slot];
    of.opcode = opcode;
    of.bytes = bytes;
    of.pattern = pattern;
    of.is_bad = is_bad;
    of.busy = true;
    for (size_t i = 0; i < link_->rails().count(); ++i) {
      of.keys[i] = there_.region->keys[link_->rails()[i].device_rail_index].remote;
      if (is_bad) of.keys[i] ^= 0x5a5a5a5a;
    }
    const bool reads = opcode == Opcode::kRead;
    std::byte* const source = (reads ? there_ : here_).at(slot);
    for (size_t i = 0; i < bytes; ++i) source[i] = byte_of(pattern, i);
    std::fill_n((reads ? here_ : there_).at(slot), kPlace, kPoison);
    TransferQueue& queue = reads ? *reads_ : *writes_;
    queue.start(of.transfer,
                {.local = here_.at(slot),
                 .region = here_.region,
                 .bytes = bytes,
                 .remote_address = reinterpret_cast<uint64_t>(there_.at(slot)),
                 .remote_offset = there_.region->offset_of(there_.at(slot)),
                 .remote_keys = of.keys.data(),
                 .opcode = opcode,
                 .may_be_refused = true},
                queue.plan(bytes));
  }

  // In each turn of the link. Returns what is wrong, or nothing.
  std::string progress() {
    reads_->submit_waiting();
    writes_->submit_waiting();
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      Slot& of = (*slots_)[slot];
      if (!of.busy || !of.transfer.done()) continue;
      of.busy = false;
      (of.transfer.refused() ? refused_ : moved_) += 1;
      if (const std::string wrong = wrong_with(slot); !wrong.empty()) return wrong;
      here_.clear(slot);
      there_.clear(slot);
    }
    return "";
  }
  bool written_late() const { return here_.is_written() || there_.is_written(); }
  uint64_t moved() const { return moved_; }
  uint64_t refused() const { return refused_; }

 private:
  static constexpr uint64_t kGap = 64, kPlace = kMostBytes + kGap;
  static constexpr std::byte kNobodys{0x55}, kPoison{0xee};
  struct OneTransfer final : Transfer {
    OneTransfer() = default;
  };
  struct Slot {
    OneTransfer transfer;
    std::array<uint64_t, kMaxRails> keys = {};
    Opcode opcode = Opcode::kRead;
    uint64_t bytes = 0, pattern = 0;
    bool is_bad = false, busy = false;
  };
  struct Arena {
    explicit Arena(Device& device) : bytes(kSlots * kPlace) {
      MemoryRange range{bytes.data(), bytes.size()};
      range.rights = kRemoteRead | kRemoteWrite;
      region = *device.memory().acquire(range);
    }
    std::byte* at(uint32_t slot) { return &bytes[slot * kPlace]; }
    void clear(uint32_t slot) { std::fill_n(at(slot), kPlace, kNobodys); }
    void clear() { std::ranges::fill(bytes, kNobodys); }
    bool is_written() const {
      return std::ranges::any_of(bytes, [](std::byte byte) { return byte != kNobodys; });
    }
    std::vector<std::byte> bytes;
    const MemoryRegion* region = nullptr;
  };

  static std::byte byte_of(uint64_t pattern, size_t i) {
    return static_cast<std::byte>((pattern + i * 0x9e3779b97f4a7c15) >> 32 & 0xff);
  }
  // A work without bytes names no key, and what a refused read leaves is undefined.
  std::string wrong_with(uint32_t slot) {
    Slot& of = (*slots_)[slot];
    const bool reads = of.opcode == Opcode::kRead, is_bad = of.is_bad && of.bytes > 0;
    if (of.transfer.refused() != is_bad) return is_bad ? "not refused" : "refused";
    const std::byte* const target = (reads ? here_ : there_).at(slot);
    for (size_t i = 0; i < kPlace; ++i) {
      const bool inside = i < of.bytes;
      if (inside && is_bad && reads) continue;
      const std::byte right = inside && !is_bad ? byte_of(of.pattern, i) : kPoison;
      if (target[i] != right) return inside ? "a quiet byte is wrong" : "a quiet byte too many";
    }
    return "";
  }

  Link* link_ = nullptr;
  Arena here_, there_;
  std::unique_ptr<std::array<Slot, kSlots>> slots_;
  std::unique_ptr<TransferQueue> reads_, writes_;
  uint64_t moved_ = 0, refused_ = 0;
};

}  // namespace slime::test
