// What rail.h promises of MemoryRange::rights, for each opcode that a rail has.
#include "test/contract/checks.h"
#include "test/contract/worlds.h"

namespace slime::contract {
namespace {

template <typename T>
class RailRights : public Contract<T> {};
TYPED_TEST_SUITE(RailRights, AllRails, RailName);

// A peer may do what the range is registered for, and nothing else.
TYPED_TEST(RailRights, AreKept) {
  if (!this->world_->left().caps().keeps_rights) GTEST_SKIP() << "this rail keeps no rights";
  for (const Opcode opcode : this->opcodes()) {
    const bool reads = opcode == Opcode::kRead;
    for (const uint8_t rights : {uint8_t{0}, reads ? kRemoteWrite : kRemoteRead}) {
      this->in_each_mode([&](Pair& pair) {
        Transfer& ledger = pair.transfer(pair.left, {100, 200, 300}, opcode);
        Region other(*pair.right.rail, 1000, rights);
        Work bad = ledger.works()[1];
        other.aim(&bad, other.address());
        bad.remote_key = other.keys().remote;
        for (const std::string& problem : refusal_problems(pair, ledger, bad)) {
          ADD_FAILURE() << problem;
        }
        EXPECT_TRUE(other.untouched());
      });
    }
  }
}

}  // namespace
}  // namespace slime::contract
