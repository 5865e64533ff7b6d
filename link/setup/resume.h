// A lifeline over TCP (link/lifeline): the connecting end of a link dials the listener again, with
// a hello that names the link.
//
//   active end                       listener
//     Hello of type kResume  -->     asks its owner for the link
//                   <-- Resumed      known, or not: then the link is over for both; reset while
//                                    the handshake of that link is under way here
//     frames                <-->     frames
//
// Threads: that of accept() until LinkOwner::resume(), then that of the link.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "link/lifeline/stream.h"
#include "link/setup/handshake.h"

namespace slime {

// The listener's answer to a Hello of type kResume.
struct Resumed {
  Preamble preamble{kMagic, kProtocolVersion, static_cast<uint16_t>(MessageType::kResumed)};
  uint32_t known = 0;
};

// Frames over a connected socket. What the socket has not taken waits here; more than kMostWaiting
// bytes break the stream.
class TcpLifelineStream final : public LifelineStream {
 public:
  static constexpr size_t kMostWaiting = 4 << 20;

  explicit TcpLifelineStream(Fd fd) : fd_(std::move(fd)) {}
  void send(const LifelineHeader& header, std::span<const std::byte> payload) override;
  Status receive(LifelineHeader* header, std::span<const std::byte>* payload,
                 Error* error) override;

 private:
  Status flush(Error* error);

  const Fd fd_;
  std::vector<std::byte> waiting_;
  LifelineHeader header_;
  size_t header_done_ = 0, payload_done_ = 0;
  std::vector<std::byte> payload_;
};

// Dials for the link with this id at the listener with this address and nonce.
std::unique_ptr<LifelineDialer> make_lifeline_dialer(const Clock& clock,
                                                     const SocketAddress& listener,
                                                     const Nonce& nonce, const LinkId& link);

}  // namespace slime
