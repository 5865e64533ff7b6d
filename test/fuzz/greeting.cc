// The listening end of the handshake with a visitor who may or may not have seen the handle.
#include "engine/greeting.h"

#include "engine/recv_comm.h"
#include "test/fuzz/support/fuzz_rail.h"
#include "test/fuzz/support/stream.h"

namespace slime {

SLIME_FUZZ_TARGET(greeting, input) {
  fuzz::ManualClock clock;
  const auto fabric = fuzz::fabric_of(2, clock);
  fuzz::Stream stream;
  Nonce nonce;
  nonce.fill(std::byte{0x77});
  const uint32_t dice = input.below(256);
  Greeting greeting(*fabric, *fabric->device(0), nonce,
                    {std::move(stream.theirs), *SocketAddress::parse("127.0.0.1:9")});
  bool knows = false;
  if (dice & 1) {
    Hello hello;
    hello.nonce = nonce;
    hello.rails.count = input.below(kMaxRails + 2);
    hello.rails.cards.fill(cards_of(fabric->device(0)->rails()).cards[0]);
    const auto card = input.bytes(input.below(sizeof(RailCard)));
    if (!card.empty()) std::memcpy(&hello.rails.cards[0], card.data(), card.size());
    hello.eager_max = input.take<uint32_t>();
    const auto name = input.bytes(hello.name.size());
    if (!name.empty()) std::memcpy(hello.name.data(), name.data(), name.size());
    stream.say(fuzz::bytes_of(hello));
    knows = true;
  }
  if (dice & 2) {
    Confirm confirm;
    const auto side = input.bytes(sizeof confirm.side);
    if (!side.empty()) std::memcpy(&confirm.side, side.data(), side.size());
    stream.say(fuzz::bytes_of(confirm));
    if (dice & 4) stream.say(fuzz::bytes_of(Ready()));
  }
  Status status = Status::kAgain;
  while (status == Status::kAgain && !input.empty()) {
    status = greeting.step();
    stream.say(input.bytes(input.below(200) + 1));
    (void)stream.hear();
  }
  if (status == Status::kAgain) status = greeting.step();
  FUZZ_CHECK(knows || !greeting.proven());  // 128 bits are not guessed
  if (status == Status::kOk) {
    const auto comm = greeting.take();
    FUZZ_CHECK(comm != nullptr);
    (void)comm->progress();
    return;
  }
  if (status == Status::kAgain) {
    clock.pass(3'600'000'000'000);
    status = greeting.step();
    FUZZ_CHECK(status == Status::kTimeout);
  }
  for (const char c : greeting.error().what) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace slime
