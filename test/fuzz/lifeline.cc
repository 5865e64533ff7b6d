// The connection beside the rails of a link: whatever a peer sends over it, records stay inside the
// inbox, an owner hears of each work at most once, and the errors can be printed.
#include "link/lifeline/lifeline.h"

#include <vector>

#include "link/setup/resume.h"
#include "test/fuzz/support/fuzz_rail.h"
#include "test/fuzz/support/stream.h"

namespace slime {
namespace {

struct CountingOwner final : WorkOwner {
  void on_done(uint32_t part) override { hear(part); }
  void on_lost(uint32_t part) override { hear(part); }
  void hear(uint32_t part) {
    FUZZ_CHECK(part < heard.size() && !heard[part]);
    heard[part] = true;
  }
  std::vector<bool> heard;
};

RegisteredBuffer buffer(Device& device) {
  return std::move(*RegisteredBuffer::make(device, link_memory_bytes(4096, 2)));
}

}  // namespace

SLIME_FUZZ_TARGET(lifeline, input) {
  fuzz::ManualClock clock;
  const auto devices = fuzz::devices_of(2, clock);
  Device& device = *devices->device(0);
  LinkContext context(*devices, device, "peer", false, kNoTrafficClass, 0);
  const LinkMemory memory(buffer(device), buffer(device), {4096, 4096}, {});
  CountingOwner owner;
  Lifeline lifeline(context, memory, nullptr, 30'000'000'000);
  fuzz::Stream stream;
  lifeline.take(std::make_unique<TcpLifelineStream>(std::move(stream.theirs)), clock.now_ns());
  while (!input.empty() && context.status() == Status::kOk) {
    switch (input.below(5)) {
      case 0:
        stream.say(input.bytes(input.below(300)));
        break;
      case 1: {
        LifelineHeader header;
        header.taken = input.below(8);
        header.kind = static_cast<uint16_t>(input.below(4));
        header.bytes = static_cast<uint16_t>(input.below(64));
        header.offset = input.take<uint32_t>() >> input.below(32);
        header.immediate = input.take<uint32_t>() | (input.below(4) ? 3u << 30 : 0);
        stream.say(fuzz::bytes_of(header));
        stream.say(std::vector<std::byte>(header.bytes, std::byte{1}));
        break;
      }
      case 2:
        if (!lifeline.open()) break;
        owner.heard.push_back(false);
        lifeline.send(
            {ControlOp::kRetry, 1, &owner, static_cast<uint32_t>(owner.heard.size() - 1)});
        break;
      case 3:
        clock.pass(input.take<uint32_t>());
        (void)lifeline.progress(clock.now_ns());
        (void)stream.hear();
        break;
      default:
        while (const auto immediate = lifeline.next(clock.now_ns()))
          FUZZ_CHECK(is_control(*immediate));
    }
  }
  for (const char c : context.failure().what) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace slime
