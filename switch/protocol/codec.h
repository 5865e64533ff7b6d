// Fields of the control channel's messages to bytes and back, little-endian. Writer and Reader have
// the same functions, so that one description of a message serves both.
//
// Children are counted in the low half of a word, the rails beyond the first in the high half:
// those of one rail look as they did before there were more.
//
// A Reader never fails in the middle: it remembers the first fault, and reads zeros from then on.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "switch/protocol/control.h"

namespace slime::control {

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

}  // namespace slime::control
