#include "test/boundary/support/api.h"

namespace slime::boundary {
namespace {

template <typename Properties>
AnyProperties widen(const Properties& from) {
  AnyProperties to;
  to.name = from.name;
  to.pci_path = from.pci_path;
  to.guid = from.guid;
  to.pointer_support = from.pointer_support;
  to.speed_mbps = from.speed_mbps;
  to.port = from.port;
  to.latency_us = from.latency_us;
  to.max_comms = from.max_comms;
  to.max_receives = from.max_receives;
  if constexpr (requires { from.net_device_type; }) {
    to.net_device_type = from.net_device_type;
    to.net_device_version = from.net_device_version;
  }
  if constexpr (requires { from.registration_is_global; }) {
    to.registration_is_global = from.registration_is_global;
  }
  if constexpr (requires { from.force_flush; }) to.force_flush = from.force_flush;
  if constexpr (requires { from.virtual_device; }) {
    const int* const first = from.virtual_device.devices;
    to.members = std::vector<int>(first, first + from.virtual_device.count);
    to.max_p2p_bytes = from.max_p2p_bytes;
    to.max_collective_bytes = from.max_collective_bytes;
  }
  if constexpr (requires { from.max_multi_request_size; }) {
    to.max_multi_request_size = from.max_multi_request_size;
  }
  if constexpr (requires { from.rail_id; }) {
    to.rail_id = from.rail_id;
    to.plane_id = from.plane_id;
  }
  return to;
}

template <typename VirtualDevice, typename Function>
ResultCode call_merge(Function function, int* device, const std::vector<int>* members, int count) {
  if (members == nullptr) return function(device, nullptr);
  VirtualDevice wanted{};
  wanted.count = count;
  for (size_t i = 0; i < members->size(); ++i) wanted.devices[i] = (*members)[i];
  return function(device, &wanted);
}

template <int kVersion, typename Table, typename Properties>
class ApiOf final : public Api {
 public:
  using Size = std::conditional_t<(kVersion < 9), int, size_t>;
  using RegSize = std::conditional_t<(kVersion < 8), int, size_t>;

  explicit ApiOf(const void* table) : table_(static_cast<const Table*>(table)) {
    version = kVersion;
  }

  const char* name() const override { return table_->name; }

  bool complete() const override {
    const Table& t = *table_;
    bool all = t.init && t.devices && t.get_properties && t.listen && t.connect && t.accept &&
               t.reg_mr && t.reg_mr_dma_buf && t.dereg_mr && t.isend && t.irecv && t.iflush &&
               t.test && t.close_send && t.close_recv && t.close_listen;
    if constexpr (kVersion >= 7) all = all && !t.get_device_mr && !t.irecv_consumed;
    if constexpr (kVersion >= 9) all = all && t.make_virtual_device;
    if constexpr (kVersion >= 11) all = all && t.finalize && t.set_net_attributes;
    return all;
  }

