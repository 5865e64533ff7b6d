// One control connection between rank 0's coordinator and a rank, once they have met
// (rendezvous.h): framed JSON, non-blocking. Everything that arrives is validated: magic, type,
// length, JSON.
//
// States: open -> ended or broken, which is final; why() has the reason. Memory: one frame of at
// most limits.bytes that is arriving, and what is queued. Threads: one call at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"
#include "base/net/socket.h"

namespace slime::rendezvous {

enum class FrameType : uint32_t {
  kPart = 4,       // rank -> coordinator: my part of exchange number k
  kWhole = 5,      // coordinator -> ranks: the parts of all
  kHeartbeat = 6,  // both ways
  kFailure = 7,    // rank -> coordinator: I cannot go on
  kVerdict = 8,    // coordinator -> ranks: the run is over, and why
  kFarewell = 9,   // rank -> coordinator: I am done
};

// The longest sentence about a run: it may have a line for each rank.
inline constexpr size_t kMostVerdict = 1 << 18;

// The value of a key where it is what it should be. What is printed of it goes through displayed().
std::string text_in(const nlohmann::json& body, const char* key);
int64_t number_in(const nlohmann::json& body, const char* key, int64_t missing);
// The texts in an array, as they are displayed; what else is in it is left out.
nlohmann::json texts_of(const nlohmann::json& list);

inline constexpr uint32_t kFrameMagic = 0x46504c53;  // "SLPF"
struct FrameHeader {
  uint32_t magic;
  uint32_t type;
  uint32_t bytes;
};

struct Frame {
  FrameType type{};
  nlohmann::json body;
};

// Large enough for the parts of 1024 ranks.
inline constexpr size_t kMaxFrameBytes = 64 << 20;
// Of what one of `ranks` ranks sends. All parts together fit into a frame, in one more array; and a
// rank that sends as much as it can does not keep the coordinator from the others for long.
constexpr JsonLimits part_limits(size_t ranks) {
  return {.bytes = std::clamp<size_t>(kMaxFrameBytes / ranks, 64 << 10, 4 << 20), .nesting = 32};
}

class Connection {
 public:
  explicit Connection(Fd fd, const JsonLimits& limits = {.bytes = kMaxFrameBytes})
      : fd_(std::move(fd)), limits_(limits) {}

  int fd() const { return fd_.get(); }

  void queue(FrameType type, const nlohmann::json& body);
  bool has_output() const { return sent_ < out_.size(); }

  // Send what the socket takes, and receive what it has. False: the connection ended or broke, and
  // why() has the reason.
  bool flush();
  bool receive(std::vector<Frame>* frames);
  const std::string& why() const { return why_; }

 private:
  bool parse(std::vector<Frame>* frames);
  bool fail_with(std::string why);

  Fd fd_;
  const JsonLimits limits_;  // of a body
  std::string in_, out_;
  size_t sent_ = 0;
  std::string why_;
};

}  // namespace slime::rendezvous
