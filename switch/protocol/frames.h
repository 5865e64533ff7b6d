// Frames of the control channel: messages in bytes (codec.cc), and a connection's signatures and
// reading piece by piece (frames.cc).
//
// A frame: header (16 bytes), payload, MAC. The MAC is HMAC-SHA256 over direction, both nonces,
// tenant, header (with its sequence number) and payload: a frame is worth nothing on another
// connection, in another place, or in the other direction. Where no key is configured it is zeros.
//
// One description of each message serves both directions, so what is written is what is read. The
// decoders check everything that can be seen in the bytes alone: ranges, unknown values, bytes that
// are missing or left over.
//
// Thread rules: pure functions; an object belongs to one thread.
#pragma once

#include "base/hmac.h"
#include "switch/protocol/control.h"

namespace slime::control {

struct Header {
  Type type = Type::kHello;
  uint32_t sequence = 0;
  uint32_t payload_bytes = 0;
};

// A whole frame, with zeros for the MAC.
std::vector<std::byte> encode(const Message& message, uint32_t sequence);
// Checks everything that can be seen in the bytes alone; `max_payload` is the receiver's.
Result<Header> decode_header(std::span<const std::byte> bytes, size_t max_payload);
Result<Message> decode_payload(Type type, std::span<const std::byte> payload);

enum class Direction : uint8_t { kRequest = 1, kAnswer = 2 };

// Signs the frames of one connection, and checks signatures. It does not change: a connection
// without a key has one without a key, whose signatures are zeros.
class Signer {
 public:
  Signer() = default;  // no key
  Signer(const SecretKey& key, const std::string& tenant, const Nonce& client, const Nonce& server)
      : key_(key), tenant_(tenant), client_(client), server_(server) {}

  Result<void> sign(Direction direction, std::span<std::byte> frame) const;
  Result<bool> check(Direction direction, std::span<const std::byte> frame) const;

 private:
  Result<Mac> mac_of(Direction direction, std::span<const std::byte> signed_part) const;

  SecretKey key_;
  std::string tenant_;
  Nonce client_{}, server_{};
};

// Collects one frame at a time from a socket.
//
// States: nothing read (next() leads back to it), a part of the header, a part of the rest, or a
// whole frame. Memory beyond the header is taken only after a header that fits.
class FrameReader {
 public:
  explicit FrameReader(size_t max_payload) : max_payload_(max_payload) {}

  // kOk: a whole frame is there; kAgain: not yet; kInvalid: these bytes are no frame.
  Status read(const Fd& fd, Error* error);
  void next();  // the frame is done with
  bool begun() const { return done_ > 0; }
  const Header& header() const { return header_; }
  std::span<const std::byte> frame() const { return bytes_; }
  std::span<const std::byte> payload() const {
    return frame().subspan(kHeaderBytes, header_.payload_bytes);
  }

 private:
  const size_t max_payload_;
  Header header_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kHeaderBytes);
  size_t done_ = 0;
};

}  // namespace slime::control
