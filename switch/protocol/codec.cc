// Control messages to bytes and back, little-endian.

#include <algorithm>
#include <concepts>
#include <optional>
#include <type_traits>

#include "switch/protocol/frames.h"

#include "base/text.h"

namespace slime::control {
namespace {

// Writer and Reader have the same functions, so that one description of a message serves both.
//
// Children are counted in the low half of a word, the rails beyond the first in the high half:
// those of one rail look as they did before there were more.
class Writer {
 public:
  explicit Writer(std::vector<std::byte>* to) : to_(to) {}

  template <typename Number>
  void number(Number value) {
    for (size_t i = 0; i < sizeof value; ++i) {
      to_->push_back(static_cast<std::byte>(uint64_t{value} >> 8 * i));
    }
  }
  template <size_t kBytes>
  void bytes(const std::array<std::byte, kBytes>& value) {
    to_->insert(to_->end(), value.begin(), value.end());
  }
  void address(const SocketAddress& value) { bytes(value.pack()); }
  void padded(const std::string& text, size_t width) {
    for (size_t i = 0; i < width; ++i) {
      to_->push_back(static_cast<std::byte>(i < text.size() ? text[i] : '\0'));
    }
  }
  void rest(const std::string& text, size_t most) {
    for (const char c : text.substr(0, most)) to_->push_back(static_cast<std::byte>(c));
  }
  void flag(bool value) { number(static_cast<uint8_t>(value)); }
  template <typename Enum>
  void choice(Enum value, Enum, Enum) {
    number(static_cast<std::underlying_type_t<Enum>>(value));
  }
  void zeros(size_t count) { to_->resize(to_->size() + count); }
  void addresses(const std::vector<SocketAddress>& list, uint32_t rails) {
    number(static_cast<uint16_t>(list.size() / rails));
    number(static_cast<uint16_t>(rails - 1));
    for (const SocketAddress& one : list) address(one);
  }
  void require(bool, const char*) {}  // what we send is ours to get right

 private:
  std::vector<std::byte>* to_;
};

// Keeps the first fault, and reads zeros after it, so that callers check once, at the end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> from) : from_(from) {}

  const char* fault() const { return fault_; }
  void finish() { require(from_.empty(), "it is too long"); }

  template <typename Number>
  void number(Number& value) {
    uint64_t sum = 0;
    const auto part = take(sizeof value);
    for (size_t i = 0; i < part.size(); ++i) sum |= std::to_integer<uint64_t>(part[i]) << 8 * i;
    value = static_cast<Number>(sum);
  }
  template <size_t kBytes>
  void bytes(std::array<std::byte, kBytes>& value) {
    std::ranges::copy(take(kBytes), value.begin());
  }
  void address(SocketAddress& value) {
    const auto found = SocketAddress::unpack(take(SocketAddress::kWireBytes));
    if (found) value = *found;
    require(found.has_value(), "an address is damaged");
  }
  void padded(std::string& text, size_t width) {
    assign(&text, take(width));
    const size_t end = std::min(text.find('\0'), text.size());
    require(text.find_first_not_of('\0', end) == std::string::npos, "a name has a hole");
    text.resize(end);
  }
  void rest(std::string& text, size_t most) {
    require(from_.size() <= most, "a text is too long");
    assign(&text, take(std::min(from_.size(), most)));
  }
  void flag(bool& value) {
    uint8_t byte = 0;
    number(byte);
    require(byte <= 1, "a flag is neither 0 nor 1");
    value = byte == 1;
  }
  template <typename Enum>
  void choice(Enum& value, Enum first, Enum last) {
    using Number = std::underlying_type_t<Enum>;
    Number found = 0;
    number(found);
    const bool known = found >= static_cast<Number>(first) && found <= static_cast<Number>(last);
    require(known, "a value is unknown");
    if (known) value = static_cast<Enum>(found);
  }
  void zeros(size_t count) {
    require(std::ranges::all_of(take(count), [](std::byte b) { return b == std::byte{0}; }),
            "what must be zero is not");
  }
  void addresses(std::vector<SocketAddress>& list, uint32_t& rails) {
    uint16_t children = 0, more_rails = 0;
    number(children);
    number(more_rails);
    require(children >= 1 && children <= sap::kMaxChildren,
            "the number of children is out of range");
    require(more_rails < sap::kMaxRails, "the number of rails is out of range");
    rails = fault_ == nullptr ? more_rails + 1u : 1;
    const uint32_t count = rails * children;
    for (uint32_t i = 0; i < count && fault_ == nullptr; ++i) address(list.emplace_back());
  }
  void require(bool holds, const char* otherwise) {
    if (!holds && fault_ == nullptr) fault_ = otherwise;
  }

 private:
  static void assign(std::string* text, std::span<const std::byte> from) {
    text->resize(from.size());
    std::ranges::transform(from, text->begin(), [](std::byte b) { return static_cast<char>(b); });
  }
  std::span<const std::byte> take(size_t count) {
    require(count <= from_.size(), "it is too short");
    if (fault_ != nullptr) return {};
    const auto part = from_.first(count);
    from_ = from_.subspan(count);
    return part;
  }

