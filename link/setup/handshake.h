// The handshake that makes a link of two ends: four messages over a control connection. No call
// blocks.
//
//   connector                          listener
//     Hello   nonce, link,         -->            the nonce proves that it knows the address
//             rails, words
//             <--  Welcome   words, rails, channels, addresses, inbox
//     (connects its channels)
//     Confirm addresses, inbox     -->
//                                                 (connects its channels)
//     Ready   connected channels   <-->  Ready
//     (both use the channels that are connected at both)
//
// The words are those of the owners of the link (link_owner.h).
// Messages have a fixed size and are in host order; the magic number shows another byte order. The
// connection ends with the handshake. From then on the rails show whether the peer works; resume.h
// has the hello of a link that has none left.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/net/socket.h"
#include "base/random.h"
#include "link/setup/rail_description.h"
#include "link/setup/setup.h"

namespace slime {

inline constexpr uint32_t kMagic = 0x534c494d;  // "SLIM"
inline constexpr uint16_t kProtocolVersion = 12;

enum class MessageType : uint16_t { kHello = 1, kWelcome, kConfirm, kReady, kResume, kResumed };

struct Preamble {
  uint32_t magic = kMagic;
  uint16_t version = kProtocolVersion;
  uint16_t type = 0;
};

struct Hello {
  Preamble preamble{kMagic, kProtocolVersion, static_cast<uint16_t>(MessageType::kHello)};
  Nonce nonce = {};
  LinkId link = {};  // drawn by the connector; of type kResume: which link
  OwnerWords words = {};
  std::array<char, 96> name = {};  // host and process, for people
  RailDescriptions rails;
};

// One end's side of the channels, which the other end needs to connect to it.
struct Side {
  uint64_t inbox_address = 0;
  std::array<uint64_t, kMaxRails> inbox_keys = {};
  std::array<ChannelAddress, kMaxRails> channels = {};
};

struct Welcome {
  Preamble preamble{kMagic, kProtocolVersion, static_cast<uint16_t>(MessageType::kWelcome)};
  uint32_t channels = 0;  // 0: the peer is refused, and `reason` says why
  OwnerWords words = {};
  std::array<char, 96> name = {};
  std::array<char, 512> reason = {};
  RailDescriptions rails;
  std::array<RailPair, kMaxRails> pairs = {};  // of the channels
  Side side;
};

struct Confirm {
  Preamble preamble{kMagic, kProtocolVersion, static_cast<uint16_t>(MessageType::kConfirm)};
  Side side;
};

struct Ready {
  Preamble preamble{kMagic, kProtocolVersion, static_cast<uint16_t>(MessageType::kReady)};
  uint32_t connected = 0;  // a bit for each channel that is connected at this end
};

// The contents of a LinkAddress.
struct AddressFields {
  Preamble preamble;
  Nonce nonce = {};
  SocketAddress::Wire address = {};
  // host and process, for people; cut at its end
  std::array<char, 60> name = {};
};
static_assert(sizeof(AddressFields) == sizeof(LinkAddress));

template <typename T>
using HandshakeMessage = ControlMessage<T>;

// "host:pid": the name of this process in the errors of others.
std::array<char, 96> own_name();
// The name of a peer, with the address that it came from.
std::string peer_name(const std::array<char, 96>& name, const SocketAddress& address);
bool valid(const Preamble& preamble, MessageType type);
// The text that says why a preamble is not valid.
std::string describe_mismatch(const Preamble& preamble, MessageType expected);

}  // namespace slime
