// A test vector: what went in and out at one switch, and the job that it had. See README.md.
#pragma once

#include <string>
#include <vector>

#include "switch/core/job.h"
#include "test/support/pcap.h"

namespace slime::vectors {

struct Vector {
  std::string name;
  SocketAddress address;  // of the switch: shard 0
  uint32_t shards = 1;    // ports from there on
  net::JobSpec job;
  std::vector<test::CapturedPacket> packets;  // in the order in which they passed its port

  bool is_input(const test::CapturedPacket& packet) const { return shard_of(packet.to) < shards; }
  // `shards` and more: not this switch.
  uint32_t shard_of(const SocketAddress& end) const;
};

// The two files of a vector: NAME.pcap and NAME.job.
std::string print_job(const Vector& vector);
Result<Vector> parse_job(const std::string& name, const std::string& text);
Result<Vector> load_vector(const std::string& directory, const std::string& name);
bool save_vector(const std::string& directory, const Vector& vector);

// Names of all vectors in a directory, sorted.
std::vector<std::string> vector_names(const std::string& directory);

}  // namespace slime::vectors
