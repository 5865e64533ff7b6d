#include "test/boundary/support/tuner_api.h"

namespace slime::boundary {
namespace {

template <int kVersion, typename Table>
class TunerApiOf final : public TunerApi {
 public:
  explicit TunerApiOf(const void* table) : table_(static_cast<const Table*>(table)) {
    version = kVersion;
  }

  const char* name() const override { return table_->name; }
  bool complete() const override {
    return table_->init && table_->get_coll_info && table_->destroy;
  }

  ResultCode init(size_t ranks, size_t nodes, nccl::Logger logger) override {
    if constexpr (kVersion >= 5) {
      return table_->init(&context, 0x51e, ranks, nodes, logger, nullptr, nullptr);
    } else {
      return table_->init(ranks, nodes, logger, &context);
    }
  }
  ResultCode destroy(void* ended) override { return table_->destroy(ended); }

  ResultCode ask(int function, size_t bytes, Costs* costs, Choice* choice,
                 int algorithms) override {
    const auto which = static_cast<nccl::Function>(function);
    auto* const table = reinterpret_cast<float**>(costs->of.data());
    int channels = 0;
    ResultCode code = nccl::kSuccess;
    if constexpr (kVersion == 2) {
      const bool supported = costs->of[kChain][kSimple] >= 0;
      code = table_->get_coll_info(context, which, bytes, supported, 0, 1, &choice->algorithm,
                                   &choice->protocol, &channels);
    } else if constexpr (kVersion == 3) {
      code =
          table_->get_coll_info(context, which, bytes, 1, table, algorithms, kProtocols, &channels);
    } else {
      code = table_->get_coll_info(context, which, bytes, 1, table, algorithms, kProtocols, 0,
                                   &channels);
    }
    EXPECT_EQ(channels, 0) << "the number of channels is NCCL's";
    return code;
  }

 private:
  const Table* const table_;
};

}  // namespace

Choice cheapest(const Costs& costs) {
  Choice best;
  float least = 3600000000.0F;
  for (int algorithm = 0; algorithm < kAlgorithms; ++algorithm) {
    for (int protocol = 0; protocol < kProtocols; ++protocol) {
      const float cost = costs.of[algorithm][protocol];
      if (cost == nccl::kCostIgnore || !(cost >= 0) || !(cost < least)) continue;
      best = {algorithm, protocol};
      least = cost;
    }
  }
  return best;
}

Choice TunerApi::decide(int function, size_t bytes, const Costs& costs) {
  Costs advised = costs;
  Choice demanded;
  EXPECT_EQ(ask(function, bytes, &advised, &demanded), nccl::kSuccess);
  return demanded.algorithm >= 0 && demanded.protocol >= 0 ? demanded : cheapest(advised);
}

std::unique_ptr<TunerApi> TunerApi::of(const Plugin& plugin, int version) {
  const void* const table = plugin.find("ncclTunerPlugin_v" + std::to_string(version));
  if (table == nullptr) return nullptr;
  switch (version) {
    case 2:
      return std::make_unique<TunerApiOf<2, nccl::TunerV2>>(table);
    case 3:
      return std::make_unique<TunerApiOf<3, nccl::TunerV3>>(table);
    case 4:
      return std::make_unique<TunerApiOf<4, nccl::TunerV4>>(table);
    case 5:
      return std::make_unique<TunerApiOf<5, nccl::TunerV5>>(table);
  }
  return nullptr;
}

}  // namespace slime::boundary
