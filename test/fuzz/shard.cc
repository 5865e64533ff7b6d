// The switch: a shard with four jobs takes any packets from anybody. It must answer exactly what
// the model of test/support/switch_model.h does, and only to who belongs to the job or has asked.
#include <algorithm>
#include <memory>

#include "switch/core/shard.h"
#include "test/fuzz/support/target.h"
#include "test/support/switch_model.h"

namespace slime::net {

static constexpr uint16_t kStranger = 999;
static constexpr uint32_t kToken = 0x70c3;

static SocketAddress address_of(uint16_t port) {
  SocketAddress address = *SocketAddress::parse("10.0.0.1");
  address.set_port(port);
  return address;
}

class Answers final : public Outbox {
 public:
  void send(const Outgoing& packet, std::span<const SocketAddress> to) override {
    test::Answer answer{{packet.header.begin(), packet.header.end()}, {to.begin(), to.end()}};
    answer.bytes.insert(answer.bytes.end(), packet.payload.begin(), packet.payload.end());
    all.push_back(std::move(answer));
  }
  std::vector<test::Answer> all;
};

// A root of workers with two rails each, an inner switch, a root of switches, and a small job of
// one. Address i of job j is at port 100 j + i.
static JobSpec spec_of(uint16_t job) {
  static constexpr uint8_t kAddresses[] = {6, 2, 2, 1};
  JobSpec spec{.job = job,
               .generation = 5,
               .token = kToken,
               .slots = job == 4 ? 1u : 4u,
               .max_lanes = job == 4 ? 2u : 8u,
               .formats = job == 4 ? 0b1000u : sap::kKnownFormats,
               .children = {},
               .rails = job == 1 ? 2u : 1u,
               .children_are_switches = job == 3,
               .parent = {}};
  for (uint16_t c = 0; c < kAddresses[job - 1]; ++c) {
    spec.children.push_back(address_of(static_cast<uint16_t>(100 * job + c)));
  }
  if (job == 2) spec.parent = Parent{address_of(kStranger - 1), 1};
  return spec;
}

class Bench {
 public:
  explicit Bench(fuzz::Input& input)
      : input_(input), shards_(input.below(2) + 1), shard_(0, shards_), model_(0, shards_) {
    for (uint16_t job = 1; job <= 4; ++job) add(job);
  }

  void step() {
    const auto job = static_cast<uint16_t>(input_.below(5) + 1);  // 5: there is none
    switch (input_.below(16)) {
      case 0:
        return deliver(input_.bytes(input_.below(80)), from(job));
      case 1: {
        const auto generation = input_.take<uint8_t>();
        const uint32_t token = input_.below(2) ? kToken : 1;
        FUZZ_CHECK(shard_.fence(job, generation, token) == (shard_.counters_of(job) != nullptr));
        return model_.fence(job, generation, token);
      }
      case 2:
        model_.remove_job(job);
        FUZZ_CHECK((shard_.counters_of(job) != nullptr) == shard_.remove_job(job));
        return;
      case 3:
        return job <= 4 ? add(job) : void();
      case 4:
        now_ns_ += uint64_t{input_.take<uint8_t>()} * 10'000'000;
        return;
      default:
        return packet(job);
    }
  }

 private:
  void add(uint16_t job) {
    FUZZ_CHECK(shard_.add_job(spec_of(job)));
    model_.add_job(spec_of(job));
  }
  SocketAddress from(uint16_t job) {
    const uint32_t who = input_.below(16);
    if (who == 15) return address_of(kStranger);
    return address_of(static_cast<uint16_t>(who == 14 ? kStranger - 1 : 100 * job + who % 4));
  }

