// Every rail that keeps the contract. A new backend joins the lists below and nothing else.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "test/contract/pair.h"
#include "test/contract/world.h"

namespace slime::contract {

struct SimWorldOptions {
  bool ordered = true;
  bool arrives_unpolled = false;  // as a NIC writes; otherwise as the kernel's TCP
  bool by_offset = false;         // WorldProperties
  bool is_hca = false;            // the NIC confirms, and writes device memory that needs a flush
  bool goes_on_after_refusal = true;
  uint64_t seed = 1;
};
std::unique_ptr<World> make_sim_world(const SimWorldOptions& options);
std::unique_ptr<World> make_tcp_world();

// "sim" like tcp, but unordered too; "rc" like RDMA reliable connections; "srd" like EFA; "offsets"
// like libfabric's providers without FI_MR_VIRT_ADDR; "hca" like "rc" whose NIC confirms, and
// writes device memory.
struct Tcp {
  static constexpr const char* kName = "tcp";
  static std::unique_ptr<World> make() { return make_tcp_world(); }
};
struct SimOrdered {
  static constexpr const char* kName = "sim_ordered";
  static std::unique_ptr<World> make() { return make_sim_world({true, false}); }
};
struct SimUnordered {
  static constexpr const char* kName = "sim_unordered";
  static std::unique_ptr<World> make() { return make_sim_world({false, false}); }
};
struct SimRc {
  static constexpr const char* kName = "sim_rc";
  static std::unique_ptr<World> make() {
    return make_sim_world({.arrives_unpolled = true, .goes_on_after_refusal = false});
  }
};
struct SimSrd {
  static constexpr const char* kName = "sim_srd";
  static std::unique_ptr<World> make() {
    return make_sim_world(
        {.ordered = false, .arrives_unpolled = true, .goes_on_after_refusal = false});
  }
};
struct SimOffsets {
  static constexpr const char* kName = "sim_offsets";
  static std::unique_ptr<World> make() { return make_sim_world({.by_offset = true}); }
};

struct SimHca {
  static constexpr const char* kName = "sim_hca";
  static std::unique_ptr<World> make() {
    return make_sim_world({.arrives_unpolled = true, .is_hca = true});
  }
};

std::unique_ptr<World> make_verbs_world();
struct Verbs {
  static constexpr const char* kName = "verbs";
  static std::unique_ptr<World> make() { return make_verbs_world(); }
};

// Of the libfabric that is installed; null, and why, where it has no such provider.
std::unique_ptr<World> make_fabric_world(const std::string& provider, std::string* absent);
struct FabricShm {
  static constexpr const char* kName = "libfabric_shm";
  static std::unique_ptr<World> make(std::string* absent) {
    return make_fabric_world("shm", absent);
  }
};
struct FabricTcp {
  static constexpr const char* kName = "libfabric_tcp_rxm";
  static std::unique_ptr<World> make(std::string* absent) {
    return make_fabric_world("tcp;ofi_rxm", absent);
  }
};

// libfabric's provider efa, without hardware.
std::unique_ptr<World> make_efa_world();
struct FabricEfa {
  static constexpr const char* kName = "libfabric_efa";
  static std::unique_ptr<World> make() { return make_efa_world(); }
};

using AllRails = ::testing::Types<Tcp, SimOrdered, SimUnordered, SimRc, SimSrd, SimOffsets, SimHca,
                                  Verbs, FabricShm, FabricTcp, FabricEfa>;
using RailsThatRead = ::testing::Types<Tcp, SimOrdered, SimUnordered, SimRc, SimSrd, SimOffsets,
                                       SimHca, Verbs, FabricEfa>;
using RailsWithPollers =
    ::testing::Types<Tcp, SimOrdered, SimUnordered, SimRc, SimSrd, SimOffsets, SimHca, Verbs>;
using RailsThatFlush = ::testing::Types<SimHca, Verbs, FabricEfa>;

struct RailName {
  template <typename T>
  static std::string GetName(int) {
    return T::kName;
  }
};

// One test over one kind of rail.
template <typename T>
class Contract : public ::testing::Test {
 protected:
  Contract() : world_(make()) {}
  void SetUp() override {
    if (world_ == nullptr) GTEST_SKIP() << absent_;
  }

  // The body once for each way of use: either end active, with and without confirm_delivery.
  template <typename Body>
  void in_each_mode(Body body) {
    for (const bool confirm : {false, true}) {
      for (const bool left_active : {true, false}) {
        SCOPED_TRACE(std::string(confirm ? "with" : "without") + " confirm_delivery, left is " +
                     (left_active ? "active" : "passive"));
        PairOptions options{.confirm_delivery = confirm, .left_active = left_active};
        options.left_first =
            confirm ? left_active : !left_active;  // set-up, and a dead rail's return
        Pair pair(*world_, options);
        ASSERT_TRUE(pair.connect()) << failures_of(pair);
        body(pair);
        if (this->HasFailure()) return;  // the other modes would tell the same, slowly
      }
    }
  }

  std::vector<Opcode> opcodes() const {
    std::vector<Opcode> opcodes;
    for (const Opcode each : {Opcode::kWriteWithImmediate, Opcode::kWrite, Opcode::kRead}) {
      if ((world_->left().caps().opcodes & opcode_bit(each)) != 0) opcodes.push_back(each);
    }
    return opcodes;
  }

  static std::string failures_of(Pair& pair) {
    std::string text;
    for (End* end : {&pair.left, &pair.right}) {
      if (end->status != Status::kOk && end->channel != nullptr) {
        text += end->channel->failure().what + "\n";
      }
    }
    return text;
  }

  static void expect_clean(const Pair& pair) {
    for (const std::string& problem : pair.problems()) ADD_FAILURE() << problem;
  }

  // Everything that was set up arrives, once, and the ledger is clean.
  static void expect_delivery(Pair& pair, const Pace& pace = {}) {
    EXPECT_TRUE(pair.run(pace)) << failures_of(pair);
    pair.settle();  // a second completion would come now
    expect_clean(pair);
  }

  std::string absent_;  // why there is no world
  std::unique_ptr<World> world_;

 private:
  std::unique_ptr<World> make() {
    if constexpr (requires { T::make(&absent_); }) return T::make(&absent_);
    if constexpr (requires { T::make(); }) return T::make();
    return nullptr;
  }
};

}  // namespace slime::contract
