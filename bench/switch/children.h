// All children of one job, played by one thread: each has a socket, and sends the next round of a
// slot as soon as it holds the answer to the last one. Whether a switch or an echo answers makes
// no difference to them.
#pragma once

#include <memory>
#include <vector>

#include "base/net/socket.h"
#include "switch/protocol/sap.h"

namespace slime::bench {

struct Load {
  uint32_t children = 1;
  uint32_t slots = 1;  // that each child has under way
  uint32_t lanes = 64;
  uint16_t job = 1;
  uint8_t generation = 1;
  uint32_t token = 0x70c3;
};

class Children {
 public:
  Children();
  ~Children();
  // nullptr, after a message: it failed.
  static std::unique_ptr<Children> open(const Load& load, const SocketAddress& local,
                                        uint64_t buffer_bytes);
  // Their addresses have been made known there.
  bool connect_to(const SocketAddress& server);
  std::vector<SocketAddress> addresses() const { return addresses_; }

  // Every child brings every slot through `rounds` rounds. False, after a message: an answer is
  // missing or wrong.
  bool run(uint32_t rounds);

 private:
  struct Child;

  bool receive(Child& child);
  bool take(Child& child, uint32_t index, uint32_t bytes);
  bool send(Child& child);
  bool wait();

  Load load_;
  uint32_t last_epoch_ = 0;  // at which a slot stops
  std::vector<std::unique_ptr<Child>> children_;
  std::vector<SocketAddress> addresses_;
  std::vector<std::byte> payload_;
  // What a child sends at once while there is more to come: as a worker that posts in batches, and
  // so that the other side is not kept busy with single packets.
  size_t burst_ = 1;
};

}  // namespace slime::bench
