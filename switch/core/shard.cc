#include "switch/core/shard.h"

#include <algorithm>
#include <cerrno>

#include "switch/core/arithmetic.h"

namespace slime::net {
namespace {

template <typename Enum>
size_t index_of(Enum value) {
  return static_cast<size_t>(value);
}

// Types that only a parent sends. They are answers, so they are never answered by a refusal.
bool is_from_above(sap::Type type) {
  return type == sap::Type::kParentResult || type == sap::Type::kStatus ||
         type == sap::Type::kReject;
}

Error bad_job(const JobSpec& spec, const char* what) {
  return make_error(Status::kInvalid, 0, "job %u: %s", spec.job, what);
}

bool shape_fits(const JobSpec& spec, const sap::Header& header) {
  const bool wide = header.format == sap::Format::kI64 || header.format == sap::Format::kU64;
  const auto of_others =
      spec.children_are_switches ? sap::Type::kContribution : sap::Type::kPartial;
  return header.type != of_others && header.lanes <= spec.max_lanes &&
         !(wide && header.lanes % 2 != 0) && sap::has_format(spec.formats, header.format);
}

// The first contribution to a round is stored.
void store(SlotHalf& half, std::byte* values, const sap::Header& header, const std::byte* payload) {
  half.shape = shape_of(header);
  half.scalars = scalars_of(header);
  arithmetic().load[index_of(header.format)](values, payload, header.lanes);
}

// The others are folded: values by the round's operation, exponents by maximum, special by OR,
// checks by addition.
void fold(Scalars& scalars, std::byte* values, const sap::Header& header,
          const std::byte* payload) {
  for (int block : {0, 1}) {
    scalars.exponents[block] = std::max(scalars.exponents[block], header.exponents[block]);
  }
  scalars.special |= header.special;
  scalars.check += header.check;
  arithmetic().fold[index_of(header.format)][index_of(header.op)](values, payload, header.lanes);
}

}  // namespace

Result<void> Shard::add_job(const JobSpec& spec) {
  auto job = make_job(spec);
  if (!job) return fail(std::move(job.error()));
  install(std::move(*job));
  return {};
}

Result<void> Shard::check(const JobSpec& spec) {
  if (spec.rails < 1 || spec.rails > sap::kMaxRails || spec.children.size() % spec.rails != 0) {
    return fail(bad_job(spec, "all children have the same 1 to 8 rails"));
  }
  if (spec.children.empty() || spec.child_count() > sap::kMaxChildren) {
    return fail(bad_job(spec, "a switch takes 1 to 32 children; build a tree for more"));
  }
  if (spec.rails > 1 && spec.children_are_switches) {
    return fail(bad_job(spec, "switches have one rail each"));
  }
  if (spec.slots == 0 || spec.slots > sap::kMaxSlots) {
    return fail(bad_job(spec, "1 to 65536 slots"));
  }
  if (spec.max_lanes == 0 || spec.max_lanes > sap::kMaxLanes) {
    return fail(bad_job(spec, "1 to 2048 lanes (32-bit words per packet)"));
  }
  return {};
}

Result<std::unique_ptr<Shard::Job>> Shard::make_job(const JobSpec& spec) const {
  if (auto possible = check(spec); !possible) return fail(std::move(possible.error()));
  auto job = std::make_unique<Job>();
  job->spec = spec;
  const uint32_t here = spec.slots / count_ + (index_ < spec.slots % count_ ? 1 : 0);
  job->slots = Slots(here, spec.max_lanes);
  if (here > 0 && job->slots.empty()) {
    return fail(make_error(Status::kNoMemory, ENOMEM, "job %u: no memory for %zu bytes of slots",
                           spec.job, Slots::bytes_for(here, spec.max_lanes)));
  }
  const auto all = static_cast<uint32_t>((uint64_t{1} << spec.child_count()) - 1);
  job->role = {.all = all, .root = !spec.parent};
  return job;
}

std::unique_ptr<Shard::Job> Shard::install(std::unique_ptr<Job> job) {
  std::unique_ptr<Job>& current = jobs_[job->spec.job];
  std::swap(current, job);
  return job;
}

std::unique_ptr<Shard::Job> Shard::take(uint16_t job) {
  auto node = jobs_.extract(job);
  return node ? std::move(node.mapped()) : nullptr;
}

bool Shard::fence(uint16_t job, uint8_t generation, uint32_t token) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return false;
  found->second->spec.generation = generation;
  found->second->spec.token = token;
  found->second->slots.clear();
  return true;
}

