// The connection beside the fabric: a channel over the kernel's TCP between the same two ends.
//
// libfabric's endpoints without connections (FI_EP_RDM) do not report that a peer's process has
// ended, lose what was not read when they are closed, and take works from every process that has
// their address. The side connection makes up for that: it is a tcp channel, which refuses
// strangers and fails when the kernel reports the peer's end, and its messages arrive in order.
//
// A message is a head and up to kMaxWords words, each the immediate of a work without bytes.
//
// Threads: one at a time. What the kernel does not take at once waits here; poll() fails when more
// than kMostWaiting words wait. One poll() reads at most so many words.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/rail.h"

namespace slime::fabric {

enum class SideMessage : uint8_t {
  kHello = 1,      // a Hello
  kReady = 2,      // writes may come
  kReported = 3,   // the immediates of arrivals that poll() has returned
  kComplete = 4,   // how many works of this end are complete: two words, the lower half first
  kCancelled = 5,  // the immediates of works that were under way when this end closed
  kFailed = 6,     // this end has failed; it writes nothing more
  kEnd = 7,        // this end does not touch the peer's endpoint any more; nothing follows
  kWarm = 8,       // the first write of this end is complete
};

class SideConnection {
 public:
  static constexpr size_t kMaxWords = 511;
  static constexpr size_t kMostWaiting = 1 << 14;

  explicit SideConnection(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}

  ChannelAddress address() const { return channel_->address(); }
  Status connect(const ChannelAddress& peer) { return channel_->connect(peer); }
  std::string peer_name() const { return channel_->peer_name(); }
  bool silent_for(uint64_t ns) { return channel_->silent_for(ns); }
  const Error& failure() const { return failure_.what.empty() ? channel_->failure() : failure_; }

  // Longer lists become several messages.
  void send(SideMessage message, std::span<const uint32_t> words = {});
  bool all_sent() const { return waiting_.empty(); }

  // Sends what waits, and takes in what has come. Then next() returns each message that is whole;
  // its words stay until the next poll(). A failure is for good, once next() has returned all that
  // had come.
  Status poll();
  bool next(SideMessage* message, std::span<const uint32_t>* words);

 private:
  void send_waiting();
  size_t read();
  Status fail_with(const char* what);

  std::unique_ptr<Channel> channel_;
  std::deque<uint32_t> waiting_;
  std::vector<uint32_t> incoming_;  // until the next poll()
  std::vector<uint32_t> arrived_;
  Status status_ = Status::kOk;  // of the channel
  size_t taken_ = 0;             // of arrived_
  Error failure_;                // of this class; the channel has its own
};

// The description of an endpoint, which each end sends before anything goes over the fabric.
// Little-endian, no padding, moved with memcpy. The receiver checks all of it before use.
static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

inline constexpr uint32_t kMagic = 0x66696c73;  // "slif"
inline constexpr uint16_t kVersion = 2;
inline constexpr size_t kMaxName = 256;  // bytes, with a zero at the end

// Hello::flags
inline constexpr uint16_t kWantsConfirmations = 1;  // confirm_delivery at the sender of it

struct Hello {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t flags = 0;
  uint32_t name_bytes = 0;
  uint32_t reserved = 0;
  // Registered memory that any peer of the rail may write into, and read if the rail has reads.
  uint64_t scratch_address = 0, scratch_key = 0;
  // Of the endpoint. Zeros follow it, one at least: some providers' names are strings.
  std::array<std::byte, kMaxName> name = {};
};
static_assert(sizeof(Hello) == 32 + kMaxName);
static_assert(sizeof(Hello) / sizeof(uint32_t) <= SideConnection::kMaxWords);

inline std::span<const std::byte> name_in(const Hello& hello) {
  return std::span(hello.name).first(hello.name_bytes);
}

inline std::vector<uint32_t> pack(const Hello& hello) {
  std::vector<uint32_t> words(sizeof hello / sizeof(uint32_t));
  std::memcpy(words.data(), &hello, sizeof hello);
  return words;
}

// The error says what is wrong with a hello that no channel of ours can have sent.
inline Result<Hello> unpack(std::span<const uint32_t> words) {
  Hello hello;
  const bool whole = words.size_bytes() == sizeof hello;
  if (whole) std::memcpy(static_cast<void*>(&hello), words.data(), sizeof hello);
  const bool sound = whole && hello.magic == kMagic && hello.version == kVersion &&
                     hello.name_bytes >= 1 && hello.name_bytes < kMaxName;
  if (sound) {
    std::ranges::fill(std::span(hello.name).subspan(hello.name_bytes), std::byte{});
    return hello;
  }
  return fail(make_error(Status::kRemote, 0,
                         "the hello is not that of a libfabric channel (%zu bytes, magic 0x%x, "
                         "version %u, ours is %u); use the same libnet-slime on all hosts",
                         words.size_bytes(), hello.magic, hello.version, kVersion));
}

}  // namespace slime::fabric
