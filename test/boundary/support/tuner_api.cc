#include "test/boundary/support/tuner_api.h"

namespace slime::boundary {
std::unique_ptr<TunerApi> TunerApi::of(const Plugin& plugin, int version) {
  auto api = std::make_unique<TunerApi>();
  return api->bind(plugin.library(), version) ? std::move(api) : nullptr;
}

bool TunerApi::complete() const {
  return with([](const auto* table) {
    return table->init != nullptr && table->get_coll_info != nullptr && table->destroy != nullptr;
  });
}

ResultCode TunerApi::init(size_t ranks, size_t nodes, nccl::Logger logger) {
  return with([&](const auto* table) {
    if constexpr (requires { table->init(ranks, nodes, logger, &context); }) {
      return table->init(ranks, nodes, logger, &context);
    } else {
      return table->init(&context, 0x51e, ranks, nodes, logger, nullptr, nullptr);
    }
  });
}

ResultCode TunerApi::destroy(void* ended) {
  return with([ended](const auto* table) { return table->destroy(ended); });
}

ResultCode TunerApi::ask(int function, size_t bytes, Costs* costs, Choice* choice, int algorithms) {
  const auto which = static_cast<nccl::Function>(function);
  auto* const all = reinterpret_cast<float**>(costs->of.data());
  int channels = 0;
  const ResultCode code = with([&](const auto* table) {
    using Table = std::decay_t<decltype(*table)>;
    if constexpr (std::is_same_v<Table, nccl::TunerV2>) {
      const bool supported = costs->of[kChain][kSimple] >= 0;
      return table->get_coll_info(context, which, bytes, supported, 0, 1, &choice->algorithm,
                                  &choice->protocol, &channels);
    } else if constexpr (std::is_same_v<Table, nccl::TunerV3>) {
      return table->get_coll_info(context, which, bytes, 1, all, algorithms, kProtocols, &channels);
    } else {
      return table->get_coll_info(context, which, bytes, 1, all, algorithms, kProtocols, 0,
                                  &channels);
    }
  });
  EXPECT_EQ(channels, 0) << "the number of channels is NCCL's";
  return code;
}

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

}  // namespace slime::boundary
