#include "test/support/switch_model.h"

#include <algorithm>

namespace slime::test {
namespace {

using sap::Type;

uint32_t bytes_of(sap::Format format) {
  switch (format) {
    case sap::Format::kI8:
    case sap::Format::kU8:
      return 1;
    case sap::Format::kI16:
      return 2;
    case sap::Format::kI64:
    case sap::Format::kU64:
      return 8;
    default:
      return 4;
  }
}

bool is_signed(sap::Format format) {
  return format == sap::Format::kI8 || format == sap::Format::kI16 || format == sap::Format::kI32 ||
         format == sap::Format::kI64;
}

uint64_t number_at(const std::vector<std::byte>& payload, size_t at, uint32_t width) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < width; ++i) {
    value = value << 8 | std::to_integer<uint64_t>(payload[at + i]);
  }
  return value;
}

uint64_t combined(uint64_t a, uint64_t b, sap::Op op, bool with_sign, uint32_t width) {
  // Turning the sign bit makes the order of signed numbers that of unsigned ones.
  const uint64_t turn = with_sign ? uint64_t{1} << (8 * width - 1) : 0;
  switch (op) {
    case sap::Op::kMin:
      return (a ^ turn) < (b ^ turn) ? a : b;
    case sap::Op::kMax:
      return (a ^ turn) > (b ^ turn) ? a : b;
    case sap::Op::kOr:
      return a | b;
    default:
      return a + b;
  }
}

std::vector<std::byte> word_of(uint32_t word) {
  std::vector<std::byte> bytes(4);
  sap::wire::put32(bytes.data(), word);
  return bytes;
}

std::vector<std::byte> whole(const sap::Header& header, const std::vector<std::byte>& payload) {
  std::vector<std::byte> bytes(sap::kHeaderBytes);
  sap::encode(header, bytes.data());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

// An answer of one word, to whoever asked.
Answer word_answer(const sap::Header& asked, Type type, uint32_t word, const SocketAddress& to,
                   uint8_t level = 0) {
  sap::Header header = asked;
  header.type = type;
  header.flags = 0;
  header.level = level;
  header.format = sap::Format::kI32;
  header.lanes = 1;
  return {whole(header, word_of(word)), {to}};
}

bool is_from_above(Type type) {
  return type == Type::kParentResult || type == Type::kStatus || type == Type::kReject;
}

std::vector<Answer> all_of(std::optional<Answer> answer) {
  if (!answer) return {};
  return {std::move(*answer)};
}

bool same_shape(const sap::Header& a, const sap::Header& b) {
  const auto exponents_only = [](const sap::Header& h) {
    return (h.flags & sap::flag::kExponentsOnly) != 0;
  };
  return a.format == b.format && a.op == b.op && a.lanes == b.lanes &&
         exponents_only(a) == exponents_only(b);
}

}  // namespace

std::vector<std::byte> reduce_payloads(sap::Format format, sap::Op op,
                                       const std::vector<std::vector<std::byte>>& payloads) {
  const uint32_t width = bytes_of(format);
  std::vector<std::byte> result = payloads.front();
  for (size_t at = 0; at + width <= result.size(); at += width) {
    uint64_t value = number_at(payloads.front(), at, width);
    for (size_t i = 1; i < payloads.size(); ++i) {
      value = combined(value, number_at(payloads[i], at, width), op, is_signed(format), width);
    }
    for (uint32_t i = 0; i < width; ++i) {
      result[at + i] = static_cast<std::byte>(value >> 8 * (width - 1 - i));
    }
  }
  return result;
}

void SwitchModel::fence(uint16_t job, uint8_t generation, uint32_t token) {
  const auto at = jobs_.find(job);
  if (at == jobs_.end()) return;
  at->second.spec.generation = generation;
  at->second.spec.token = token;
  at->second.rounds.clear();
}

// The first of a generation may be any: workers go on where they were.
SwitchModel::Round& SwitchModel::round_of(Job& job, const sap::Header& header) const {
  const uint32_t half = header.epoch & 1;
  const Round fresh{.epoch = header.epoch, .contributions = {}, .from_parent = {}};
  Round& round = job.rounds.try_emplace({header.slot, half}, fresh).first->second;
  if (round.contributions.empty()) round = fresh;
  return round;
}

