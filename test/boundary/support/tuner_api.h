// The tuner tables of all versions behind one set of calls, asked as NCCL asks them.
#pragma once

#include <array>
#include <memory>

#include "plugin/abi/tuner_tables.h"
#include "test/boundary/support/net.h"

namespace slime::boundary {

inline constexpr int kAlgorithms = 7, kProtocols = 3;  // NCCL 2.23 and later; 6 before
// NCCL_ALGO_*, NCCL_PROTO_*
enum { kTree = 0, kRing = 1, kDirect = 2, kChain = 3, kNvls = 4 };
enum { kLl = 0, kLl128 = 1, kSimple = 2 };

// NCCL's cost table, all of it ruled out at first.
struct Costs {
  Costs() { of.fill({nccl::kCostIgnore, nccl::kCostIgnore, nccl::kCostIgnore}); }
  bool operator==(const Costs&) const = default;
  std::array<std::array<float, kProtocols>, kAlgorithms> of{};
};

struct Choice {
  int algorithm = -1;
  int protocol = -1;
  bool coll_net() const { return algorithm == kDirect || algorithm == kChain; }
  bool operator==(const Choice&) const = default;
};

class TunerApi
    : public tools::VersionedTable<2, nccl::TunerV2, nccl::TunerV3, nccl::TunerV4, nccl::TunerV5> {
 public:
  TunerApi() : VersionedTable("ncclTunerPlugin_v") {}
  static std::unique_ptr<TunerApi> of(const Plugin& plugin, int version);  // nullptr: not exported

  void* context = nullptr;  // of the last init

  bool complete() const;
  ResultCode init(size_t ranks, size_t nodes, nccl::Logger logger = Log::logger());
  ResultCode destroy(void* ended);
  // Before v3 `costs` stays as it is, and `choice` gets what the tuner demands, if anything.
  ResultCode ask(int function, size_t bytes, Costs* costs, Choice* choice,
                 int algorithms = kAlgorithms);

  // What NCCL does next, with what came back.
  Choice decide(int function, size_t bytes, const Costs& costs);
};

// Of all that is not ruled out the cheapest (NCCL src/enqueue.cc, topoGetAlgoInfo).
Choice cheapest(const Costs& costs);

}  // namespace slime::boundary
