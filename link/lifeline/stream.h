// A connection beside the rails of a link, which carries its control works while no rail is up, and
// where the active end gets one. link/setup/resume.h has both over TCP; tests have simulated ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"

namespace slime {

// Begins each frame; `bytes` of payload follow. In host order, as all that links say to each other.
struct LifelineHeader {
  enum Kind : uint16_t {
    kTaken,    // says only how many frames were taken; not counted itself
    kAlive,    // asks for such an answer
    kControl,  // a control work
  };
  static constexpr uint32_t kMostBytes = 8192;

  // Frames of the other end on this connection, without kTaken, that this one has taken so far,
  // modulo 2^32.
  uint32_t taken = 0;
  uint16_t kind = kTaken;
  uint16_t bytes = 0;      // payload, for the inbox of the end that gets it
  uint32_t offset = 0;     // where it belongs there
  uint32_t immediate = 0;  // of the control work
};

// Reliable and in order, until it breaks for good. Thread: that of the link.
class LifelineStream {
 public:
  virtual ~LifelineStream() = default;
  // Sends a copy of the frame, now or with the next receive(). If the stream has broken, that says
  // so.
  virtual void send(const LifelineHeader& header, std::span<const std::byte> payload) = 0;
  // kOk: the next frame; its payload is valid until the next call. kAgain: none has come. Anything
  // else: the stream has broken, and *error says why.
  virtual Status receive(LifelineHeader* header, std::span<const std::byte>* payload,
                         Error* error) = 0;
};

// Connects to the end that listened, again and again. Thread: that of the link.
class LifelineDialer {
 public:
  virtual ~LifelineDialer() = default;
  // kOk: *stream is connected. kAgain: not yet. Anything else is final: the peer does not have this
  // link any more.
  virtual Status dial(std::unique_ptr<LifelineStream>* stream, Error* error) = 0;
  // Gives a try that is under way up; dial() begins another.
  virtual void stop() = 0;
  // Why the last try failed; "": it has not.
  virtual std::string last_failure() const = 0;
};

}  // namespace slime
