// Frames of the control channel out of a stream, in any pieces: the same frames as from the whole.
#include "switch/protocol/frames.h"
#include "test/fuzz/support/stream.h"

#include <algorithm>

namespace slime::control {

// Takes the frames that are there; false: the stream is not to be read any more.
static bool take_frames(FrameReader& reader, const Fd& fd, std::span<const std::byte> all,
                        size_t* at) {
  Error error;
  for (;;) {
    const Status status = reader.read(fd, &error);
    if (status == Status::kAgain) return true;
    if (status == Status::kInvalid) {
      FUZZ_CHECK(!decode_header(all.subspan(*at, kHeaderBytes), kMaxRequestBytes));
      return false;
    }
    FUZZ_CHECK(status == Status::kOk || status == Status::kRemote);
    if (status != Status::kOk) return false;
    const auto frame = reader.frame();
    FUZZ_CHECK(frame.size() == kHeaderBytes + reader.header().payload_bytes + kMacBytes);
    FUZZ_CHECK(frame.size() <= kHeaderBytes + kMaxRequestBytes + kMacBytes);
    FUZZ_CHECK(std::ranges::equal(frame, all.subspan(*at, frame.size())));
    FUZZ_CHECK(reader.payload().size() == reader.header().payload_bytes);
    *at += frame.size();
    reader.next();
  }
}

SLIME_FUZZ_TARGET(control_frames, input) {
  const size_t piece = input.below(200) + 1;
  const auto all = input.bytes(16 << 10);
  const fuzz::Stream stream;
  FrameReader reader(kMaxRequestBytes);
  size_t at = 0;
  for (size_t sent = 0; sent < all.size(); sent += piece) {
    stream.say(all.subspan(sent, std::min(piece, all.size() - sent)));
    if (!take_frames(reader, stream.theirs, all, &at)) return;
  }
  stream.hang_up();
  FUZZ_CHECK(!take_frames(reader, stream.theirs, all, &at));
}

}  // namespace slime::control