const JobCounters* Shard::counters_of(uint16_t job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second->counters;
}

void Shard::handle(std::span<const std::byte> datagram, const SocketAddress& from, uint64_t now_ns,
                   Outbox& outbox) {
  counters_.packets.add();
  sap::Header header;
  const sap::Fault fault = sap::decode(datagram, &header);
  if (fault == sap::Fault::kVersion) return counters_.other_version.add();
  if (fault != sap::Fault::kNone) return counters_.malformed.add();
  const Packet packet{header, datagram.subspan(sap::kHeaderBytes), from, now_ns, outbox};
  const bool from_above = is_from_above(header.type);
  if (!from_above && header.type != sap::Type::kContribution && header.type != sap::Type::kQuery &&
      header.type != sap::Type::kPartial) {
    return counters_.unexpected.add();
  }
  const auto found = jobs_.find(header.job);
  if (found == jobs_.end()) {
    if (from_above) return counters_.unknown_job.add();
    return reject(sap::Rejection::kNoJob, counters_.unknown_job, packet);
  }
  Job& job = *found->second;
  if (!admit(job, packet)) return;
  if (from_above) return on_parent_packet(job, packet);
  if (header.type == sap::Type::kQuery) return query(job, packet);
  contribute(job, packet);
}

// Whether the packet counts. The order is that of the protocol: generation, token, source, slot,
// shape. A wrong token gets no answer, because an answer would tell an attacker that the job and
// generation are right. Packets of the parent are never answered by a refusal: two switches would
// refuse each other's refusals without end.
bool Shard::admit(Job& job, const Packet& packet) {
  const sap::Header& header = packet.header;
  const bool from_above = is_from_above(header.type);
  const auto refuse = [&](sap::Rejection why, Counter& counter) {
    if (from_above)
      counter.add();
    else
      reject(why, counter, packet);
    return false;
  };
  if (header.generation != job.spec.generation) {
    return refuse(sap::Rejection::kGeneration, job.counters.rejected_generation);
  }
  if (header.token != job.spec.token) {
    job.counters.wrong_token.add();
    return false;
  }
  const auto children = children_of(job, header.slot);
  const bool bound = from_above
                         ? job.spec.parent && packet.from == job.spec.parent->address
                         : header.child < children.size() && packet.from == children[header.child];
  if (!bound) return refuse(sap::Rejection::kSource, job.counters.rejected_source);
  if (header.slot >= job.spec.slots || header.slot % count_ != index_) {
    return refuse(sap::Rejection::kSlot, job.counters.rejected_slot);
  }
  if (!shape_fits(job.spec, header)) {
    return refuse(sap::Rejection::kShape, job.counters.rejected_shape);
  }
  return true;
}

// The children's addresses on the rail of the slot, for which a number beyond the job's slots is
// taken too: admit() looks at the source before it looks at the slot.
std::span<const SocketAddress> Shard::children_of(const Job& job, uint16_t slot) const {
  const std::span<const SocketAddress> all(job.spec.children);
  if (job.spec.rails == 1) return all;
  const size_t count = job.spec.child_count();
  return all.subspan(sap::rail_of(slot, count_, job.spec.rails) * count, count);
}

