// A worker with operations under way, and a switch that answers what it likes: results with any
// numbers and a check that fits, the same damaged, refusals, questions of peers, moves.
#include "collnet/worker/worker.h"

#include <algorithm>
#include <map>

#include "test/fuzz/support/target.h"
#include "test/support/check_oracle.h"

namespace slime {

static constexpr uint32_t kSlots = 4, kLanes = 16, kWorkers = 3;

// Keeps what the worker sent; a contribution sent again must be the same bytes (rule R3).
class Sent final : public Datagrams {
 public:
  void send(const Destination& to, std::span<const std::byte> datagram) override {
    sap::Header header;
    FUZZ_CHECK(sap::decode(datagram, &header) == sap::Fault::kNone);
    FUZZ_CHECK(header.slot < kSlots && header.lanes <= kLanes);
    FUZZ_CHECK(to.index < (to.kind == Destination::Kind::kRank ? kWorkers : 2));
    if (header.type != sap::Type::kContribution) return;
    const std::vector<std::byte> bytes(datagram.begin(), datagram.end());
    const auto key = std::tuple(header.slot, header.epoch, header.generation);
    const auto known = rounds_.find(key);
    FUZZ_CHECK(known == rounds_.end() || known->second == bytes);
    rounds_[key] = bytes;
    last[header.slot] = bytes;
  }
  std::vector<std::byte> last[kSlots];

 private:
  std::map<std::tuple<uint16_t, uint32_t, uint8_t>, std::vector<std::byte>> rounds_;
};

class WorkerBench {
 public:
  explicit WorkerBench(fuzz::Input& input) : input_(input) {
    auto worker =
        Worker::open({.route = {.job = 1, .generation = generation_, .token = token_, .shards = 2},
                      .child = 1,
                      .rank = 1,
                      .contributors = kWorkers,
                      .slots = kSlots,
                      .lanes = kLanes,
                      .formats = sap::kWordFormats | (input.take<uint8_t>() & sap::kKnownFormats),
                      .round_trip = {}},
                     sent_);
    FUZZ_CHECK(worker);
    worker_ = std::move(*worker);
  }

  void step() {
    switch (input_.below(12)) {
      case 0:
        return start();
      case 1: {
        const std::vector<std::byte> datagram = copy(input_.bytes(input_.below(120)));
        return deliver(*worker_, datagram, now_ns_);
      }
      case 2:
        now_ns_ += uint64_t{input_.take<uint16_t>()} * 1'000'000;
        worker_->poll(now_ns_);
        return (void)worker_->take_suspicion();
      case 3:
        return small();
      case 4:
        if (input_.below(8) == 0) move();
        return;
      default:
        return result();
    }
  }

 private:
  struct Job {
    uint64_t ticket;
    std::vector<std::byte> data;
  };

  static std::vector<std::byte> copy(std::span<const std::byte> bytes) {
    return {bytes.begin(), bytes.end()};
  }

  void start() {
    const auto type = static_cast<DataType>(input_.below(9));
    const auto op = static_cast<ReduceOp>(input_.below(3));
    const uint32_t count = input_.below(200);
    jobs_.push_back({0, std::vector<std::byte>(count * element_bytes(type))});
    Job& job = jobs_.back();
    const auto filling = input_.bytes(input_.below(64));
    for (size_t i = 0; !filling.empty() && i < job.data.size(); ++i) {
      job.data[i] = filling[i % filling.size()];
    }
    const Operation operation{job.data.data(), job.data.data(), count, type, op};
    if (worker_->start(operation, now_ns_, &job.ticket) != Status::kOk) jobs_.pop_back();
  }

  // The answer of a switch in which the others contributed whatever makes these numbers.
  void result() {
    const std::vector<std::byte>& asked = sent_.last[input_.below(kSlots)];
    if (asked.empty()) return;
    std::vector<std::byte> answer = asked;
    sap::Header header;
    (void)sap::decode(answer, &header);
    header.type = input_.below(4) ? sap::Type::kResult : sap::Type::kResultAgain;
    const uint32_t dice = input_.below(64);
    const uint32_t exponents = dice & 1 ? input_.take<uint16_t>() : 0;
    header.exponents[0] = std::max(header.exponents[0], static_cast<int8_t>(exponents));
    header.exponents[1] = std::max(header.exponents[1], static_cast<int8_t>(exponents >> 8));
    if (dice & 2) header.special |= input_.take<uint8_t>();
    if (dice & 4) header.special &= static_cast<uint8_t>(~sap::special::kUnknown);
    const auto payload = input_.bytes(dice & 8 ? 4 * size_t{header.lanes} : 0);
    std::copy(payload.begin(), payload.end(), answer.begin() + sap::kHeaderBytes);
    const std::span<const std::byte> lanes(answer.data() + sap::kHeaderBytes,
                                           4 * size_t{header.lanes});
    const bool doubled = sap::is_doubled(header.op);
    if (doubled && dice % 16 != 15) {
      std::copy_n(lanes.begin(), lanes.size() / 2,
                  answer.end() - static_cast<long>(lanes.size() / 2));
    }
    header.check = (doubled ? 0 : sap::check_of(header.format, lanes, 0)) +
                   sap::all_ranks(kWorkers).factors * sap::salt(header);
    if (dice >= 56) header.flags ^= sap::flag::kFallback;
    if (dice == 55) header.token = input_.take<uint32_t>();
    sap::encode(header, answer.data());
    if (dice == 48)
      answer[input_.below(sap::kHeaderBytes)] ^= static_cast<std::byte>(input_.take<uint8_t>());
    deliver(*worker_, answer, now_ns_);
  }

  void small() {
    sap::Header header{.type = static_cast<sap::Type>(input_.below(3) + 6), .job = 1};
    const std::vector<std::byte>& asked = sent_.last[input_.below(kSlots)];
    if (!asked.empty()) (void)sap::decode(asked, &header);
    header.type = static_cast<sap::Type>(input_.below(3) + 6);
    header.epoch -= input_.below(3);
    header.generation = generation_;
    header.token = token_;
    header.flags = input_.below(2) ? sap::flag::kFallback : 0;
    header.lanes = header.type == sap::Type::kQuery ? 0 : 1;
    header.child = static_cast<uint8_t>(input_.below(32));
    std::vector<std::byte> bytes(sap::kHeaderBytes + 4 * size_t{header.lanes});
    sap::encode(header, bytes.data());
    if (header.lanes == 1) sap::wire::put32(&bytes[sap::kHeaderBytes], input_.below(8));
    deliver(*worker_, bytes, now_ns_);
  }

  // As the session does; what the other ranks say of their epochs is theirs.
  void move() {
    worker_->pause();
    std::vector<uint32_t> epochs(size_t{kSlots} * kWorkers);
    for (uint32_t& epoch : epochs) epoch = input_.below(4);
    worker_->epochs(std::span(epochs).subspan(kSlots, kSlots));
    token_ += 2;
    worker_->resume({.generation = ++generation_, .token = token_, .direct = true}, epochs,
                    now_ns_);
  }

  fuzz::Input& input_;
  uint64_t now_ns_ = 1'000'000;
  uint8_t generation_ = 9;
  uint32_t token_ = 0x70c3;
  Sent sent_;
  std::vector<Job> jobs_;  // vectors keep their bytes where they are when this grows
  std::unique_ptr<Worker> worker_;
};

SLIME_FUZZ_TARGET(worker, input) {
  WorkerBench bench(input);
  for (int i = 0; i < 300 && !input.empty(); ++i) bench.step();
}

}  // namespace slime
