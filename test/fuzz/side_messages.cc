// The connection beside a libfabric endpoint: whatever words a peer sends, messages are whole, a
// hello is sound, and no work is sent twice.
#include <algorithm>
#include <array>

#include "test/fuzz/support/fuzz_rail.h"
#include "test/fuzz/support/target.h"
#include "transports/fabric/side_connection.h"
#include "transports/fabric/window.h"

namespace slime::fabric {

class SideMessageBench {
 public:
  explicit SideMessageBench(fuzz::Input& input) : input_(input) {
    for (uint32_t i = input_.below(kPlaces + 1); i > 0; --i) add_work();
  }

  // False: the side connection has failed.
  bool step() {
    switch (input_.below(6)) {
      case 0:
        hear(input_.take<uint32_t>());
        break;
      case 1:
        hear_message();
        break;
      case 2:
        hear_hello();
        break;
      case 3:
        side_connection_.send(static_cast<SideMessage>(input_.below(6) + 1), words());
        break;
      case 4:
        complete_work();
        break;
      default:
        wire_.dead = input_.below(32) == 31;
    }
    return listen();
  }

 private:
  static constexpr uint32_t kPlaces = 16, kImmediates = 4;

  void hear(uint32_t word) {
    const uint64_t bytes = input_.below(64) == 63 ? 1 : 0;
    wire_.arrivals.push_back({.kind = Done::Kind::kArrived, .immediate = word, .bytes = bytes});
  }
  std::vector<uint32_t> words() {
    std::vector<uint32_t> words(input_.below(8));
    for (uint32_t& word : words) word = input_.below(2 * kImmediates);
    return words;
  }
  void hear_message() {
    const uint32_t message = input_.below(6) + 1;
    const std::vector<uint32_t> said = words();
    hear(0x6c00'0000 | message << 16 | static_cast<uint32_t>(said.size() + input_.below(9) / 8));
    for (const uint32_t word : said) hear(word);
  }
  void hear_hello() {
    Hello hello;
    hello.name_bytes = input_.take<uint16_t>() % (kMaxName + 2);
    const auto name = input_.bytes(hello.name.size());
    std::copy(name.begin(), name.end(), hello.name.begin());
    std::vector<uint32_t> said = pack(hello);
    said[input_.below(static_cast<uint32_t>(said.size()))] ^= input_.take<uint8_t>();
    hear(0x6c01'0000 | static_cast<uint32_t>(said.size()));
    for (const uint32_t word : said) hear(word);
  }
  void add_work() {
    Work work;
    work.immediate = input_.below(kImmediates);
    work.cookie = contexts_.size();
    contexts_.push_back(window_.add(work));
    sent_.push_back(false);
  }
  void complete_work() {
    if (contexts_.empty()) return;
    (void)window_.complete(contexts_[input_.below(static_cast<uint32_t>(contexts_.size()))]);
  }

  bool listen() {
    const Status status = side_connection_.poll();
    SideMessage message = SideMessage::kHello;
    std::span<const uint32_t> said;
    while (side_connection_.next(&message, &said)) {
      FUZZ_CHECK(message >= SideMessage::kHello && message <= SideMessage::kEnd);
      FUZZ_CHECK(said.size() <= SideConnection::kMaxWords);
      if (message == SideMessage::kHello) check_hello(said);
      if (message == SideMessage::kReported && !window_.report(said)) return false;
      take_sent();
    }
    FUZZ_CHECK(status == Status::kOk || !side_connection_.failure().what.empty());
    return status == Status::kOk;
  }
  static void check_hello(std::span<const uint32_t> said) {
    const auto hello = unpack(said);
    if (!hello) return;
    FUZZ_CHECK(!name_in(*hello).empty() && name_in(*hello).size() < kMaxName);
    FUZZ_CHECK(hello->name[hello->name_bytes] == std::byte{});
    FUZZ_CHECK(unpack(pack(*hello)));
  }
  void take_sent() {
    std::array<Done, kPlaces> done;
    for (size_t i = window_.take(done); i > 0; --i) {
      const uint64_t cookie = done[i - 1].cookie;
      FUZZ_CHECK(cookie < sent_.size() && !sent_[cookie]);
      sent_[cookie] = true;
    }
    FUZZ_CHECK(window_.room() <= kPlaces);
  }

  fuzz::Input& input_;
  fuzz::Wire wire_;
  SideConnection side_connection_{std::make_unique<fuzz::FuzzChannel>(wire_)};
  Window window_{kPlaces, true};
  std::vector<void*> contexts_;
  std::vector<bool> sent_;
};

SLIME_FUZZ_TARGET(side_messages, input) {
  SideMessageBench bench(input);
  while (!input.empty() && bench.step()) {
  }
}

}  // namespace slime::fabric
