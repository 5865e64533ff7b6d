// The plain loop over one TCP connection.
//
//   initiator                           target
//     the target's nonce           -->    takes no other caller
//     header {bytes, write}, bytes -->    reads them to their place
//                                  <--  8 bytes: they are there
//     header {bytes, read}         -->
//                                  <--  bytes
//     header {0, end}              -->    serve() returns
#pragma once

#include "base/net/socket.h"
#include "base/random.h"
#include "devices/devices.h"
#include "tools/perf/p2p/plain.h"

namespace slime::perf::p2p {

class PlainTcp final : public PlainLoop {
 public:
  // The target listens at the address of the first rail, within NCCL_SLIME_PORTS.
  static Result<std::unique_ptr<PlainLoop>> open(const Options& options, bool initiator,
                                                 std::span<std::byte> memory, Devices& devices);

  nlohmann::json name() const override;
  std::span<const uint64_t> ways() const override;
  Requests requests(const Layout& layout, uint64_t most_a_call) override;
  Result<void> end() override;
  Result<void> serve() override;

 private:
  PlainTcp(Operation operation, Fd listener, const Nonce& nonce, std::span<std::byte> memory)
      : operation_(operation), listener_(std::move(listener)), nonce_(nonce), memory_(memory) {}
  Result<void> connect_to(const nlohmann::json& other) override;
  Result<void> dial(const SocketAddress& target, Nonce nonce);
  Result<void> accept();

  const Operation operation_;
  const Fd listener_;  // of the target
  const Nonce nonce_;  // of the target
  const std::span<std::byte> memory_;
  Fd fd_;
};

}  // namespace slime::perf::p2p
