#include <utility>

#include "test/contract/pattern.h"
#include "test/contract/worlds.h"
#include "test/support/sim/sim_rail.h"

namespace slime::contract {
namespace {

class SimWorld final : public World {
 public:
  explicit SimWorld(const SimWorldOptions& options) : options_(options), network_(options.seed) {
    RailCaps caps;
    caps.transport = "sim";
    caps.send_queue_depth = 24;
    caps.max_batch = 16;
    caps.ordered = options.ordered;
    caps.arrives_unpolled = options.arrives_unpolled;
    caps.confirms_in_hardware = options.is_hca;
    caps.opcodes |= opcode_bit(Opcode::kWrite) | opcode_bit(Opcode::kRead);
    caps.max_outstanding_reads = 7;
    caps.goes_on_after_refusal = options.goes_on_after_refusal;
    if (options.is_hca) caps.memory_kinds |= static_cast<uint32_t>(MemoryKind::kCuda);
    sim::RailModel model;
    model.uses_offsets = options.by_offset;
    model.needs_flush = options.is_hca;
    model.costs = {.post_ns = 50, .doorbell_ns = 150, .refused_ns = 60, .poll_ns = 80};
    model.jitter_ns = 5'000;
    model.delay_ppm = 50'000;
    model.delay_ns = 40'000;
    model.connect_retries = 3;
    model.window_bytes = 64 << 10;  // small: so that works wait for it
    caps.name = "sim0";
    left_ = network_.open_rail(caps, model);
    caps.name = "sim1";
    right_ = network_.open_rail(caps, model);
  }

  Rail& left() override { return *left_; }
  Rail& right() override { return *right_; }
  WorldProperties properties() const override { return {.by_offset = options_.by_offset}; }
  bool pump() override {
    if (network_.step()) return true;
    network_.advance(1'000);
    return false;
  }
  std::vector<ChannelAddress> alien_addresses(const ChannelAddress& real) override {
    std::vector<ChannelAddress> aliens(1);  // all zero
    for (size_t i = 0; i < real.size(); ++i) {
      aliens.push_back(real);
      aliens.back()[i] ^= std::byte{0x10};
    }
    fill(aliens.emplace_back(), 4711);
    return aliens;
  }
  uint64_t violations() const override { return network_.violations().total(); }

 private:
  const SimWorldOptions options_;
  sim::Network network_;
  std::unique_ptr<sim::Rail> left_, right_;
};

}  // namespace

std::unique_ptr<World> make_sim_world(const SimWorldOptions& options) {
  return std::make_unique<SimWorld>(options);
}

}  // namespace slime::contract