std::vector<Answer> SwitchModel::handle(std::span<const std::byte> datagram,
                                        const SocketAddress& from, uint64_t now_ns) {
  Packet packet;
  if (sap::decode(datagram, &packet.header) != sap::Fault::kNone) return {};
  packet.payload.assign(datagram.begin() + sap::kHeaderBytes, datagram.end());
  const Type type = packet.header.type;
  const bool from_above = is_from_above(type);
  if (type != Type::kContribution && type != Type::kPartial && type != Type::kQuery &&
      !from_above) {
    return {};
  }
  // What a parent says is never refused: that would be an answer to an answer.
  const auto refuse = [&](sap::Rejection why) {
    return from_above ? std::vector<Answer>() : all_of(reject(why, packet, from, now_ns));
  };
  const auto at = jobs_.find(packet.header.job);
  if (at == jobs_.end()) return refuse(sap::Rejection::kNoJob);
  const net::JobSpec& spec = at->second.spec;
  const bool ours = packet.header.generation == spec.generation;
  if (ours && packet.header.token != spec.token) return {};
  if (const auto why = refusal(at->second, packet.header, from)) return refuse(*why);
  if (type == Type::kParentResult) return all_of(from_parent(at->second, packet));
  if (from_above) return all_of(word_from_parent(at->second, packet));
  if (type == Type::kQuery) return query(at->second, packet, from);
  return all_of(contribute(at->second, packet, from, now_ns));
}

std::optional<sap::Rejection> SwitchModel::refusal(const Job& job, const sap::Header& header,
                                                   const SocketAddress& from) const {
  const net::JobSpec& spec = job.spec;
  if (header.generation != spec.generation) return sap::Rejection::kGeneration;
  if (is_from_above(header.type)) {
    if (!spec.parent || !(spec.parent->address == from)) return sap::Rejection::kSource;
  } else if (header.child >= spec.children.size() / spec.rails ||
             !(child_at(spec, header.child, header.slot) == from)) {
    return sap::Rejection::kSource;
  }
  if (header.slot >= spec.slots || header.slot % count_ != index_) return sap::Rejection::kSlot;
  const Type of_others = spec.children_are_switches ? Type::kContribution : Type::kPartial;
  const bool half_a_number = bytes_of(header.format) == 8 && header.lanes % 2 == 1;
  const bool wanted = sap::has_format(spec.formats, header.format);
  if (header.type == of_others || header.lanes > spec.max_lanes || half_a_number || !wanted) {
    return sap::Rejection::kShape;
  }
  return {};
}

std::optional<Answer> SwitchModel::reject(sap::Rejection why, const Packet& packet,
                                          const SocketAddress& from, uint64_t now_ns) {
  if (now_ns - second_began_ns_ >= 1'000'000'000) {
    second_began_ns_ = now_ns;
    rejects_ = 0;
  }
  if (rejects_++ >= net::Shard::kRejectsPerSecond) return {};
  return word_answer(packet.header, Type::kReject, static_cast<uint32_t>(why), from);
}

std::optional<Answer> SwitchModel::contribute(Job& job, const Packet& packet,
                                              const SocketAddress& from, uint64_t now_ns) {
  Round& round = round_of(job, packet.header);
  const auto ahead = static_cast<int32_t>(packet.header.epoch - round.epoch);
  const bool open = !round.contributions.empty();
  if (ahead == 0 && open && !same_shape(round.contributions.front().header, packet.header)) {
    return reject(sap::Rejection::kShape, packet, from, now_ns);
  }
  if (ahead < 0) return {};
  if (ahead > 0) round = {.epoch = packet.header.epoch, .contributions = {}, .from_parent = {}};
  const size_t all = job.spec.children.size() / job.spec.rails;
  for (const Packet& known : round.contributions) {
    if (known.header.child != packet.header.child) continue;
    if (round.contributions.size() < all) return {};
    return values(job, round, packet, false);
  }
  round.contributions.push_back(packet);
  if (round.contributions.size() < all) return {};
  return values(job, round, packet, true);
}

