#include "test/p4/traces.h"

#include <algorithm>
#include <tuple>

#include "switch/protocol/slot_machine.h"

namespace slime::p4 {
namespace {

constexpr uint32_t kChipLanes = 32;
constexpr sap::Format kFormats[] = {sap::Format::kI32, sap::Format::kU32, sap::Format::kI16,
                                    sap::Format::kI8,  sap::Format::kI64, sap::Format::kU8,
                                    sap::Format::kU64};

}  // namespace

Trace::Trace(uint64_t seed, Kind kind_of_switch) : kind_(kind_of_switch), random_(seed) {
  const bool chip = kind_ == Kind::kChip;
  const uint32_t children = 1 + below(one_in(8) ? 32 : 5);
  const uint32_t kind = chip ? 2 + below(2) : below(4);
  const bool tree = kind >= 2;
  world_ = vectors::world("random", children, tree ? 1 : 1u << below(3));
  net::JobSpec& job = world_.job;
  job.job = static_cast<uint16_t>(below(65536));
  job.slots = 1 + below(12);
  job.max_lanes = 1 + below(64);
  if (one_in(4)) job.formats = 1 + below(255);
  if (chip) {  // it looks at its own limits, not at those of a job
    job.max_lanes = kChipLanes;
    job.formats = sap::kWordFormats;
  }
  if (kind == 2 && !chip) job.parent = net::Parent{*SocketAddress::parse("127.77.2.1:48880"), 3};
  if (kind == 3) job.children_are_switches = true;
  if (!tree && one_in(3)) {
    job.rails = 1u << (1 + below(2));
    for (uint32_t i = children; i < children * job.rails; ++i) {
      job.children.push_back(*SocketAddress::parse("127.77." + std::to_string(3 + i / children) +
                                                   "." + std::to_string(i % children + 1) +
                                                   ":4001"));
    }
  }
  for (uint32_t slot = 0; slot < job.slots; ++slot) {
    epochs_.push_back(one_in(4) ? 0xfffffffe : one_in(4) ? 0x7ffffffe : below(100));
  }
}

std::pair<uint8_t, uint32_t> Trace::fence() {
  former_ = {world_.job.generation, world_.job.token};
  ++world_.job.generation;
  world_.job.token = static_cast<uint32_t>(random_());
  return {world_.job.generation, world_.job.token};
}

// What a child sends, or the parent. All packets of a round have the same shape, mostly.
std::vector<std::byte> Trace::valid(uint16_t slot, uint32_t epoch, uint8_t child, bool* above) {
  const net::JobSpec& job = world_.job;
  const uint64_t shape = one_in(40) ? random_() : (slot * 7919ull + epoch) * 0x9e3779b97f4a7c15;
  vectors::Contribution what;
  const bool words = kind_ == Kind::kChip && (shape >> 40) % 16 != 0;
  what.format = kFormats[(shape >> 20) % (words ? 2 : 7)];
  what.op = static_cast<sap::Op>(shape >> 30 & 3);
  what.lanes = static_cast<uint16_t>(1 + (shape >> 33) % job.max_lanes);
  if ((shape >> 50) % 8 == 0) what.flags = sap::flag::kExponentsOnly;
  what.seed = below(3);  // other values in a contribution that is repeated must have no effect
  *above = job.parent && one_in(4);
  if (one_in(10) && !*above) {
    return vectors::changed(vectors::question(job, child, slot, epoch), [&](sap::Header& header) {
      if (one_in(4)) header.flags = sap::flag::kExponentsOnly;
    });
  }
  auto packet = vectors::contribution(job, child, slot, epoch, what);
  const bool by_switch = job.children_are_switches;
  return vectors::changed(std::move(packet), [&](sap::Header& header) {
    if (by_switch) header.type = sap::Type::kPartial;
    if (by_switch) header.level = 1;
    if (!*above) return;
    header.type = sap::Type::kParentResult;
    header.child = job.parent->child;
    header.cookie = below(4);
  });
}

Trace::Packet Trace::next() {
  const net::JobSpec& job = world_.job;
  const auto slot = static_cast<uint16_t>(below(job.slots));
  uint32_t epoch = epochs_[slot];
  if (one_in(8)) epoch += below(5) - 2;
  if (one_in(100)) epoch = static_cast<uint32_t>(random_());
  if (one_in(2 * static_cast<uint32_t>(job.child_count()) + 2)) ++epochs_[slot];
  const auto child = static_cast<uint8_t>(below(static_cast<uint32_t>(job.child_count())));
  bool above = false;
  Packet packet{{}, valid(slot, epoch, child, &above), slot % world_.shards};
  const size_t rail = sap::rail_of(slot, world_.shards, job.rails);
  packet.from = above ? job.parent->address : job.children[rail * job.child_count() + child];
  if (above && one_in(6)) {  // a word instead of a result
    packet.bytes = vectors::changed(packet.bytes, [&](sap::Header& header) {
      header.type = one_in(2) ? sap::Type::kStatus : sap::Type::kReject;
      header.lanes = 1;
      header.flags = 0;
      header.level = 0;
      header.cookie = below(6);
    });
    packet.bytes.resize(sap::kHeaderBytes + 4);
  }
  if (former_ && one_in(20)) {  // late
    packet.bytes = vectors::changed(std::move(packet.bytes), [&](sap::Header& header) {
      std::tie(header.generation, header.token) = *former_;
    });
  }
  if (one_in(6)) spoil(&packet);
  return packet;
}

// In one way or several.
void Trace::spoil(Packet* packet) {
  const net::JobSpec& job = world_.job;
  do {
    switch (below(6)) {
      case 0:  // a bit of the header
        packet->bytes[below(sap::kHeaderBytes)] ^= static_cast<std::byte>(1u << below(8));
        break;
      case 1:  // a byte of the header
        packet->bytes[below(sap::kHeaderBytes)] = static_cast<std::byte>(random_());
        break;
      case 2:  // another source
        packet->from = job.children[below(static_cast<uint32_t>(job.children.size()))];
        break;
      case 3:
        packet->shard = below(world_.shards);
        break;
      case 4:  // cut short, or too long
        packet->bytes.resize(
            std::max<size_t>(sap::kHeaderBytes, packet->bytes.size() + 4 * below(5) - 8));
        break;
      default:
        packet->bytes[sap::at::kType] = static_cast<std::byte>(below(10));
    }
  } while (one_in(3));
}

}  // namespace slime::p4
