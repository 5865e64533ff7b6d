// A P4 program on a real simple_switch, driven by P4Switch, against a model, which is the shards
// that the software switch runs: after every packet the same packets leave, and at the end the
// counters of the job agree. bmv2.test.sh starts simple_switch and sets
//   SLIME_P4_RUNTIME  its runtime interface
//   SLIME_P4_WIRE     the interface that is linked to its port 0
//   SLIME_P4_PROGRAM  what it runs: v1model (default), or tna (that for Tofino)
//   SLIME_P4_PACKETS  of the random traces (default 20000)
//   SLIME_P4_SEED     of the first trace (default 1)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "switch/bmv2/program.h"
#include "switch/tofino/program.h"
#include "test/p4/kept_runtime.h"
#include "test/p4/model.h"
#include "test/p4/traces.h"
#include "test/p4/wire.h"
#include "test/support/environment.h"

namespace slime::p4 {
namespace {

using vectors::Vector;

constexpr size_t kOnTheWay = 8;  // simple_switch has room for 64 packets at a port

// A device may send the packets that answer one packet in any order.
std::vector<std::string> sorted_texts(const Packets& packets) {
  std::vector<std::string> texts;
  for (const auto& packet : packets) texts.push_back(text_of(packet));
  std::ranges::sort(texts);
  return texts;
}

// A job on the device and in the model.
class Twins {
 public:
  Twins(std::unique_ptr<Model> model, net::P4Switch& device, Wire& wire)
      : device_(device), wire_(wire), model_(std::move(model)) {
    model_->set_clock(&time_us_);
  }
  Result<void> add() {
    refusals_before_ = refusals();
    return device_.add_job(model_->job());
  }
  Result<void> fence(uint8_t generation, uint32_t token) {
    settle();
    model_->fence(generation, token);
    return device_.fence(model_->job().job, generation, token);
  }
  const net::JobSpec& job() const { return model_->job(); }

  void deliver(const SocketAddress& from, const std::vector<std::byte>& bytes, uint32_t shard) {
    if (!model_->is_defined(from, bytes)) return;
    time_us_ += 10'000;  // so that no second has too many refusals
    SocketAddress to = model_->vector().address;
    to.set_port(static_cast<uint16_t>(to.port() + shard));
    expected_.push_back({test::text_of({0, from, to, bytes}), model_->deliver(from, bytes, shard)});
    ASSERT_TRUE(wire_.send({0, from, to, bytes}));
    ASSERT_TRUE(wire_.send_marker(next_marker_++));
    if (expected_.size() == kOnTheWay) settle();
  }
  // Waits for what was delivered, and compares.
  void settle() {
    for (const auto& [input, packets] : expected_) {
      const auto found = wire_.receive_until(seen_marker_++);
      ASSERT_TRUE(found) << found.error().what << "\nafter " << input;
      ASSERT_EQ(sorted_texts(*found), sorted_texts(packets)) << "after " << input;
      refusals_seen_ += static_cast<uint64_t>(std::ranges::count_if(packets, is_refusal));
    }
    expected_.clear();
  }
  void compare_counters() {
    const auto found = device_.totals(job().job);
    ASSERT_TRUE(found) << found.error().what;
    const net::JobTotals expected = model_->totals();
#define SLIME_FIELD(name, help) EXPECT_EQ(found->name, expected.name) << #name;
    SLIME_JOB_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
    if (!job().parent) {  // whose refusals are passed on
      EXPECT_EQ(refusals() - refusals_before_, refusals_seen_) << "rejects_sent";
    }
  }

 private:
  static bool is_refusal(const test::CapturedPacket& packet) {
    return packet.payload[sap::at::kType] == static_cast<std::byte>(sap::Type::kReject);
  }
  uint64_t refusals() const {
    for (const net::DeviceCounter& counter : device_.counters()) {
      if (std::string_view(counter.name) == "rejects_sent") return counter.value;
    }
    ADD_FAILURE() << "no counter of refusals";
    return 0;
  }

