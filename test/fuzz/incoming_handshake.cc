// The listening end of the handshake with a peer, and the hello of a caller who may not have seen
// the handle.
#include "link/setup/incoming_handshake.h"

#include "message/message_owner.h"
#include "message/recv_comm.h"
#include "test/fuzz/support/fuzz_rail.h"
#include "test/fuzz/support/stream.h"

namespace slime {

SLIME_FUZZ_TARGET(incoming_handshake, input) {
  fuzz::ManualClock clock;
  const auto devices = fuzz::devices_of(2, clock);
  fuzz::Stream stream;
  Nonce nonce;
  nonce.fill(std::byte{0x77});
  const uint32_t dice = input.below(256);
  Hello hello;
  if ((dice & 1) == 0) {
    const auto garbage = input.bytes(sizeof hello);
    if (!garbage.empty()) std::memcpy(static_cast<void*>(&hello), garbage.data(), garbage.size());
    FUZZ_CHECK(judge_hello(hello, nonce));  // 128 bits are not guessed
    return;
  }
  {
    hello.nonce = nonce;
    hello.rails.count = input.below(kMaxRails + 2);
    hello.rails.all.fill(describe_rails(devices->device(0)->rails()).all[0]);
    const auto description = input.bytes(input.below(sizeof(RailDescription)));
    if (!description.empty())
      std::memcpy(&hello.rails.all[0], description.data(), description.size());
    hello.words = MessageWords{.eager_max = input.take<uint32_t>()}.pack();
    if (dice >> 4 == 1) hello.words[0] ^= std::byte{2};
    const auto name = input.bytes(hello.name.size());
    if (!name.empty()) std::memcpy(hello.name.data(), name.data(), name.size());
    FUZZ_CHECK(!judge_hello(hello, nonce));
  }
  const MessageOwner owner(4096);
  IncomingHandshake incoming(*devices, *devices->device(0), hello, std::move(stream.theirs),
                             *SocketAddress::parse("127.0.0.1:9"), owner);
  if (dice & 2) {
    Confirm confirm;
    const auto side = input.bytes(sizeof confirm.side);
    if (!side.empty()) std::memcpy(&confirm.side, side.data(), side.size());
    stream.say(fuzz::bytes_of(confirm));
    Ready ready;
    ready.connected = dice & 8 ? 1 : ~uint32_t{0};
    if (dice & 4) stream.say(fuzz::bytes_of(ready));
  }
  Status status = Status::kAgain;
  while (status == Status::kAgain && !input.empty()) {
    status = incoming.step();
    stream.say(input.bytes(input.below(200) + 1));
    (void)stream.hear();
  }
  if (status == Status::kAgain) status = incoming.step();
  if (status == Status::kOk) {
    auto parts = incoming.take();
    FUZZ_CHECK(parts != nullptr);
    RecvCommImpl comm(*devices, *devices->device(0), std::move(*parts));
    (void)comm.progress();
    return;
  }
  if (status == Status::kAgain) {
    clock.pass(3'600'000'000'000);
    status = incoming.step();
    FUZZ_CHECK(status == Status::kTimeout);
  }
  for (const char c : incoming.error().what) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace slime
