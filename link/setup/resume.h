// A lifeline over TCP (link/lifeline): the connecting end of a link dials the listener again, with
// a hello that names the link.
//
//   active end                       listener
//     Hello of type kResume  -->     asks its owner for the link
//                   <-- Resumed      known, or not: then the link is over for both
//     frames                <-->     frames
//
// Thread: that of the link, after the listener's for the first step.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "link/lifeline/stream.h"
#include "link/setup/handshake.h"

namespace slime {

// The listening end of the answer.
struct Resumed {
  Preamble preamble{kMagic, kProtocolVersion, static_cast<uint16_t>(MessageType::kResumed)};
  uint32_t known = 0;
};

// Frames over a connected socket. What the socket does not take waits here: kMostWaiting bytes.
class TcpLifelineStream final : public LifelineStream {
 public:
  static constexpr size_t kMostWaiting = 4 << 20;

  explicit TcpLifelineStream(Fd fd) : fd_(std::move(fd)) {}
  void send_bytes(std::span<const std::byte> bytes);  // ahead of the first frame
  void send(const LifelineHeader& header, std::span<const std::byte> payload) override;
  Status receive(LifelineHeader* header, std::span<const std::byte>* payload,
                 Error* error) override;

 private:
  Status flush(Error* error);

  const Fd fd_;
  std::vector<std::byte> waiting_;
  size_t sent_ = 0;  // of waiting_
  LifelineHeader header_;
  size_t header_done_ = 0, payload_done_ = 0;
  std::vector<std::byte> payload_;
};

// Of the link `link` at the listener with this address and nonce.
std::unique_ptr<LifelineDialer> make_lifeline_dialer(const Clock& clock, double answer_seconds,
                                                     const SocketAddress& listener,
                                                     const Nonce& nonce, const LinkId& link);

}  // namespace slime
