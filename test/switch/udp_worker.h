// A worker as bare as can be: a UDP socket that speaks SAP/2. Every wait has a deadline.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/socket.h"
#include "switch/protocol/sap.h"
#include "switch/softswitch/softswitch.h"

namespace slime::net::test {

inline constexpr int kPatienceMs = 60'000;  // until something that must come is missing
inline constexpr int kQuietMs = 30;         // until something that must not come counts as absent
inline constexpr int kResendMs = 50;
inline constexpr uint32_t kToken = 0x70c3;  // of jobs that no controller made

inline uint64_t now_ms() { return SteadyClock::instance().now_ns() / 1'000'000; }

struct Packet {
  sap::Header header;
  std::vector<uint32_t> words;
  SocketAddress from;
};

using Words = std::vector<uint32_t>;

inline std::vector<std::byte> encode_packet(const sap::Header& header, const Words& words) {
  std::vector<std::byte> bytes(sap::kHeaderBytes + 4 * words.size());
  sap::encode(header, bytes.data());
  for (size_t i = 0; i < words.size(); ++i) {
    sap::wire::put32(bytes.data() + sap::kHeaderBytes + 4 * i, words[i]);
  }
  return bytes;
}

class Worker {
 public:
  explicit Worker(const SwitchShape& shape, const char* local = "127.0.0.1") : shape_(shape) {
    const SocketAddress address = SocketAddress::parse(local).value();
    socket_ = Fd(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(socket_.get(), address.data(), address.size()), 0);
    EXPECT_TRUE(set_buffers(socket_, 1 << 20));
    address_ = local_address(socket_).value();
  }

  const SocketAddress& address() const { return address_; }
  int fd() const { return socket_.get(); }
  void be(uint16_t job, uint8_t generation, uint8_t child, uint32_t token = kToken) {
    job_ = job;
    generation_ = generation;
    token_ = token;
    child_ = child;
  }
  void close() { socket_.reset(); }

  sap::Header header(sap::Type type, uint16_t slot, uint32_t epoch, size_t lanes) const {
    sap::Header header;
    header.type = type;
    header.job = job_;
    header.generation = generation_;
    header.token = token_;
    header.child = child_;
    header.slot = slot;
    header.epoch = epoch;
    header.lanes = static_cast<uint16_t>(lanes);
    return header;
  }

  void send_bytes(const std::vector<std::byte>& bytes, uint32_t shard = 0) {
    SocketAddress to = shape_.address;
    to.set_port(static_cast<uint16_t>(to.port() + shard));
    (void)sendto(socket_.get(), bytes.data(), bytes.size(), 0, to.data(), to.size());
  }
  void send(const sap::Header& header, const Words& words) {
    send_bytes(encode_packet(header, words), header.slot % shape_.shards);
  }
  void contribute(uint16_t slot, uint32_t epoch, const Words& words) {
    sap::Header own = header(sap::Type::kContribution, slot, epoch, words.size());
    for (const uint32_t word : words) own.check += word;
    own.cookie = 0xC0FFEE;
    send(own, words);
  }
  void query(uint16_t slot, uint32_t epoch) { send(header(sap::Type::kQuery, slot, epoch, 0), {}); }

  std::optional<Packet> receive(int limit_ms = kPatienceMs) {
    pollfd ready{socket_.get(), POLLIN, 0};
    if (poll(&ready, 1, limit_ms) != 1) return std::nullopt;
    std::vector<std::byte> bytes(sap::kMaxPacketBytes);
    sockaddr_in6 name{};
    socklen_t name_bytes = sizeof name;
    const ssize_t count = recvfrom(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT,
                                   reinterpret_cast<sockaddr*>(&name), &name_bytes);
    if (count < 0) return std::nullopt;
    bytes.resize(static_cast<size_t>(count));
    Packet packet;
    packet.from =
        SocketAddress::from_sockaddr(reinterpret_cast<sockaddr*>(&name), name_bytes).value();
    EXPECT_EQ(sap::decode(bytes, &packet.header), sap::Fault::kNone);
    for (size_t at = sap::kHeaderBytes; at + 4 <= bytes.size(); at += 4) {
      packet.words.push_back(sap::wire::get32(bytes.data() + at));
    }
    return packet;
  }
  bool hears_nothing() { return !receive(kQuietMs).has_value(); }

