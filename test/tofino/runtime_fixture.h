// A BfRuntime that is connected to a FakeBfrt, and entries for its program.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "switch/tofino/runtime.h"
#include "test/tofino/fake_bfrt.h"

namespace slime::tofino {

inline constexpr int kLongMs = 60'000;  // the machine may be busy
inline constexpr uint32_t kDevice = 3;

inline net::TableEntry host(uint64_t mac, uint64_t port) {
  return {"Ingress.bridge.hosts",
          {{"hdr.ethernet.dst_addr", 48, mac}},
          {"Ingress.bridge.forward", {{"port", 9, port}}}};
}

inline net::TableEntry job(uint64_t number, uint64_t token) {
  return {"Ingress.jobs",
          {{"hdr.slime.flags", 12, 0xabc, 0x0f0}, {"hdr.slime.job", 16, number}},
          {"Ingress.accept", {{"generation", 8, 4}, {"token", 32, token}, {"has_parent", 1, 1}}}};
}

inline net::MulticastGroup group(uint16_t id) {
  return {.id = id, .replicas = {{7, 1}, {7, 260}, {9, 2}}};
}

inline std::string error_of(const Result<void>& result) {
  return result ? "" : result.error().what;
}

inline bool until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLongMs);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

class Runtime : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(error_of(runtime_.connect()), "");
    ASSERT_EQ(error_of(runtime_.reset()), "");
    begin();
  }
  void begin() {
    fake_->change([](FakeState& state) {
      state.calls.clear();
      state.writes.clear();
    });
  }
  std::string where() const { return "Tofino at " + fake_->address().to_string(); }
  FakeEntries entries(const std::string& table) const { return fake_->state().tables[table]; }

  std::unique_ptr<FakeBfrt> fake_ = std::make_unique<FakeBfrt>();
  net::BfRuntime runtime_{fake_->address(), "switch", kDevice, kLongMs};
};

}  // namespace slime::tofino
