// The sending end of a link: the peer writes what it likes into our inbox (clear to send, records
// of fenced rails) and announces it with any immediates.
#include <algorithm>

#include "message/send_comm.h"
#include "test/fuzz/support/fuzz_rail.h"
#include "test/fuzz/support/stream.h"

namespace slime {

class SenderBench {
 public:
  static constexpr size_t kRails = 2, kBytes = 20'000, kEagerMax = 256;

  explicit SenderBench(fuzz::Input& input)
      : input_(input), devices_(fuzz::devices_of(kRails, clock_)), data_(kBytes) {
    Device& device = *devices_->device(0);
    auto inbox = RegisteredBuffer::make(device, test::cts_memory_bytes(kRails));
    auto outbox = RegisteredBuffer::make(device, test::eager_memory_bytes(kEagerMax, kRails));
    FUZZ_CHECK(inbox && outbox);
    inbox_ = inbox->data();
    comm_ = std::make_unique<SendCommImpl>(
        *devices_, device,
        fuzz::parts_of(wires_, true, kEagerMax, std::move(*inbox), std::move(*outbox)));
    region_ = *device.memory().acquire({data_.data(), data_.size()});
  }
  ~SenderBench() {
    Device& device = *devices_->device(0);
    comm_.reset();
    device.memory().release(region_);
  }

  void step() {
    switch (input_.below(8)) {
      case 0:
        return input_.below(2) ? write() : damage();
      case 1:
        return arrive(input_.take<uint32_t>(), input_.take<uint16_t>());
      case 2:
      case 3:
        return clear_to_send();
      case 4:
        return send();
      case 5:
        return complete();
      case 6:
        wires_[input_.below(kRails)].dead = true;
        return (void)comm_->progress();
      default:
        clock_.pass(uint64_t{input_.take<uint16_t>()} * 1'000'000);
        return test_all();
    }
  }

 private:
  // The rail lets the peer write into the inbox, and nowhere else.
  void write() {
    constexpr size_t kRead = test::cts_memory_bytes(kRails) - kProbeBytes;
    const size_t at = input_.take<uint32_t>() % kRead;
    const auto bytes = input_.bytes(std::min<size_t>(input_.below(64), kRead - at));
    std::copy(bytes.begin(), bytes.end(), inbox_ + at);
  }
  // A field of a record that may have been announced already.
  void damage() {
    const size_t at = input_.below(kCtsEntries) * cts_entry_bytes(kRails) + 2 * input_.below(24);
    const auto value = input_.take<uint16_t>();
    std::memcpy(inbox_ + at, &value, sizeof value);
  }
  void arrive(uint32_t immediate, uint64_t bytes) {
    wires_[input_.below(kRails)].arrivals.push_back(
        {.kind = Done::Kind::kArrived, .immediate = immediate, .bytes = bytes, .cookie = 0});
    (void)comm_->progress();
  }
  // A sound one, which a later write() may damage before it is used.
  void clear_to_send() {
    const uint32_t ahead = input_.below(4);
    CtsHeader header{.sequence = sequence_ + ahead,
                     .entry = static_cast<uint16_t>(input_.below(kCtsEntries)),
                     .generation = 1,
                     .count = input_.below(3) + 1,
                     .eager_consumed = 0};
    const size_t entry = header.entry;
    std::byte* record = inbox_ + entry * cts_entry_bytes(kRails);
    std::memcpy(record, &header, sizeof header);
    for (uint32_t i = 0; i < header.count; ++i) {
      const CtsReceive entry{0x1000, 0, kBytes, static_cast<int32_t>(i), ordinal_ + ahead};
      std::memcpy(record + sizeof header + i * cts_receive_bytes(kRails), &entry, sizeof entry);
    }
    if (ahead == 0) ++sequence_, ++ordinal_;
    arrive(cts_immediate(header.entry, header.sequence),
           sizeof header + header.count * cts_receive_bytes(kRails));
  }
  void send() {
    const size_t bytes = input_.take<uint16_t>() % (kBytes + 1);
    Request* request = nullptr;
    (void)comm_->isend(data_.data(), bytes, input_.below(3), region_, &request);
    if (request != nullptr) requests_.push_back(request);
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
    std::erase_if(requests_, [&](Request* request) {
      bool done = false;
      size_t bytes = 0;
      const Status status = comm_->test(request, &done, &bytes);
      FUZZ_CHECK(!done || bytes <= kBytes);
      FUZZ_CHECK(status != Status::kInternal);
      return done;
    });
    (void)comm_->progress();
  }

  fuzz::Input& input_;
  fuzz::ManualClock clock_;
  std::unique_ptr<Devices> devices_;
  std::vector<std::byte> data_;
  fuzz::Wire wires_[kRails];
  std::byte* inbox_ = nullptr;
  std::unique_ptr<SendCommImpl> comm_;
  const MemoryRegion* region_ = nullptr;
  std::vector<Request*> requests_;
  uint32_t sequence_ = 0, ordinal_ = 0;
};

SLIME_FUZZ_TARGET(engine_sender, input) {
  SenderBench bench(input);
  for (int i = 0; i < 400 && !input.empty(); ++i) bench.step();
}

}  // namespace slime