// A contribution of a worker, or a partial sum of a switch below. The slot machine decides first,
// because the payload may be folded only once. A contribution of another shape than the round's is
// refused before that. When the last child has contributed, load() turns the sum back into network
// order in place, because the payload is sent from the slot's memory.
void Shard::contribute(Job& job, const Packet& packet) {
  const sap::Header& header = packet.header;
  const uint32_t slot = local(header.slot);
  SlotHalf& half = job.slots.half(slot, header.epoch);
  const bool joins = half.half.arrived != 0 && half.half.epoch == header.epoch;
  if (joins && half.shape != shape_of(header)) {
    return reject(sap::Rejection::kShape, job.counters.rejected_shape, packet);
  }
  std::byte* const values = job.slots.values(slot, header.epoch);
  const sap::Verdict verdict =
      sap::on_contribution(half.half, header.epoch, header.child, job.role);
  switch (verdict.event) {
    case sap::Event::kStale:
      return job.counters.stale.add();
    case sap::Event::kDuplicate:
      return job.counters.duplicates.add();
    case sap::Event::kRepeated:
      job.counters.results_again.add();
      break;
    case sap::Event::kOpened:
      store(half, values, header, packet.payload.data());
      break;
    case sap::Event::kFolded:
      fold(half.scalars, values, header, packet.payload.data());
      break;
  }
  if (verdict.event != sap::Event::kRepeated) {
    job.counters.contributions.add();
    if (verdict.send != sap::Send::kNothing) {
      job.counters.rounds.add();
      if (header.lanes > 0)
        arithmetic().load[index_of(header.format)](values, values, header.lanes);
    }
  }
  answer(job, verdict.send, packet);
}

// A child has waited for long and asks which children its round still lacks. On a leaf where all
// children have contributed, the round waits for the root. So the leaf sends its partial sum again,
// which may have been lost, and passes the query on to the parent, which has the bits of all
// leaves. The cookie carries the child's number, because the parent's answer must come back to that
// child.
void Shard::query(Job& job, const Packet& packet) {
  const SlotHalf& half = job.slots.half(local(packet.header.slot), packet.header.epoch);
  job.counters.queries.add();
  const sap::Send send = sap::on_query(half.half, packet.header.epoch, job.role);
  answer(job, send, packet);
  if (send != sap::Send::kPartial) return;
  sap::Header header = packet.header;
  header.cookie = header.child;
  header.child = job.spec.parent->child;
  Outgoing outgoing;
  sap::encode(header, outgoing.header.data());
  packet.outbox.send(outgoing, std::span(&job.spec.parent->address, 1));
}

// A result of the parent goes into the slot. A status goes to the child that asked: its number
// comes back in the cookie. A refusal ends the job for all children, so all of them get it.
void Shard::on_parent_packet(Job& job, const Packet& packet) {
  if (packet.header.type == sap::Type::kParentResult) return parent_result(job, packet);
  const std::span<const SocketAddress> children = children_of(job, packet.header.slot);
  Outgoing outgoing;
  sap::Header header = packet.header;
  if (header.type == sap::Type::kStatus) {
    if (header.cookie >= children.size()) return job.counters.rejected_shape.add();
    header.child = static_cast<uint8_t>(header.cookie);
  }
  sap::encode(header, outgoing.header.data());
  outgoing.payload = packet.payload;
  job.counters.parent_words.add();
  packet.outbox.send(
      outgoing, header.type == sap::Type::kStatus ? children.subspan(header.child, 1) : children);
}

// The root's result replaces the partial sum in the slot, and goes to all children.
void Shard::parent_result(Job& job, const Packet& packet) {
  const sap::Header& header = packet.header;
  const uint32_t slot = local(header.slot);
  SlotHalf& half = job.slots.half(slot, header.epoch);
  if (half.half.epoch == header.epoch && half.shape != shape_of(header)) {
    return job.counters.rejected_shape.add();
  }
  if (!sap::on_parent_result(half.half, header.epoch, job.role)) return job.counters.stale.add();
  job.counters.parent_results.add();
  half.scalars = scalars_of(header);
  std::copy(packet.payload.begin(), packet.payload.end(), job.slots.values(slot, header.epoch));
  answer(job, sap::Send::kResult, packet);
}

