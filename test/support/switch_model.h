// What SAP/2 says a shard of a switch answers, written a second time from the protocol's table and
// as plainly as can be: it keeps every contribution and does the arithmetic when it answers, number
// by number. Fuzzing and packet traces compare it with the real one, bit by bit.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "switch/core/shard.h"

namespace slime::test {

struct Answer {
  std::vector<std::byte> bytes;
  std::vector<SocketAddress> to;
  bool operator==(const Answer&) const = default;
};

class SwitchModel {
 public:
  SwitchModel(uint32_t index, uint32_t count) : index_(index), count_(count) {}

  void add_job(const net::JobSpec& spec) { jobs_[spec.job] = {spec, {}}; }
  void remove_job(uint16_t job) { jobs_.erase(job); }
  void fence(uint16_t job, uint8_t generation, uint32_t token);
  std::vector<Answer> handle(std::span<const std::byte> datagram, const SocketAddress& from,
                             uint64_t now_ns);

 private:
  struct Packet {
    sap::Header header;
    std::vector<std::byte> payload;
  };
  struct Round {
    uint32_t epoch = 0;
    std::vector<Packet> contributions;  // in the order of their arrival
    std::optional<Packet> from_parent;
  };
  struct Job {
    net::JobSpec spec;
    std::map<std::pair<uint16_t, uint32_t>, Round> rounds;  // by slot and half
  };

  Round& round_of(Job& job, const sap::Header& header) const;
  std::optional<sap::Rejection> refusal(const Job& job, const sap::Header& header,
                                        const SocketAddress& from) const;
  std::optional<Answer> reject(sap::Rejection why, const Packet& packet, const SocketAddress& from,
                               uint64_t now_ns);
  std::optional<Answer> contribute(Job& job, const Packet& packet, const SocketAddress& from,
                                   uint64_t now_ns);
  std::vector<Answer> query(Job& job, const Packet& packet, const SocketAddress& from) const;
  std::optional<Answer> word_from_parent(const Job& job, const Packet& packet) const;
  std::optional<Answer> from_parent(Job& job, const Packet& packet) const;
  Answer values(const Job& job, const Round& round, const Packet& packet, bool to_all) const;
  SocketAddress child_at(const net::JobSpec& spec, size_t child, uint16_t slot) const;
  static Packet reduced(const Round& round);

  const uint32_t index_, count_;
  std::map<uint16_t, Job> jobs_;
  uint64_t second_began_ns_ = 0;
  uint32_t rejects_ = 0;
};

// Element by element, most significant byte first, in the width of `format`.
std::vector<std::byte> reduce_payloads(sap::Format format, sap::Op op,
                                       const std::vector<std::vector<std::byte>>& payloads);

}  // namespace slime::test