// Where all have contributed, the parent is asked as well; the cookie tells whom its answer is for.
std::vector<Answer> SwitchModel::query(Job& job, const Packet& packet,
                                       const SocketAddress& from) const {
  const Round& round = round_of(job, packet.header);
  if (static_cast<int32_t>(packet.header.epoch - round.epoch) < 0) return {};
  const bool current = packet.header.epoch == round.epoch;
  if (current && round.contributions.size() == job.spec.children.size() / job.spec.rails) {
    std::vector<Answer> answers = {values(job, round, packet, false)};
    if (!job.spec.parent || round.from_parent) return answers;
    sap::Header question = packet.header;
    question.cookie = question.child;
    question.child = job.spec.parent->child;
    answers.push_back({whole(question, {}), {job.spec.parent->address}});
    return answers;
  }
  uint32_t arrived = 0;
  for (const Packet& known : round.contributions) arrived |= 1u << known.header.child;
  return {word_answer(packet.header, Type::kStatus, current ? arrived : 0, from,
                      job.spec.children_are_switches ? 1 : 0)};
}

// A status goes to the child that had asked, a refusal to all.
std::optional<Answer> SwitchModel::word_from_parent(const Job& job, const Packet& packet) const {
  const net::JobSpec& spec = job.spec;
  const size_t count = spec.children.size() / spec.rails;
  if (packet.header.type == Type::kReject) {
    Answer to_all{whole(packet.header, packet.payload), {}};
    for (size_t i = 0; i < count; ++i) to_all.to.push_back(child_at(spec, i, packet.header.slot));
    return to_all;
  }
  if (packet.header.cookie >= count) return {};
  sap::Header header = packet.header;
  header.child = static_cast<uint8_t>(header.cookie);
  return Answer{whole(header, packet.payload), {child_at(spec, header.child, header.slot)}};
}

std::optional<Answer> SwitchModel::from_parent(Job& job, const Packet& packet) const {
  Round& round = round_of(job, packet.header);
  const bool complete = round.contributions.size() == job.spec.children.size() / job.spec.rails;
  if (round.epoch != packet.header.epoch || !complete || round.from_parent) return {};
  if (!same_shape(round.contributions.front().header, packet.header)) return {};
  round.from_parent = packet;
  return values(job, round, packet, true);
}

SwitchModel::Packet SwitchModel::reduced(const Round& round) {
  Packet sum = round.contributions.front();
  std::vector<std::vector<std::byte>> payloads;
  for (const Packet& one : round.contributions) {
    payloads.push_back(one.payload);
    if (payloads.size() == 1) continue;
    for (int block : {0, 1}) {
      sum.header.exponents[block] =
          std::max(sum.header.exponents[block], one.header.exponents[block]);
    }
    sum.header.special |= one.header.special;
    sum.header.check += one.header.check;
  }
  sum.payload = reduce_payloads(sum.header.format, sum.header.op, payloads);
  return sum;
}

// Shards take turns with slots, and rails take turns with the slots of a shard.
SocketAddress SwitchModel::child_at(const net::JobSpec& spec, size_t child, uint16_t slot) const {
  const size_t children = spec.children.size() / spec.rails;
  const size_t turn = (slot - slot % count_) / count_;
  return spec.children[turn % spec.rails * children + child];
}

// To all children, or to the one that asked; a sum that is not complete goes up instead.
Answer SwitchModel::values(const Job& job, const Round& round, const Packet& packet,
                           bool to_all) const {
  const net::JobSpec& spec = job.spec;
  const bool up = spec.parent && !round.from_parent;
  Packet answer = round.from_parent ? *round.from_parent : reduced(round);
  sap::Header& header = answer.header;
  header.child = up ? spec.parent->child : packet.header.child;
  header.level = up ? 1 : 0;
  header.type = up                           ? Type::kPartial
                : spec.children_are_switches ? Type::kParentResult
                : to_all                     ? Type::kResult
                                             : Type::kResultAgain;
  std::vector<SocketAddress> to;
  for (size_t child = 0; child < spec.children.size() / spec.rails; ++child) {
    if (to_all || child == packet.header.child) {
      to.push_back(child_at(spec, child, packet.header.slot));
    }
  }
  if (up) to = {spec.parent->address};
  return {whole(header, answer.payload), std::move(to)};
}

}  // namespace slime::test