  // Skips what belongs to other rounds: answers to what was sent twice.
  std::optional<Packet> result(uint16_t slot, uint32_t epoch, int limit_ms = kPatienceMs) {
    const uint64_t end = now_ms() + static_cast<uint64_t>(limit_ms);
    for (uint64_t now = now_ms(); now <= end; now = now_ms()) {
      auto packet = receive(static_cast<int>(end - now));
      if (!packet) continue;
      const bool is_result = packet->header.type == sap::Type::kResult ||
                             packet->header.type == sap::Type::kResultAgain;
      if (is_result && packet->header.slot == slot && packet->header.epoch == epoch) return packet;
    }
    return std::nullopt;
  }

 private:
  SwitchShape shape_;
  Fd socket_;
  SocketAddress address_;
  uint16_t job_ = 0;
  uint8_t generation_ = 0;
  uint8_t child_ = 0;
  uint32_t token_ = 0;
};

inline SoftSwitchOptions options_on(const char* address = "127.0.0.1") {
  SoftSwitchOptions options;
  options.address = SocketAddress::parse(address).value();
  options.shards = 2;
  options.max_lanes = 256;
  options.slot_bytes = 64 << 20;
  return options;
}

inline std::unique_ptr<SoftSwitch> open_switch(const SoftSwitchOptions& options = options_on()) {
  auto opened = SoftSwitch::open(options);
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().what);
  return opened ? std::move(*opened) : nullptr;
}

// A switch's job and its workers.
struct Team {
  JobSpec spec;
  std::vector<Worker> workers;

  Team(SoftSwitch& soft, uint32_t children, uint16_t job = 1, const char* local = "127.0.0.1") {
    spec.job = job;
    spec.generation = 7;
    spec.token = kToken;
    spec.slots = 8;
    spec.max_lanes = soft.shape().max_lanes;
    for (uint32_t child = 0; child < children; ++child) {
      workers.emplace_back(soft.shape(), local);
      workers.back().be(job, spec.generation, static_cast<uint8_t>(child));
      spec.children.push_back(workers.back().address());
    }
  }
  void join(SoftSwitch& soft) {
    const auto added = soft.add_job(spec);
    ASSERT_TRUE(added) << (added ? "" : added.error().what);
  }
};

// What child `child` contributes; different for every slot, round and lane.
inline Words words_of(uint32_t child, uint16_t slot, uint32_t epoch, size_t lanes) {
  Words words(lanes);
  for (size_t i = 0; i < lanes; ++i) {
    words[i] = (child + 1) * 2654435761u + slot * 40503u + epoch * 97u + static_cast<uint32_t>(i);
  }
  return words;
}

inline Words sum_of(uint32_t children, uint16_t slot, uint32_t epoch, size_t lanes) {
  Words sum(lanes, 0);
  for (uint32_t child = 0; child < children; ++child) {
    const Words words = words_of(child, slot, epoch, lanes);
    for (size_t i = 0; i < lanes; ++i) sum[i] += words[i];
  }
  return sum;
}

// One round of one slot. `resend_ms`: when whoever has no result sends again; without it nobody
// does, and no late answer disturbs what follows.
inline void run_round(std::vector<Worker>& workers, uint16_t slot, uint32_t epoch, size_t lanes,
                      int resend_ms = kPatienceMs) {
  const auto all = static_cast<uint32_t>(workers.size());
  const Words expected = sum_of(all, slot, epoch, lanes);
  std::vector<bool> has(all, false);
  const uint64_t end = now_ms() + kPatienceMs;
  for (uint32_t held = 0; held < all && now_ms() < end;) {
    for (uint32_t i = 0; i < all; ++i) {
      if (!has[i]) workers[i].contribute(slot, epoch, words_of(i, slot, epoch, lanes));
    }
    for (uint32_t i = 0; i < all; ++i) {
      if (has[i]) continue;
      const auto packet = workers[i].result(slot, epoch, resend_ms);
      if (!packet) continue;
      ASSERT_EQ(packet->words, expected) << "worker " << i << " slot " << slot << " " << epoch;
      has[i] = true;
      ++held;
    }
  }
  for (uint32_t i = 0; i < all; ++i) ASSERT_TRUE(has[i]) << "no result for worker " << i;
}

}  // namespace slime::net::test