  net::P4Switch& device_;
  Wire& wire_;
  const std::unique_ptr<Model> model_;
  uint64_t time_us_ = 1'000'000;
  uint64_t refusals_before_ = 0, refusals_seen_ = 0;
  uint32_t next_marker_ = 0x0a000001, seen_marker_ = 0x0a000001;
  std::vector<std::pair<std::string, Packets>> expected_;
};

class Device : public testing::Test {
 protected:
  void SetUp() override {
    const char* runtime = std::getenv("SLIME_P4_RUNTIME");
    const char* interface = std::getenv("SLIME_P4_WIRE");
    if (runtime == nullptr || interface == nullptr) {
      GTEST_SKIP() << "needs a simple_switch; test/p4/bmv2.test.sh starts one";
    }
    runtime_ = *SocketAddress::parse(runtime);
    interface_ = interface;
    const char* program = std::getenv("SLIME_P4_PROGRAM");
    is_chip_ = program != nullptr && std::string_view(program) == "tna";
  }
  // As the program takes it. Nothing: it cannot have such a job.
  std::optional<Vector> possible(Vector world) const {
    net::JobSpec& job = world.job;
    if (!is_chip_) return world;
    if (world.shards > 1 || job.rails > 1 || job.parent) return std::nullopt;
    job.max_lanes = 32;
    job.formats = sap::kWordFormats;
    return world;
  }
  std::unique_ptr<Model> model_of(const Vector& world) const {
    if (is_chip_) return std::make_unique<ChipModel>(world);
    return std::make_unique<Model>(world);
  }
  Result<std::unique_ptr<net::P4Switch>> open_switch(const net::P4Options& options) const {
    if (is_chip_) {
      static KeptDevice device(runtime_);
      return net::P4Switch::open(std::make_unique<KeptRuntime>(device),
                                 std::make_unique<net::TofinoProgram>(options));
    }
    net::P4Options of_bmv2;
    static_cast<net::P4Options&>(of_bmv2) = options;
    of_bmv2.runtime = runtime_;
    return net::open_bmv2(of_bmv2);
  }
  // Programs the switch for that world: all hosts are at port 0.
  void open(const Vector& world) {
    net::P4Options options;
    options.address = world.address;
    options.mac = kSwitchMac;
    options.shards = world.shards;
    std::vector<SocketAddress> hosts = world.job.children;
    if (world.job.parent) hosts.push_back(world.job.parent->address);
    for (const test::CapturedPacket& packet : world.packets) {
      hosts.push_back(world.is_input(packet) ? packet.from : packet.to);
    }
    for (const SocketAddress& host : hosts) {
      options.hosts[net::ipv4_of(host)] = {mac_of(host), 0};
    }
    auto opened = open_switch(options);
    ASSERT_TRUE(opened) << opened.error().what;
    device_ = std::move(*opened);
    // Another job comes first, so that index and slots of the world's are not 0.
    net::JobSpec other = world.job;
    other.job ^= 0xa5a5;  // which no byte of a spoilt packet makes of it
    other.slots = 3;
    other.parent = std::nullopt;
    const auto added = device_->add_job(other);
    ASSERT_TRUE(added) << added.error().what;
    auto wire = Wire::open(interface_, world.address);
    ASSERT_TRUE(wire) << wire.error().what;
    wire_.emplace(std::move(*wire));
  }

  SocketAddress runtime_;
  std::string interface_;
  bool is_chip_ = false;
  std::unique_ptr<net::P4Switch> device_;
  std::optional<Wire> wire_;
};

TEST_F(Device, AgreesWithEveryVector) {
  for (const std::string& name : vectors::vector_names("test/vectors/data")) {
    SCOPED_TRACE(name);
    auto vector = vectors::load_vector("test/vectors/data", name);
    ASSERT_TRUE(vector) << vector.error().what;
    auto bare = possible(*vector);
    if (!bare) {
      std::printf("%s: a job that the program does not have\n", name.c_str());
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(open(*bare));
    bare->packets.clear();
    Twins twins(model_of(*bare), *device_, *wire_);
    const auto added = twins.add();
    ASSERT_TRUE(added) << added.error().what;
    for (const test::CapturedPacket& packet : vector->packets) {
      if (!vector->is_input(packet)) continue;
      ASSERT_NO_FATAL_FAILURE(
          twins.deliver(packet.from, packet.payload, vector->shard_of(packet.to)));
    }
    ASSERT_NO_FATAL_FAILURE(twins.settle());
    twins.compare_counters();
  }
}

TEST_F(Device, AgreesOnRandomTraces) {
  const uint64_t packets = test::from_environment("SLIME_P4_PACKETS", 20'000);
  uint64_t seed = test::from_environment("SLIME_P4_SEED", 1), sent = 0;
  for (; sent < packets; ++seed) {
    SCOPED_TRACE("SLIME_P4_SEED=" + std::to_string(seed));
    Trace trace(seed, is_chip_ ? Trace::Kind::kChip : Trace::Kind::kSoftware);
    ASSERT_NO_FATAL_FAILURE(open(trace.world()));
    Twins twins(model_of(trace.world()), *device_, *wire_);
    const auto added = twins.add();
    ASSERT_TRUE(added) << added.error().what;
    for (int i = 0; i < 600 && sent < packets; ++i, ++sent) {
      if (i == 400) {
        const auto [generation, token] = trace.fence();
        const auto fenced = twins.fence(generation, token);
        ASSERT_TRUE(fenced) << fenced.error().what;
      }
      const Trace::Packet packet = trace.next();
      ASSERT_NO_FATAL_FAILURE(twins.deliver(packet.from, packet.bytes, packet.shard));
    }
    ASSERT_NO_FATAL_FAILURE(twins.settle());
    twins.compare_counters();
  }
  std::printf("%llu random packets agree\n", static_cast<unsigned long long>(sent));
}

}  // namespace
}  // namespace slime::p4
