#include "test/boundary/support/api.h"

namespace slime::boundary {
namespace {

template <typename Members>
ResultCode call_merge(ResultCode (*function)(int*, Members*), int* device,
                      const std::vector<int>* members, int count) {
  if (members == nullptr) return function(device, nullptr);
  Members wanted{};
  wanted.count = count;
  for (size_t i = 0; i < members->size(); ++i) wanted.devices[i] = (*members)[i];
  return function(device, &wanted);
}

}  // namespace

std::unique_ptr<Api> Api::of(const Plugin& plugin, int version) {
  auto api = std::make_unique<Api>();
  return api->bind(plugin.library(), version) ? std::move(api) : nullptr;
}

bool Api::complete() const {
  return with([](const auto* table) {
    const auto& t = *table;
    bool all = t.init && t.devices && t.get_properties && t.listen && t.connect && t.accept &&
               t.reg_mr && t.reg_mr_dma_buf && t.dereg_mr && t.isend && t.irecv && t.iflush &&
               t.test && t.close_send && t.close_recv && t.close_listen;
    if constexpr (requires { t.irecv_consumed; }) {
      all = all && !t.get_device_mr && !t.irecv_consumed;
    }
    if constexpr (requires { t.make_virtual_device; }) all = all && t.make_virtual_device;
    if constexpr (requires { t.finalize; }) all = all && t.finalize && t.set_net_attributes;
    return all;
  });
}

ResultCode Api::set_net_attributes(void* context) {
  return with([&](const auto* table) {
    if constexpr (requires { table->set_net_attributes; }) {
      return table->set_net_attributes(context, nullptr);
    }
    return nccl::kSuccess;
  });
}

ResultCode Api::merge(int* device, const std::vector<int>* members, int count) {
  return with([&](const auto* table) {
    if constexpr (requires { table->make_virtual_device; }) {
      return call_merge(table->make_virtual_device, device, members, count);
    }
    return nccl::kInternalError;
  });
}

// An offload handle fails the test, whatever is expected.
ResultCode Api::connect(int device, void* handle, void** comm) {
  nccl::NetDeviceHandle* offload = nullptr;
  const bool defined = config_.traffic_class != nccl::kTrafficClassUndefined;
  const ResultCode code =
      NetTable::connect(device, defined ? &config_ : nullptr, handle, comm, &offload);
  return offload == nullptr ? code : nccl::kInProgress;
}

ResultCode Api::accept(void* listening, void** comm) {
  nccl::NetDeviceHandle* offload = nullptr;
  const ResultCode code = NetTable::accept(listening, comm, &offload);
  return offload == nullptr ? code : nccl::kInProgress;
}

ResultCode Api::reg_dma_buf(void* comm, void* data, size_t bytes, int fd, void** mhandle) {
  return with([&](const auto* table) {
    return table->reg_mr_dma_buf(comm, data, bytes, nccl::kPointerHost, 0, fd, mhandle);
  });
}

ResultCode Api::irecv(void* comm, int n, void** data, const int64_t* sizes, int* tags,
                      void** mhandles, void** request) {
  size_t unsigned_sizes[64] = {};
  for (int i = 0; sizes != nullptr && i < n; ++i) {
    unsigned_sizes[i] = static_cast<size_t>(sizes[i]);
  }
  return NetTable::irecv(comm, n, data, sizes != nullptr ? unsigned_sizes : nullptr, tags, mhandles,
                         nullptr, request);
}

ResultCode Api::iflush(void* comm, void** request) {
  return with([&](const auto* table) {
    return table->iflush(comm, 1, nullptr, nullptr, nullptr, request);
  });
}

}  // namespace slime::boundary
