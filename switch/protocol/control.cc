// What each message of the control channel looks like in bytes: one description serves both
// directions, so that they cannot differ.

#include "switch/protocol/control.h"

#include <optional>

#include "switch/protocol/codec.h"

namespace slime::control {
namespace {

constexpr size_t kLengthAt = 12;

// Io is Writer or Reader.
template <typename Io, typename Ref>
void fields_of(Io& io, Ref& job) {
  io.bytes(job.id);
  io.number(job.job);
  io.number(job.generation);
}

constexpr bool are_formats(uint32_t set) { return set != 0 && (set & ~sap::kKnownFormats) == 0; }

template <typename Io>
void fields_of_wanted(Io& io, auto& m) {
  io.padded(m.tenant, kMaxTenantBytes);
  for (auto* number : {&m.slots_wanted, &m.slots_least, &m.lanes_wanted, &m.lanes_least}) {
    io.number(*number);
  }
  io.number(m.formats_wanted);
  io.number(m.formats_least);
  io.number(m.session);
  io.number(m.shares);
  io.number(m.share);
  io.addresses(m.children, m.rails);
  io.require(is_tenant_name(m.tenant), "the tenant's name is empty or has odd characters");
  io.require(m.slots_least >= 1 && m.slots_least <= m.slots_wanted && m.slots_wanted <= kMaxSlots,
             "the number of slots is out of range");
  io.require(
      m.lanes_least >= 1 && m.lanes_least <= m.lanes_wanted && m.lanes_wanted <= sap::kMaxLanes,
      "the number of lanes is out of range");
  io.require(are_formats(m.formats_wanted) && are_formats(m.formats_least),
             "a set of formats is empty or has unknown ones");
  io.require((m.formats_least & ~m.formats_wanted) == 0, "a format is needed and not wanted");
  io.require(m.shares >= 1 && m.shares <= kMaxShares && m.share < m.shares,
             "the number of shares is out of range");
}

template <typename Io>
void fields_of_tree(Io& io, auto& m) {
  io.number(m.tree);
  for (auto* number : {&m.contributors, &m.workers, &m.branches, &m.branch, &m.shards}) {
    io.number(*number);
  }
  fields_of_wanted(io, m.part);
  io.require(m.tree != 0, "the tree has no name");
  io.require(m.branches >= 2 && m.branches <= sap::kMaxChildren && m.branch < m.branches,
             "the number of branches is out of range");
  io.require(m.workers >= 1 && m.workers <= sap::kMaxChildren &&
                 m.contributors >= m.workers + m.branches - 1 &&
                 m.contributors <= m.branches * sap::kMaxChildren,
             "the number of workers is out of range");
  io.require(m.shards <= sap::kMaxShards &&
                 m.part.children.size() == (m.shards ? 1 : m.workers * size_t{m.part.rails}),
             "the number of children is another than that of workers, or a leaf's shards are odd");
}

template <typename Io>
struct Fields {
  Io& io;

  void operator()(auto& m, Hello*) {
    io.bytes(m.nonce);
    io.padded(m.tenant, kMaxTenantBytes);
    io.require(m.tenant.empty() || is_tenant_name(m.tenant),
               "the tenant's name has odd characters");
  }
  void operator()(auto& m, Challenge*) {
    io.bytes(m.nonce);
    io.flag(m.key_wanted);
  }
  void operator()(auto& m, CreateJob*) { fields_of_wanted(io, m); }
  void operator()(auto& m, Heartbeat*) { fields_of(io, m.job); }
  void operator()(auto& m, CloseJob*) { fields_of(io, m.job); }
  void operator()(auto& m, Fence*) {
    fields_of(io, m.job);
    io.flag(m.by_operator);
  }
  void operator()(auto& m, Report*) { io.flag(m.counters); }
  void operator()(auto& m, Drain*) { io.flag(m.on); }
  void operator()(auto& m, JobGrant*) {
    fields_of(io, m.job);
    io.number(m.token);
    io.address(m.address);
    for (auto* number : {&m.shards, &m.slots, &m.lanes, &m.formats, &m.lease_ms}) {
      io.number(*number);
    }
    io.require(m.shards >= 1 && m.shards <= sap::kMaxShards &&
                   m.address.port() + m.shards - 1 <= UINT16_MAX && m.address.port() != 0,
               "the number of shards is out of range");
    io.require(m.slots >= 1 && m.slots <= kMaxSlots, "the number of slots is out of range");
    io.require(m.lanes >= 1 && m.lanes <= sap::kMaxLanes, "the number of lanes is out of range");
    io.require(are_formats(m.formats), "the set of formats is empty or has unknown ones");
    io.require(m.lease_ms > 0, "the lease is zero");
  }
  void operator()(auto& m, JobState*) {
    io.choice(m.state, State::kAlive, State::kFenced);
    io.number(m.generation);
  }
  void operator()(auto&, Done*) {}
  void operator()(auto& m, Text*) { io.rest(m.text, kMaxAnswerBytes); }
  void operator()(auto& m, Refused*) {
    io.choice(m.why, Refusal::kMalformed, Refusal::kForbidden);
    io.rest(m.text, kMaxReasonBytes);
  }
  void operator()(auto& m, JoinTree*) { fields_of_tree(io, m); }
  void operator()(auto& m, TreeWait*) { io.number(m.missing); }
};

template <size_t kIndex>
void read_as(size_t index, Reader& reader, std::optional<Message>* message) {
  if constexpr (kIndex < std::variant_size_v<Message>) {
    if (index != kIndex) return read_as<kIndex + 1>(index, reader, message);
    using Kind = std::variant_alternative_t<kIndex, Message>;
    Kind found;
    Fields<Reader>{reader}(found, static_cast<Kind*>(nullptr));
    *message = std::move(found);
  }
}

// A sentence of a stranger's goes to terminals and logs.
void make_printable(std::string* text) {
  for (char& c : *text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
}

Error malformed(const char* what, const char* why) {
  return make_error(Status::kInvalid, 0, "%s: %s", what, why);
}

}  // namespace

bool is_tenant_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxTenantBytes &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "._-") == std::string_view::npos;
}

