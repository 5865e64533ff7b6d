// The plain loop over one TCP connection.
//
//   initiator                           target
//     header {bytes, write}, bytes -->    reads them to their place
//                                  <--  8 bytes: they are there
//     header {bytes, read}         -->
//                                  <--  bytes
//     header {0, end}              -->    serve() returns
#pragma once

#include "base/net/socket.h"
#include "tools/perf/p2p/plain.h"

namespace slime::perf::p2p {

class PlainTcp final : public PlainLoop {
 public:
  // `address`: the target listens there.
  static Result<std::unique_ptr<PlainLoop>> open(bool initiator, std::span<std::byte> memory,
                                                 const std::string& address);

  nlohmann::json name() const override;
  Result<void> connect(const nlohmann::json& other) override;
  std::span<const uint64_t> ways() const override;
  Requests requests(const Layout& layout, Operation operation, uint64_t most_a_call) override;
  Result<void> end(Operation operation) override;
  Result<void> serve(const Layout& layout, Operation operation) override;

 private:
  PlainTcp(Fd listener, std::span<std::byte> memory)
      : listener_(std::move(listener)), memory_(memory) {}
  Result<Fd> dial(const SocketAddress& target) const;
  Result<Fd> accept() const;

  const Fd listener_;  // of the target
  const std::span<std::byte> memory_;
  Fd fd_;
};

}  // namespace slime::perf::p2p
