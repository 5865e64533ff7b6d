// The receiving end of a link: the peer writes what it likes into our eager buffers and announces
// stripes, eager messages and control words that never were.
#include <algorithm>

#include "message/recv_comm.h"
#include "test/fuzz/support/fuzz_rail.h"
#include "test/fuzz/support/stream.h"

namespace slime {

class ReceiverBench {
 public:
  static constexpr size_t kRails = 2, kEagerMax = 128, kBytes = 300;

  explicit ReceiverBench(fuzz::Input& input)
      : input_(input), devices_(fuzz::devices_of(kRails, clock_)) {
    Device& device = *devices_->device(0);
    auto inbox = RegisteredBuffer::make(device, test::eager_memory_bytes(kEagerMax, kRails));
    auto outbox = RegisteredBuffer::make(device, test::cts_memory_bytes(kRails));
    FUZZ_CHECK(inbox && outbox);
    inbox_ = inbox->data();
    comm_ = std::make_unique<RecvCommImpl>(
        *devices_, device,
        fuzz::parts_of(wires_, false, kEagerMax, std::move(*inbox), std::move(*outbox)));
  }

  void step() {
    switch (input_.below(8)) {
      case 0:
        return write();
      case 1:
        return arrive(input_.take<uint32_t>(), input_.take<uint16_t>());
      case 2:
        return eager();
      case 3:
        return stripe();
      case 4:
        return receive();
      case 5:
        return complete();
      case 6:
        wires_[input_.below(kRails)].dead = true;
        return (void)comm_->progress();
      default:
        clock_.pass(uint64_t{input_.take<uint16_t>()} * 1'000);
        return test_all();
    }
  }

 private:
  struct Open {
    Request* request;
    std::vector<std::vector<std::byte>> buffers;
  };

  void write() {
    const size_t at = input_.take<uint16_t>() % test::eager_memory_bytes(kEagerMax, kRails);
    const auto bytes = input_.bytes(
        std::min<size_t>(input_.below(64), test::eager_memory_bytes(kEagerMax, kRails) - at));
    std::copy(bytes.begin(), bytes.end(), inbox_ + at);
  }
  void arrive(uint32_t immediate, uint64_t bytes) {
    wires_[input_.below(kRails)].arrivals.push_back(
        {.kind = Done::Kind::kArrived, .immediate = immediate, .bytes = bytes, .cookie = 0});
    (void)comm_->progress();
    test_all();
  }
  void eager() {
    const EagerHeader header{.index = eager_,
                             .length = input_.below(kEagerMax + 1),
                             .tag = static_cast<int32_t>(input_.below(2)),
                             .ordinal = input_.below(8),
                             .cts_seen = input_.below(4)};
    std::memcpy(inbox_ + (eager_ % kEagerBuffers) * eager_buffer_bytes(kEagerMax), &header,
                sizeof header);
    arrive(eager_immediate(eager_++), sizeof header + header.length);
  }
  void stripe() {
    const auto dice = input_.take<uint16_t>();
    const DataImmediate immediate{.entry = dice & kEntryMask,
                                  .sub = dice >> 5 & 1u,
                                  .stripe = dice >> 6 & 1u,
                                  .stripes = (dice >> 7 & 1u) + 1,
                                  .generation = dice >> 8 & 3u};
    arrive(immediate.pack(), dice >> 10);
  }
  void receive() {
    const uint32_t count = input_.below(2) + 1;
    Open open{nullptr, {}};
    std::vector<Receive> receives;
    for (uint32_t i = 0; i < count; ++i) {
      auto& buffer = open.buffers.emplace_back(input_.take<uint16_t>() % kBytes + 1);
      receives.push_back({buffer.data(), buffer.size(), static_cast<int>(i), nullptr});
    }
    (void)comm_->irecv(receives, input_.below(2) == 1, &open.request);
    if (open.request != nullptr) open_.push_back(std::move(open));
    test_all();
  }
  void complete() {
    fuzz::Wire& wire = wires_[input_.below(kRails)];
    if (wire.posted.empty()) return;
    const Work work = wire.posted[input_.below(256) % wire.posted.size()];
    wire.arrivals.push_back(
        {.kind = Done::Kind::kSent, .immediate = 0, .bytes = 0, .cookie = work.cookie});
    test_all();
  }
  void test_all() {
    std::erase_if(open_, [&](Open& open) {
      bool done = false;
      size_t sizes[kMaxReceives] = {};
      const Status status = comm_->test(open.request, &done, sizes);
      FUZZ_CHECK(status != Status::kInternal);
      for (size_t i = 0; done && i < open.buffers.size(); ++i) {
        FUZZ_CHECK(sizes[i] <= open.buffers[i].size());
      }
      return done;
    });
    (void)comm_->progress();
  }

  fuzz::Input& input_;
  fuzz::ManualClock clock_;
  std::unique_ptr<Devices> devices_;
  fuzz::Wire wires_[kRails];
  std::byte* inbox_ = nullptr;
  std::unique_ptr<RecvCommImpl> comm_;
  std::vector<Open> open_;
  uint32_t eager_ = 0;
};

SLIME_FUZZ_TARGET(engine_receiver, input) {
  ReceiverBench bench(input);
  for (int i = 0; i < 400 && !input.empty(); ++i) bench.step();
}

}  // namespace slime