  std::span<const std::byte> from_;
  const char* fault_ = nullptr;
};

// What each message consists of. `io` is a Writer, and the message constant, or a Reader.
template <typename Found, typename Wanted>
concept Is = std::same_as<std::remove_const_t<Found>, Wanted>;

void numbers(auto& io, auto&... values) { (io.number(values), ...); }

void fields(auto& io, Is<JobRef> auto& job) {
  io.bytes(job.id);
  numbers(io, job.job, job.generation);
}

constexpr bool are_formats(uint32_t set) { return set != 0 && (set & ~sap::kKnownFormats) == 0; }

void fields(auto& io, Is<CreateJob> auto& m) {
  io.padded(m.tenant, kMaxTenantBytes);
  numbers(io, m.slots_wanted, m.slots_least, m.lanes_wanted, m.lanes_least);
  numbers(io, m.formats_wanted, m.formats_least, m.session, m.shares, m.share);
  io.addresses(m.children, m.rails);
  io.require(is_tenant_name(m.tenant), "the tenant's name is empty or has odd characters");
  io.require(
      m.slots_least >= 1 && m.slots_least <= m.slots_wanted && m.slots_wanted <= sap::kMaxSlots,
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

void fields(auto& io, Is<JoinTree> auto& m) {
  numbers(io, m.tree, m.contributors, m.workers, m.branches, m.branch, m.shards);
  fields(io, m.part);
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

void fields(auto& io, Is<Hello> auto& m) {
  io.bytes(m.nonce);
  io.padded(m.tenant, kMaxTenantBytes);
  io.require(m.tenant.empty() || is_tenant_name(m.tenant), "the tenant's name has odd characters");
}
void fields(auto& io, Is<Challenge> auto& m) {
  io.bytes(m.nonce);
  io.flag(m.key_wanted);
}
void fields(auto& io, Is<Heartbeat> auto& m) { fields(io, m.job); }
void fields(auto& io, Is<CloseJob> auto& m) { fields(io, m.job); }
void fields(auto& io, Is<Fence> auto& m) {
  fields(io, m.job);
  io.flag(m.by_operator);
}
void fields(auto& io, Is<Report> auto& m) { io.flag(m.counters); }
void fields(auto& io, Is<Drain> auto& m) { io.flag(m.on); }
void fields(auto& io, Is<JobGrant> auto& m) {
  fields(io, m.job);
  io.number(m.token);
  io.address(m.address);
  numbers(io, m.shards, m.slots, m.lanes, m.formats, m.lease_ms);
  io.require(m.shards >= 1 && m.shards <= sap::kMaxShards &&
                 m.address.port() + m.shards - 1 <= UINT16_MAX && m.address.port() != 0,
             "the number of shards is out of range");
  io.require(m.slots >= 1 && m.slots <= sap::kMaxSlots, "the number of slots is out of range");
  io.require(m.lanes >= 1 && m.lanes <= sap::kMaxLanes, "the number of lanes is out of range");
  io.require(are_formats(m.formats), "the set of formats is empty or has unknown ones");
  io.require(m.lease_ms > 0, "the lease is zero");
}
void fields(auto& io, Is<JobState> auto& m) {
  io.choice(m.state, State::kAlive, State::kFenced);
  io.number(m.generation);
}
void fields(auto&, Is<Done> auto&) {}
void fields(auto& io, Is<Text> auto& m) { io.rest(m.text, kMaxAnswerBytes); }
void fields(auto& io, Is<Refused> auto& m) {
  io.choice(m.why, Refusal::kMalformed, Refusal::kForbidden);
  io.rest(m.text, kMaxReasonBytes);
}
void fields(auto& io, Is<TreeWait> auto& m) { io.number(m.missing); }

// Of Message's alternatives, the one with that index.
template <size_t kIndex = 0>
std::optional<Message> read_message(size_t index, Reader& reader) {
  if constexpr (kIndex < std::variant_size_v<Message>) {
    if (index != kIndex) return read_message<kIndex + 1>(index, reader);
    std::variant_alternative_t<kIndex, Message> found;
    fields(reader, found);
    return found;
  }
  return std::nullopt;
}

Error malformed(const char* what, const char* why) {
  return make_error(Status::kInvalid, 0, "%s: %s", what, why);
}

}  // namespace

std::vector<std::byte> encode(const Message& message, uint32_t sequence) {
  std::vector<std::byte> frame;
  Writer writer(&frame);
  writer.number(kMagic);
  writer.number(kVersion);
  writer.number(static_cast<uint8_t>(type_of(message)));
  writer.zeros(2);
  writer.number(sequence);
  writer.zeros(4);
  std::visit([&](const auto& kind) { fields(writer, kind); }, message);
  constexpr size_t kLengthAt = 12;
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
  numbers(reader, magic, version);
  reader.require(magic == kMagic, "it does not begin as a control message");
  if (reader.fault() == nullptr && version != kVersion) {
    return fail(Status::kInvalid,
                "control message: it is of version %u and this program speaks version %u; use the "
                "same release at both ends",
                version, kVersion);
  }
  reader.choice(header.type, Type::kHello, Type::kTreeWait);
  reader.zeros(2);
  numbers(reader, header.sequence, header.payload_bytes);
  reader.require(header.payload_bytes <= max_payload, "it is too long");
  reader.finish();
  if (reader.fault() != nullptr) return fail(malformed("control message", reader.fault()));
  return header;
}

Result<Message> decode_payload(Type type, std::span<const std::byte> payload) {
  Reader reader(payload);
  auto message = read_message(static_cast<size_t>(type) - 1, reader);
  if (!message) return fail(malformed("control message", "a value is unknown"));
  reader.finish();
  if (reader.fault() != nullptr) return fail(malformed(name_of(type), reader.fault()));
  // The text comes from a stranger and goes to terminals and logs.
  if (auto* refused = std::get_if<Refused>(&*message)) {
    refused->text = displayed(refused->text);
  }
  return std::move(*message);
}

}  // namespace slime::control