// Sends what the slot machine has decided.
void Shard::answer(Job& job, sap::Send send, const Packet& packet) {
  const std::span<const SocketAddress> children = children_of(job, packet.header.slot);
  const bool below = job.spec.children_are_switches;
  switch (send) {
    case sap::Send::kNothing:
      return;
    case sap::Send::kResult:
      return send_values(job, below ? sap::Type::kParentResult : sap::Type::kResult, packet,
                         children);
    case sap::Send::kResultAgain:
      return send_values(job, below ? sap::Type::kParentResult : sap::Type::kResultAgain, packet,
                         children.subspan(packet.header.child, 1));
    case sap::Send::kPartial:
      return send_values(job, sap::Type::kPartial, packet, std::span(&job.spec.parent->address, 1));
    case sap::Send::kStatus: {
      const SlotHalf& half = job.slots.half(local(packet.header.slot), packet.header.epoch);
      return send_word(sap::Type::kStatus, sap::arrived_for(half.half, packet.header.epoch), packet,
                       below ? 1 : 0);
    }
  }
}

// Sends the slot's values and scalars. The payload is not copied: see Outgoing.
void Shard::send_values(Job& job, sap::Type type, const Packet& packet,
                        std::span<const SocketAddress> to) {
  const uint32_t slot = local(packet.header.slot);
  const SlotHalf& half = job.slots.half(slot, packet.header.epoch);
  sap::Header header = packet.header;
  header.type = type;
  header.format = half.shape.format;
  header.op = half.shape.op;
  header.lanes = half.shape.lanes;
  header.flags = half.scalars.flags;
  header.cookie = half.scalars.cookie;
  header.exponents[0] = half.scalars.exponents[0];
  header.exponents[1] = half.scalars.exponents[1];
  header.special = half.scalars.special;
  header.check = half.scalars.check;
  header.level = 0;
  if (type == sap::Type::kPartial) {
    header.child = job.spec.parent->child;
    header.level = 1;
  }
  Outgoing outgoing;
  sap::encode(header, outgoing.header.data());
  outgoing.payload = {job.slots.values(slot, packet.header.epoch), 4 * size_t{header.lanes}};
  packet.outbox.send(outgoing, to);
}

// Sends a status or a refusal to the sender of the packet. Its payload is one word, which lives on
// this stack: an outbox copies single words (Outgoing).
void Shard::send_word(sap::Type type, uint32_t word, const Packet& packet, uint8_t level) {
  sap::Header header = packet.header;
  header.type = type;
  header.flags = 0;
  header.format = sap::Format::kI32;  // not of the numbers: a word is no half of a wide one
  header.lanes = 1;
  header.level = level;
  Outgoing outgoing;
  sap::encode(header, outgoing.header.data());
  std::byte payload[4];
  sap::wire::put32(payload, word);
  outgoing.payload = payload;
  packet.outbox.send(outgoing, std::span(&packet.from, 1));
}

// At most kRejectsPerSecond for the whole shard, because a refused packet may belong to no job.
void Shard::reject(sap::Rejection why, Counter& counter, const Packet& packet) {
  counter.add();
  constexpr uint64_t kSecond = 1'000'000'000;
  if (packet.now_ns - rejects_since_ns_ >= kSecond) {
    rejects_since_ns_ = packet.now_ns;
    rejects_ = 0;
  }
  if (rejects_++ >= kRejectsPerSecond) return counters_.rejects_spared.add();
  counters_.rejects_sent.add();
  send_word(sap::Type::kReject, static_cast<uint32_t>(why), packet);
}

}  // namespace slime::net
