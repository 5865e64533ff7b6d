// slime-perf's control connection: framed JSON from whoever connects.
#include "rendezvous/frames.h"
#include "test/fuzz/support/stream.h"

namespace slime::rendezvous {

SLIME_FUZZ_TARGET(perf_wire, input) {
  const size_t piece = input.below(200) + 1;
  const auto all = input.bytes(16 << 10);
  fuzz::Stream stream;
  Connection wire(std::move(stream.theirs));
  std::vector<Frame> frames;
  bool going = true;
  for (size_t at = 0; going && at < all.size(); at += piece) {
    stream.say(all.subspan(at, std::min(piece, all.size() - at)));
    going = wire.receive(&frames);
  }
  FUZZ_CHECK(going == wire.why().empty());
  for (const Frame& frame : frames) {
    (void)text_in(frame.body, "host");
    (void)number_in(frame.body, "rank", -1);
    wire.queue(frame.type, frame.body);
  }
  (void)wire.flush();
}

}  // namespace slime::rendezvous
