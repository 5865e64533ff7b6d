// Frames of a tcp rail. Whatever the stream says, the rail writes and reads only registered bytes,
// and only for a frame that has their key.
#include <algorithm>

#include "test/fuzz/support/stream.h"
#include "transports/tcp/frames/frame_reader.h"

namespace slime::tcp {

class FrameBench {
 public:
  static constexpr size_t kRange = 5000, kGuard = 64, kMaxMessage = 100'000;
  static constexpr std::byte kSecret{0xee};  // around the ranges
  static constexpr uint32_t kTypes = static_cast<uint32_t>(FrameType::kList) + 1;  // 0 is unknown

  explicit FrameBench(fuzz::Input& input) : input_(input), memory_(kRange + 2 * kGuard, kSecret) {
    key_ = *regions_.add({range(), kRange});
    std::fill_n(other_.begin() + kGuard, kRange, std::byte{});
    register_readable();
  }

  // False: the reader has given up.
  bool step() {
    switch (input_.below(10)) {
      case 0:
        stream_.say(input_.bytes(input_.below(256)));
        break;
      case 1:
        for (uint32_t i = input_.below(64); i > 0; --i) say_frame(FrameType::kAck, 0);
        break;
      case 2:
        say_frame(static_cast<FrameType>(input_.below(kTypes)),
                  input_.below(2) ? 0 : input_.below(kRange));
        break;
      case 3:
        say_frame(FrameType::kRead, input_.take<uint16_t>() % kRange);
        break;
      case 4:
        say_payload(FrameType::kAnswer, input_.take<uint16_t>() % kRange);
        break;
      case 5:
        post_own();
        break;
      case 6:
        send();
        if (input_.below(8) == 0) renew_readable();
        break;
      case 7:
        if (!say_list()) return false;
        break;
      default:
        say_payload(input_.below(2) ? FrameType::kWrite : FrameType::kSilentWrite,
                    input_.take<uint16_t>() % (kRange + 10));
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
    std::byte* const start = type == FrameType::kRead ? other_.data() + kGuard : range();
    header.remote_address = reinterpret_cast<uint64_t>(start) + input_.take<uint16_t>() % 5100;
    header.flags = type == FrameType::kWrite && input_.below(2) ? kNeedsNoAck : 0;
    header.remote_key = type == FrameType::kRead ? other_key_ : key_;
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
  void say_payload(FrameType type, uint32_t length) {
    say_frame(type, length);
    const std::vector<std::byte> payload(length, std::byte{0x55});
    stream_.say(std::span(payload).first(length - input_.below(2) * length / 2));
  }
  FrameHeader listed_header() {
    FrameHeader header;
    header.type = static_cast<uint8_t>(FrameType::kSilentWrite);
    header.length = 1 + input_.take<uint8_t>();
    header.remote_address = reinterpret_cast<uint64_t>(range()) + input_.take<uint16_t>() % kRange;
    header.remote_key = key_;
    const uint32_t damage = input_.below(128);  // one would be enough for the whole list
    if (damage == 1) header.remote_key ^= uint64_t{1} << input_.below(64);
    if (damage == 2) header.remote_key = other_key_;
    if (damage == 3) header.length = 0;
    if (damage == 4) header.type = static_cast<uint8_t>(input_.below(kTypes));
    if (damage == 5) header.length = input_.take<uint16_t>();
    return header;
  }
  // In two parts, the second of which may be missing. False: the reader has given up on the first.
  bool say_list() {
    std::vector<FrameHeader> block(2 + input_.below(kMostListed + 1));  // one too many at most
    FrameHeader& head = block[0];
    head.type = static_cast<uint8_t>(FrameType::kList);
    head.immediate = static_cast<uint32_t>(block.size() - 1);
    for (FrameHeader& header : std::span(block).subspan(1)) {
      header = listed_header();
      head.length += header.length;
    }
    const size_t payload = head.length;
    const uint32_t damage = input_.below(32);
    if (damage == 1) ++head.length;
    if (damage == 2) --head.length;
    if (damage == 3) head.length = input_.take<uint32_t>();
    if (damage == 4) head.immediate = input_.take<uint8_t>();
    const auto headers = std::as_bytes(std::span(block));
    std::vector<std::byte> list(headers.begin(), headers.end());
    list.resize(list.size() + payload, std::byte{0x55});
    const size_t cut = input_.take<uint16_t>() % (list.size() + 1);
    stream_.say(std::span(list).first(cut));
    if (!read()) return false;
    if (input_.below(4) != 1) stream_.say(std::span(list).subspan(cut));
    return true;
  }
  // What is under way from there, and to come with the old key, is refused.
  void renew_readable() {
    FUZZ_CHECK(regions_.remove(other_key_));
    register_readable();
  }
  void register_readable() {
    MemoryRange readable{other_.data() + kGuard, kRange};
    readable.rights = kRemoteRead;
    other_key_ = *regions_.add(readable);
  }
  // What the other end may then acknowledge, refuse or answer.
  void post_own() {
    Work work;
    work.opcode = static_cast<Opcode>(input_.below(3));
    work.local = range();
    work.local_key = key_;
    work.length = input_.take<uint16_t>() % kRange;
    if (work.opcode != Opcode::kRead) {
      if (queue_.room() > 0) queue_.append({&work, 1});
    } else if (reads_.room() > 0) {
      queue_.control().push(reads_.begin(work));
    }
  }
  void send() {
    const std::span<iovec> vectors = queue_.gather(reader_.arrived(), reader_.awaited(), true);
    FUZZ_CHECK(vectors.empty() == (queue_.gathered() == 0));
    queue_.moved(input_.below(2) ? queue_.gathered() : queue_.gathered() / 2);
    std::array<Done, 64> done;
    (void)queue_.take_sent(done);
    size_t asked = 0;
    if (queue_.control().empty() || answers_.mid_frame()) {
      const auto send = [&](std::span<iovec> vectors) {
        msghdr message{};
        message.msg_iov = vectors.data();
        message.msg_iovlen = vectors.size();
        return ::sendmsg(stream_.theirs.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      };
      (void)answers_.send(send, reader_.arrived(), queue_.control(), &asked);
    }
    const std::vector<std::byte> heard = stream_.hear();
    // A header may hold as many by chance.
    constexpr int kLeaked = kFrameHeaderBytes + 1;
    FUZZ_CHECK(std::search_n(heard.begin(), heard.end(), kLeaked, kSecret) == heard.end());
  }

  bool read() {
    std::array<Done, 64> done;
    size_t count = 0;
    const size_t room = input_.below(64) + 1;
    const uint32_t before = reader_.arrived();
    const bool going = reader_.read(stream_.theirs.get(), std::span(done).first(room), &count);
    FUZZ_CHECK(count <= room);
    size_t arrivals = 0;
    FUZZ_CHECK(going == (reader_.fault().kind == ReadFault::Kind::kNone));
    for (size_t i = 0; i < count; ++i) {
      arrivals += done[i].kind == Done::Kind::kArrived;
      FUZZ_CHECK(done[i].bytes <= kRange);
    }
    FUZZ_CHECK(reader_.arrived() - before >= arrivals);  // some are silent or refused
    (void)queue_.acknowledge(reader_.peer_ack());        // of whatever the stream says
    const auto untouched = [](std::byte b) { return b == kSecret; };
    FUZZ_CHECK(std::all_of(memory_.begin(), memory_.begin() + kGuard, untouched));
    FUZZ_CHECK(std::all_of(memory_.end() - kGuard, memory_.end(), untouched));
    return going_ = going;
  }

  fuzz::Input& input_;
  bool going_ = true;
  fuzz::Stream stream_;
  std::vector<std::byte> memory_, other_ = std::vector<std::byte>(kRange + 2 * kGuard, kSecret);
  RegionTable regions_;
  uint64_t key_ = 0, other_key_ = 0;
  SendQueue queue_{16, true, kMaxReads};
  Reads reads_{kMaxReads};
  Answers answers_{regions_, kMaxReads};
  FrameReader reader_{regions_, kMaxMessage, queue_, reads_, answers_};
};

SLIME_FUZZ_TARGET(tcp_frames, input) {
  FrameBench bench(input);
  while (!input.empty() && bench.step()) {
  }
}

}  // namespace slime::tcp
