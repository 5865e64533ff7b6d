// An end of a link whose user moves transfers and nothing else, both ways at once: what a link owes
// to any user. It counts the stripes that arrive, and says in its fence record which ones had.
//
// An immediate has the slot, the use of the slot, the stripes of the transfer less one, and the
// stripe. A slot may be used again when sent(), and the peer has the transfer. Thread: that of the
// link.
#pragma once

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "link/link.h"
#include "link/transfer_queue.h"

namespace slime::test {

class TransferEnd final : private LinkEnd {
 public:
  static constexpr uint32_t kSlots = 8;  // transfers under way at once
  // What had arrived when a rail was fenced. `use` counts the transfers of a slot.
  struct Record {
    uint32_t rail = 0, epoch = 0;
    std::array<uint32_t, kSlots> use = {};
    std::array<uint64_t, kSlots> arrived = {};
  };
  static constexpr LinkMemoryBytes memory_bytes(size_t rails) {
    return {2 * rails * sizeof(Record), 2 * rails * sizeof(Record)};
  }

  TransferEnd(Devices& devices, Device& device, LinkParts parts)
      : link_(devices, device, std::move(parts)), queue_(link_.rails(), link_.scheduler()) {
    link_.serve(*this);
  }
  Link& link() { return link_; }

  // The last transfer of the slot is sent.
  bool sent(uint32_t slot) const { return out_[slot].transfer.done(); }
  uint32_t uses_sent(uint32_t slot) const { return out_[slot].use; }
  void send(uint32_t slot, const std::byte* from, const MemoryRegion* region, uint64_t bytes,
            const MemoryRegion* to_region, std::byte* to) {
    Out& out = out_[slot];
    for (size_t i = 0; i < kMaxRails; ++i) {
      const bool is_rail = i < link_.rails().count();
      keys_[i] = is_rail ? to_region->keys[link_.rails()[i].device_rail_index].remote : 0;
    }
    const StripePlan plan = queue_.plan(bytes);
    const uint32_t immediate = slot << 26 | (out.use++ & kUseMask) << 12 | (plan.stripes - 1) << 6;
    queue_.start(out.transfer,
                 {from, region, bytes, reinterpret_cast<uint64_t>(to), to_region->offset_of(to),
                  keys_.data(), immediate, 1},
                 plan);
  }
  uint32_t uses_received(uint32_t slot) const { return in_[slot].use; }

  Status progress() {
    const Status status = link_.progress();
    if (status != Status::kOk) return status;
    queue_.submit_waiting();
    link_.post_more();
    return Status::kOk;
  }
  const std::string& violation() const { return violation_; }

 private:
  static constexpr uint32_t kUseMask = (1 << 14) - 1;
  static_assert(kSlots <= 1 << 4);
  struct OneTransfer final : Transfer {
    OneTransfer() = default;
  };
  struct Out {
    OneTransfer transfer;
    uint32_t use = 0;  // the next one
  };
  struct In {
    uint32_t use = 0;  // the one that arrives
    uint64_t arrived = 0;
  };

  static size_t place_of(const RailLife& life) {
    return (2 * life.rail + life.epoch % 2) * sizeof(Record);
  }
  Status on_arrived(size_t, uint32_t immediate, uint64_t) override {
    In& in = in_[immediate >> 26];
    const uint64_t bit = uint64_t{1} << (immediate & 63);
    const uint64_t all = ~uint64_t{0} >> (63 - (immediate >> 6 & 63));
    const bool is_use = (immediate >> 12 & kUseMask) == (in.use & kUseMask);
    if (!is_use || (in.arrived & bit) != 0) violation_ = "a stripe arrived twice";
    in.arrived |= bit;
    if (in.arrived != all) return Status::kOk;
    in.arrived = 0;
    ++in.use;
    return Status::kOk;
  }
  OutboxPiece fence_record(const RailLife& life) override {
    Record record{life.rail, life.epoch, {}, {}};
    for (uint32_t i = 0; i < kSlots; ++i) {
      record.use[i] = in_[i].use;
      record.arrived[i] = in_[i].arrived;
    }
    const OutboxPiece piece{place_of(life), sizeof record};
    std::memcpy(link_.memory().outbox() + piece.offset, &record, sizeof record);
    return piece;
  }
  Status on_both_fenced(const RailLife& life) override {
    Record record;
    std::memcpy(&record, link_.memory().inbox() + place_of(life), sizeof record);
    const bool fits = record.rail == life.rail && record.epoch == life.epoch;
    if (!fits) violation_ = "no record of what arrived on a dead rail";
    for (uint32_t i = 0; i < kSlots; ++i) {
      Out& out = out_[i];
      if (out.transfer.done()) continue;
      // out.use is already that of the next transfer, and the record may be of an earlier one.
      const bool all = record.use[i] == out.use, some = record.use[i] + 1 == out.use;
      out.transfer.note_arrived(all ? ~uint64_t{0} : some ? record.arrived[i] : 0);
    }
    link_.rails().hand_back_works(life.rail);
    return Status::kOk;
  }

  Link link_;
  TransferQueue queue_;
  std::array<Out, kSlots> out_ = {};
  std::array<In, kSlots> in_ = {};
  std::array<uint64_t, kMaxRails> keys_ = {};
  std::string violation_;
};

}  // namespace slime::test