  ResultCode init(nccl::Logger logger, int traffic_class) override {
    config.traffic_class = traffic_class;
    if constexpr (kVersion >= 11) {
      return table_->init(&context, 0x51e, &config, logger, nullptr);
    } else if constexpr (kVersion == 10) {
      return table_->init(logger, nullptr);
    } else {
      return table_->init(logger);
    }
  }
  ResultCode init_into([[maybe_unused]] void** into) override {
    if constexpr (kVersion >= 11) return table_->init(into, 1, nullptr, Log::logger(), nullptr);
    return nccl::kSuccess;
  }
  ResultCode finalize([[maybe_unused]] void* of) override {
    if constexpr (kVersion >= 11) return table_->finalize(of);
    return nccl::kSuccess;
  }
  ResultCode set_net_attributes([[maybe_unused]] void* of) override {
    if constexpr (kVersion >= 11) return table_->set_net_attributes(of, nullptr);
    return nccl::kSuccess;
  }
  ResultCode devices(int* count) override { return table_->devices(count); }
  ResultCode properties(int device, AnyProperties* to) override {
    if (to == nullptr) return table_->get_properties(device, nullptr);
    Properties from;
    const ResultCode code = table_->get_properties(device, &from);
    if (code == nccl::kSuccess) *to = widen(from);
    return code;
  }
  ResultCode merge([[maybe_unused]] int* device, [[maybe_unused]] const std::vector<int>* members,
                   [[maybe_unused]] int count) override {
    if constexpr (kVersion >= 9) {
      using Device = std::remove_reference_t<decltype(Properties::virtual_device)>;
      return call_merge<Device>(table_->make_virtual_device, device, members, count);
    }
    return nccl::kInternalError;
  }
  ResultCode listen(int device, void* handle, void** comm) override {
    if constexpr (kVersion >= 11) {
      return table_->listen(context, device, handle, comm);
    } else {
      return table_->listen(device, handle, comm);
    }
  }
  ResultCode connect(int device, void* handle, void** comm) override {
    nccl::NetDeviceHandle* offload = nullptr;
    ResultCode code = nccl::kInternalError;
    if constexpr (kVersion >= 11) {
      code = table_->connect(context, device, handle, comm, &offload);
    } else if constexpr (kVersion == 10) {
      const bool defined = config.traffic_class != nccl::kTrafficClassUndefined;
      code = table_->connect(device, defined ? &config : nullptr, handle, comm, &offload);
    } else if constexpr (kVersion >= 7) {
      code = table_->connect(device, handle, comm, &offload);
    } else {
      code = table_->connect(device, handle, comm);
    }
    return offload == nullptr ? code : nccl::kInProgress;  // fails whatever is expected
  }
  ResultCode accept(void* listening, void** comm) override {
    nccl::NetDeviceHandle* offload = nullptr;
    ResultCode code = nccl::kInternalError;
    if constexpr (kVersion >= 7) {
      code = table_->accept(listening, comm, &offload);
    } else {
      code = table_->accept(listening, comm);
    }
    return offload == nullptr ? code : nccl::kInProgress;
  }
  ResultCode reg(void* comm, void* data, int64_t bytes, int type, void** mhandle) override {
    return table_->reg_mr(comm, data, static_cast<RegSize>(bytes), type, mhandle);
  }
  ResultCode reg_dma_buf(void* comm, void* data, size_t bytes, int fd, void** mhandle) override {
    return table_->reg_mr_dma_buf(comm, data, bytes, nccl::kPointerHost, 0, fd, mhandle);
  }
  ResultCode dereg(void* comm, void* mhandle) override { return table_->dereg_mr(comm, mhandle); }
  ResultCode isend(void* comm, const void* data, int64_t bytes, int tag, void* mhandle,
                   void** request) override {
    void* const from = const_cast<void*>(data);
    const Size size = static_cast<Size>(bytes);
    if constexpr (kVersion >= 10) {
      return table_->isend(comm, from, size, tag, mhandle, nullptr, request);
    } else {
      return table_->isend(comm, from, size, tag, mhandle, request);
    }
  }
  ResultCode irecv(void* comm, int n, void** data, const int64_t* sizes, int* tags, void** mhandles,
                   void** request) override {
    std::array<Size, 64> narrowed{};
    for (int i = 0; sizes != nullptr && i < n; ++i) narrowed[i] = static_cast<Size>(sizes[i]);
    Size* const passed = sizes ? narrowed.data() : nullptr;
    if constexpr (kVersion >= 10) {
      return table_->irecv(comm, n, data, passed, tags, mhandles, nullptr, request);
    } else {
      return table_->irecv(comm, n, data, passed, tags, mhandles, request);
    }
  }
  ResultCode iflush(void* comm, void** request) override {
    return table_->iflush(comm, 1, nullptr, nullptr, nullptr, request);
  }
  ResultCode test(void* request, int* done, int* sizes) override {
    return table_->test(request, done, sizes);
  }
  ResultCode close_send(void* comm) override { return table_->close_send(comm); }
  ResultCode close_recv(void* comm) override { return table_->close_recv(comm); }
  ResultCode close_listen(void* comm) override { return table_->close_listen(comm); }

 private:
  const Table* const table_;
};

}  // namespace

std::unique_ptr<Api> Api::of(const Plugin& plugin, int version) {
  const void* const table = plugin.find("ncclNetPlugin_v" + std::to_string(version));
  if (table == nullptr) return nullptr;
  switch (version) {
    case 6:
      return std::make_unique<ApiOf<6, nccl::NetV6, nccl::PropertiesV6>>(table);
    case 7:
      return std::make_unique<ApiOf<7, nccl::NetV7, nccl::PropertiesV7>>(table);
    case 8:
      return std::make_unique<ApiOf<8, nccl::NetV8, nccl::PropertiesV8>>(table);
    case 9:
      return std::make_unique<ApiOf<9, nccl::NetV9, nccl::PropertiesV9>>(table);
    case 10:
      return std::make_unique<ApiOf<10, nccl::NetV10, nccl::PropertiesV10>>(table);
    case 11:
      return std::make_unique<ApiOf<11, nccl::NetV11, nccl::PropertiesV11>>(table);
    case 12:
      return std::make_unique<ApiOf<12, nccl::NetV12, nccl::PropertiesV12>>(table);
  }
  return nullptr;
}

}  // namespace slime::boundary
