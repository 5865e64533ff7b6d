// bmv2's runtime interface without its reset, which would also remove the entries that a program
// brings along (`const entries`) and that nothing can write again. What was added is removed
// instead. The tokens of halves are cleared, as all vectors have the same one.
#pragma once

#include <algorithm>

#include "switch/bmv2/runtime.h"
#include "switch/tofino/program.h"

namespace slime::p4 {

// What is on a simple_switch, and the connection that all switches of a test use in turn.
struct KeptDevice {
  explicit KeptDevice(const SocketAddress& server) : runtime(server, kCallMs) {}
  static constexpr int kCallMs = 2000;

  net::Bmv2Runtime runtime;
  std::vector<net::TableEntry> entries;
  std::vector<uint16_t> groups;
};

class KeptRuntime final : public net::P4Runtime {
 public:
  explicit KeptRuntime(KeptDevice& device) : device_(device) {}

  const SocketAddress& server() const override { return device_.runtime.server(); }
  Result<void> connect() override {
    return is_connected() ? Result<void>() : device_.runtime.connect();
  }
  bool is_connected() const override { return device_.runtime.is_connected(); }
  Result<void> reset() override {
    while (!device_.entries.empty()) {
      if (auto done = device_.runtime.remove(device_.entries.back()); !done) return done;
      device_.entries.pop_back();
    }
    while (!device_.groups.empty()) {
      if (auto done = device_.runtime.remove_group(device_.groups.back()); !done) return done;
      device_.groups.pop_back();
    }
    return device_.runtime.clear_registers(
        {"SwitchIngress.ingress.slot.tokens", 0, net::tna::kHalves});
  }
  Result<void> add(const net::TableEntry& entry) override {
    auto done = device_.runtime.add(entry);
    if (done) device_.entries.push_back(entry);
    return done;
  }
  Result<void> modify(const net::TableEntry& entry) override {
    return device_.runtime.modify(entry);
  }
  Result<void> remove(const net::TableEntry& entry) override {
    auto done = device_.runtime.remove(entry);
    const auto same = [&](const net::TableEntry& other) { return same_key(other, entry); };
    if (done) std::erase_if(device_.entries, same);
    return done;
  }
  Result<void> set_default(std::string_view table, const net::TableAction& action) override {
    return device_.runtime.set_default(table, action);
  }
  Result<void> clear_registers(const net::RegisterRange& range) override {
    return device_.runtime.clear_registers(range);
  }
  Result<uint64_t> read_counter(const net::CounterCell& cell) override {
    return device_.runtime.read_counter(cell);
  }
  Result<void> clear_counter(const net::CounterCell& cell) override {
    return device_.runtime.clear_counter(cell);
  }
  Result<void> limit(std::string_view meters, uint32_t packets_per_second) override {
    return device_.runtime.limit(meters, packets_per_second);
  }
  Result<void> add_group(const net::MulticastGroup& group) override {
    device_.groups.push_back(group.id);
    return device_.runtime.add_group(group);
  }
  Result<void> remove_group(uint16_t id) override {
    auto done = device_.runtime.remove_group(id);
    if (done) std::erase(device_.groups, id);
    return done;
  }
  Result<void> mirror(const net::MirrorSession& session) override {
    return device_.runtime.mirror(session);
  }

 private:
  KeptDevice& device_;
};

}  // namespace slime::p4
