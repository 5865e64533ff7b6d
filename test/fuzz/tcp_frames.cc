// Frames of a tcp rail: whatever the stream says, only registered bytes are written, and only by
// whoever knows the key.
#include <algorithm>

#include "test/fuzz/support/stream.h"
#include "transports/tcp/frame_reader.h"

namespace slime::tcp {

class FrameBench {
 public:
  static constexpr size_t kRange = 5000, kGuard = 64, kMaxMessage = 100'000;

  explicit FrameBench(fuzz::Input& input)
      : input_(input), memory_(kRange + 2 * kGuard, std::byte{0xee}) {
    key_ = *regions_.add({range(), kRange});
    other_key_ = *regions_.add({other_.data(), other_.size()});
  }

  // False: the reader has given up.
  bool step() {
    switch (input_.below(5)) {
      case 0:
        stream_.say(input_.bytes(input_.below(256)));
        break;
      case 1:
        for (uint32_t i = input_.below(64); i > 0; --i) say_frame(FrameType::kAck, 0);
        break;
      default:
        say_write();
    }
    return read();
  }

  ~FrameBench() {
    stream_.hang_up();
    while (going_) (void)read();
  }

 private:
  std::byte* range() { return memory_.data() + kGuard; }

  FrameHeader header_of(FrameType type, uint32_t length) {
    FrameHeader header;
    header.type = static_cast<uint8_t>(type);
    header.length = length;
    header.immediate = input_.take<uint8_t>();
    header.remote_address = reinterpret_cast<uint64_t>(range()) + input_.take<uint16_t>() % 5100;
    header.remote_key = key_;
    const uint32_t damage = input_.below(32);
    if (damage == 1) header.remote_key ^= uint64_t{1} << input_.below(64);
    if (damage == 2) header.remote_address -= input_.take<uint16_t>();
    if (damage == 3) header.length = input_.take<uint32_t>();
    if (damage == 4) header.remote_key = other_key_;
    return header;
  }
  void say_frame(FrameType type, uint32_t length) {
    const FrameHeader header = header_of(type, length);
    stream_.say(fuzz::bytes_of(header));
  }
  void say_write() {
    const uint32_t length = input_.take<uint16_t>() % (kRange + 10);
    say_frame(FrameType::kWrite, length);
    const std::vector<std::byte> payload(length, std::byte{0x55});
    stream_.say(std::span(payload).first(length - input_.below(2) * length / 2));
  }

  bool read() {
    std::array<Done, 64> done;
    size_t count = 0;
    const size_t room = input_.below(64) + 1;
    const uint32_t before = reader_.arrived();
    const bool going = reader_.read(stream_.theirs.get(), std::span(done).first(room), &count);
    FUZZ_CHECK(count <= room && reader_.arrived() == before + count);
    FUZZ_CHECK(going == (reader_.fault().kind == ReadFault::Kind::kNone));
    for (size_t i = 0; i < count; ++i) {
      FUZZ_CHECK(done[i].kind == Done::Kind::kArrived && done[i].bytes <= kRange);
    }
    const auto untouched = [](std::byte b) { return b == std::byte{0xee}; };
    FUZZ_CHECK(std::all_of(memory_.begin(), memory_.begin() + kGuard, untouched));
    FUZZ_CHECK(std::all_of(memory_.end() - kGuard, memory_.end(), untouched));
    return going_ = going;
  }

  fuzz::Input& input_;
  bool going_ = true;
  fuzz::Stream stream_;
  std::vector<std::byte> memory_, other_ = std::vector<std::byte>(kRange);
  RegionTable regions_;
  uint64_t key_ = 0, other_key_ = 0;
  FrameReader reader_{regions_, kMaxMessage};
};

SLIME_FUZZ_TARGET(tcp_frames, input) {
  FrameBench bench(input);
  while (!input.empty() && bench.step()) {
  }
}

}  // namespace slime::tcp
