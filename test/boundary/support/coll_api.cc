#include "test/boundary/support/coll_api.h"

namespace slime::boundary {

std::unique_ptr<CollApi> CollApi::of(const Plugin& plugin, int version) {
  auto api = std::make_unique<CollApi>();
  return api->bind(plugin.library(), version) ? std::move(api) : nullptr;
}

bool CollApi::complete() const {
  return with([](const auto* table) {
    const auto& t = *table;
    bool all = t.init && t.devices && t.get_properties && t.listen && t.connect &&
               t.reduce_support && t.reg_mr && t.reg_mr_dma_buf && t.dereg_mr && t.iallreduce &&
               t.iflush && t.test && t.close_coll && t.close_listen;
    if constexpr (requires { t.iallgather; }) all = all && !t.iallgather && !t.ireducescatter;
    if constexpr (requires { t.make_virtual_device; }) all = all && t.make_virtual_device;
    if constexpr (requires { t.finalize; }) all = all && t.finalize;
    return all;
  });
}

ResultCode CollApi::reg_dma_buf(void* comm, void* data, size_t bytes, int fd, void** mhandle) {
  return with([&](const auto* table) {
    return table->reg_mr_dma_buf(comm, data, bytes, nccl::kPointerHost, 0, fd, mhandle);
  });
}

ResultCode CollApi::iflush(void* comm, void** request) {
  return with([&](const auto* table) { return table->iflush(comm, nullptr, 0, nullptr, request); });
}

}  // namespace slime::boundary