std::string shard_range(const SocketAddress& first, uint32_t shards) {
  const std::string text = first.to_string();
  if (shards <= 1 || first.port() == 0) return text;
  return text + "-" + std::to_string(first.port() + shards - 1);
}

const char* name_of(sap::Format format) {
  constexpr const char* kNames[] = {"i32", "u32", "i16", "i8", "i64", "f32", "u8", "u64"};
  return kNames[static_cast<size_t>(format) & 7];
}

std::string format_list(uint32_t formats) {
  std::string list;
  for (uint8_t i = 0; i < 8; ++i) {
    const auto format = static_cast<sap::Format>(i);
    if (!sap::has_format(formats, format)) continue;
    list += (list.empty() ? "" : ", ") + std::string(name_of(format));
  }
  return list.empty() ? "none" : list;
}

std::vector<std::byte> encode(const Message& message, uint32_t sequence) {
  std::vector<std::byte> frame;
  Writer writer(&frame);
  writer.number(kMagic);
  writer.number(kVersion);
  writer.number(static_cast<uint8_t>(type_of(message)));
  writer.zeros(2);
  writer.number(sequence);
  writer.zeros(4);
  std::visit([&]<typename Kind>(
                 const Kind& kind) { Fields<Writer>{writer}(kind, static_cast<Kind*>(nullptr)); },
             message);
  const size_t payload = frame.size() - kHeaderBytes;
  for (size_t i = 0; i < 4; ++i) frame[kLengthAt + i] = static_cast<std::byte>(payload >> 8 * i);
  frame.resize(frame.size() + kMacBytes);
  return frame;
}

Result<Header> decode_header(std::span<const std::byte> bytes, size_t max_payload) {
  Reader reader(bytes);
  uint32_t magic = 0;
  uint8_t version = 0;
  Header header;
  reader.number(magic);
  reader.number(version);
  reader.require(magic == kMagic, "it does not begin as a control message");
  if (reader.fault() == nullptr && version != kVersion) {
    return fail(make_error(Status::kInvalid, 0,
                           "control message: it is of version %u and this program speaks version "
                           "%u; use the same release at both ends",
                           version, kVersion));
  }
  reader.choice(header.type, Type::kHello, Type::kTreeWait);
  reader.zeros(2);
  reader.number(header.sequence);
  reader.number(header.payload_bytes);
  reader.require(header.payload_bytes <= max_payload, "it is too long");
  reader.finish();
  if (reader.fault() != nullptr) return fail(malformed("control message", reader.fault()));
  return header;
}

Result<Message> decode_payload(Type type, std::span<const std::byte> payload) {
  Reader reader(payload);
  std::optional<Message> message;
  read_as<0>(static_cast<size_t>(type) - 1, reader, &message);
  if (!message) return fail(malformed("control message", "a value is unknown"));
  reader.finish();
  if (reader.fault() != nullptr) return fail(malformed(name_of(type), reader.fault()));
  if (auto* refused = std::get_if<Refused>(&*message)) make_printable(&refused->text);
  return std::move(*message);
}

const char* name_of(Type type) {
  constexpr const char* kNames[] = {
      "greet",       "challenge",     "create a job", "renew a lease",  "close a job",
      "fence a job", "report",        "drain",        "grant of a job", "state of a job",
      "done",        "report's text", "refusal",      "join a tree",    "wait for a tree"};
  static_assert(std::size(kNames) == std::variant_size_v<Message>);
  const auto index = static_cast<size_t>(type) - 1;
  return index < std::size(kNames) ? kNames[index] : "?";
}

const char* name_of(Refusal reason) {
  constexpr const char* kNames[] = {"malformed", "unauthorized", "sequence", "full",
                                    "draining",  "quota",        "memory",   "shape",
                                    "no_job",    "busy",         "internal", "forbidden"};
  const auto index = static_cast<size_t>(reason) - 1;
  return index < std::size(kNames) ? kNames[index] : "?";
}

}  // namespace slime::control