  // Mostly sound, so that the fuzzer gets past the guards.
  void packet(uint16_t job) {
    static constexpr sap::Type kTypes[] = {sap::Type::kContribution, sap::Type::kPartial,
                                           sap::Type::kQuery, sap::Type::kParentResult};
    const auto dice = input_.take<uint16_t>();
    sap::Header header{.type = kTypes[dice & 3],
                       .format = static_cast<sap::Format>(dice >> 2 & 7),
                       .op = static_cast<sap::Op>(dice >> 5 & 3),
                       .flags = static_cast<uint8_t>(dice >> 7 & sap::flag::kKnown),
                       .job = job};
    const auto more = input_.take<uint16_t>();
    header.generation = static_cast<uint8_t>(5 + ((more & 31) == 31));
    header.token = (more & 31) == 30 ? 1 : kToken;
    header.child = static_cast<uint8_t>(more >> 5 & 3);
    header.slot = more >> 7 & 7;
    header.epoch = uint32_t{more} >> 10 & 7;
    header.lanes = static_cast<uint16_t>((more >> 13) + 4 * (dice >> 15));
    if ((header.flags & sap::flag::kExponentsOnly) != 0 || header.type == sap::Type::kQuery) {
      header.lanes = 0;
    }
    header.cookie = header.check = input_.take<uint32_t>();
    header.exponents[0] = header.exponents[1] = static_cast<int8_t>(header.check);
    header.special = static_cast<uint8_t>(header.check >> 8);
    const uint32_t rail = job == 1 ? header.slot / shards_ % 2 : 0;
    SocketAddress sender = address_of(static_cast<uint16_t>(100 * job + 3 * rail + header.child));
    const bool word = header.check % 16 == 3;
    if (word) {
      header.type = header.check & 16 ? sap::Type::kStatus : sap::Type::kReject;
      header.flags = 0;
      header.lanes = 1;
      header.cookie = header.child;
    }
    if (word || header.type == sap::Type::kParentResult) sender = address_of(kStranger - 1);
    if (header.check % 32 == 7) sender = from(job);
    if (header.check % 64 == 9) header.epoch = input_.take<uint32_t>();
    std::vector<std::byte> bytes(sap::kHeaderBytes + 4 * size_t{header.lanes});
    sap::encode(header, bytes.data());
    const auto payload = input_.bytes(4 * size_t{header.lanes});
    std::copy(payload.begin(), payload.end(), bytes.begin() + sap::kHeaderBytes);
    deliver(bytes, sender);
  }

  void deliver(std::span<const std::byte> bytes, const SocketAddress& sender) {
    // Of its own size on the heap: a read beyond it is seen.
    const std::vector<std::byte> datagram(bytes.begin(), bytes.end());
    Answers answers;
    shard_.handle(datagram, sender, now_ns_, answers);
    FUZZ_CHECK(answers.all == model_.handle(datagram, sender, now_ns_));
    for (const test::Answer& answer : answers.all) check_destinations(answer, sender);
  }

  // By themselves, whatever the model says.
  void check_destinations(const test::Answer& answer, const SocketAddress& sender) {
    sap::Header header;
    FUZZ_CHECK(sap::decode(answer.bytes, &header) == sap::Fault::kNone);
    const bool word = header.type == sap::Type::kReject || header.type == sap::Type::kStatus;
    if (word && answer.to.size() == 1 && answer.to.front() == sender) return;
    FUZZ_CHECK(header.job >= 1 && header.job <= 4);
    const JobSpec spec = spec_of(header.job);
    // A word to others is the parent's.
    FUZZ_CHECK(!word || (spec.parent && sender == spec.parent->address));
    const bool up = header.type == sap::Type::kPartial || header.type == sap::Type::kQuery;
    for (const SocketAddress& to : answer.to) {
      FUZZ_CHECK(up ? to == spec.parent->address
                    : std::ranges::find(spec.children, to) != spec.children.end());
    }
  }

  fuzz::Input& input_;
  const uint32_t shards_;
  Shard shard_;
  test::SwitchModel model_;
  uint64_t now_ns_ = 1'000'000'000;
};

SLIME_FUZZ_TARGET(shard, input) {
  Bench bench(input);
  while (!input.empty()) bench.step();
}

}  // namespace slime::net
