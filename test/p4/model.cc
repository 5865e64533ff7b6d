#include "test/p4/model.h"

#include "switch/protocol/slot_machine.h"

namespace slime::p4 {
namespace {

std::optional<sap::Header> header_of(const std::vector<std::byte>& bytes) {
  sap::Header header;
  if (sap::decode(bytes, &header) != sap::Fault::kNone) return std::nullopt;
  return header;
}

bool is_answer(sap::Type type) {
  return type != sap::Type::kContribution && type != sap::Type::kPartial &&
         type != sap::Type::kQuery;
}

bool same_shape(const sap::Header& a, const sap::Header& b) {
  return a.format == b.format && a.op == b.op && a.lanes == b.lanes &&
         ((a.flags ^ b.flags) & sap::flag::kExponentsOnly) == 0;
}

}  // namespace

// As Shard::admit.
bool ChipModel::is_admitted(const SocketAddress& from, const sap::Header& header) const {
  const net::JobSpec& job = shards_.job();
  const auto refused = job.children_are_switches ? sap::Type::kContribution : sap::Type::kPartial;
  return header.job == job.job && header.generation == job.generation &&
         header.token == job.token && header.child < job.children.size() &&
         from == job.children[header.child] && header.slot < job.slots && header.type != refused &&
         sap::has_format(job.formats, header.format);
}

const ChipModel::Half* ChipModel::half_of(const sap::Header& header) const {
  const auto found = halves_.find({header.slot, header.epoch & 1});
  return found == halves_.end() ? nullptr : &found->second;
}

bool ChipModel::is_defined(const SocketAddress& from, const std::vector<std::byte>& bytes) const {
  const auto header = header_of(bytes);
  if (!header || header->type == sap::Type::kQuery || is_answer(header->type)) return true;
  const Half* const half = half_of(*header);
  return !half || half->opener.epoch != header->epoch || !is_admitted(from, *header) ||
         same_shape(half->opener, *header);
}

Packets ChipModel::deliver(const SocketAddress& from, const std::vector<std::byte>& bytes,
                           uint32_t shard) {
  const auto header = header_of(bytes);
  if (header && is_answer(header->type)) return {};
  if (!header || !is_admitted(from, *header)) return shards_.deliver(from, bytes, shard);
  if (header->type == sap::Type::kQuery) return tell(from, *header);
  return contribute(from, bytes, *header);
}

// A half goes from one round to the next but one. A result has the cookie and the flags of the
// packet that completes its round or asks for it.
Packets ChipModel::contribute(const SocketAddress& from, const std::vector<std::byte>& bytes,
                              const sap::Header& header) {
  const Half* const half = half_of(header);
  const int32_t ahead = half ? sap::rounds_ahead(header.epoch, half->opener.epoch) : 2;
  if (ahead != 0 && ahead != 2) {
    ++stale_;
    return {};
  }
  Half& changed = halves_[{header.slot, header.epoch & 1}];
  if (ahead == 2) changed = {header, 0};
  changed.arrived |= 1u << header.child;
  Packets packets = shards_.deliver(from, bytes);
  for (test::CapturedPacket& packet : packets) {
    packet.payload = vectors::changed(std::move(packet.payload), [&](sap::Header& answer) {
      answer.cookie = header.cookie;
      answer.flags = header.flags;
    });
  }
  return packets;
}

// A status answers every question about a round that is not over, also if it is complete.
Packets ChipModel::tell(const SocketAddress& from, const sap::Header& header) {
  ++queries_;
  const Half* const half = half_of(header);
  const int32_t ahead = half ? sap::rounds_ahead(header.epoch, half->opener.epoch) : 2;
  if (ahead != 0 && ahead != 2) return {};
  sap::Header answer = header;
  answer.type = sap::Type::kStatus;
  answer.format = sap::Format::kI32;
  answer.flags = 0;
  answer.lanes = 1;
  answer.level = shards_.job().children_are_switches ? 1 : 0;
  std::vector<std::byte> bytes(sap::kHeaderBytes + 4);
  sap::encode(answer, bytes.data());
  sap::wire::put32(&bytes[sap::kHeaderBytes], ahead == 0 ? half->arrived : 0);
  return {{0, shards_.vector().address, from, std::move(bytes)}};
}

void ChipModel::fence(uint8_t generation, uint32_t token) {
  shards_.fence(generation, token);
  halves_.clear();
}

net::JobTotals ChipModel::totals() const {
  net::JobTotals totals = shards_.totals();
  totals.stale += stale_;
  totals.queries += queries_;
  return totals;
}

}  // namespace slime::p4
