#include "test/boundary/support/coll_api.h"

namespace slime::boundary {
namespace {

template <int kVersion, typename Table, typename Properties>
class CollApiOf final : public CollApi {
 public:
  using Count = std::conditional_t<(kVersion < 9), int, size_t>;
  using RegSize = std::conditional_t<(kVersion < 8), int, size_t>;

  explicit CollApiOf(const void* table) : table_(static_cast<const Table*>(table)) {}

  const char* name() const override { return table_->name; }

  bool complete() const override {
    const Table& t = *table_;
    bool all = t.init && t.devices && t.get_properties && t.listen && t.connect &&
               t.reduce_support && t.reg_mr && t.reg_mr_dma_buf && t.dereg_mr && t.iallreduce &&
               t.iflush && t.test && t.close_coll && t.close_listen;
    if constexpr (kVersion >= 8) all = all && !t.iallgather && !t.ireducescatter;
    if constexpr (kVersion >= 9) all = all && t.make_virtual_device;
    if constexpr (kVersion >= 11) all = all && t.finalize;
    return all;
  }

  ResultCode init() override {
    if constexpr (kVersion >= 11) {
      return table_->init(&context, 0x51e, Log::logger());
    } else {
      return table_->init(Log::logger());
    }
  }
  ResultCode finalize() override {
    if constexpr (kVersion >= 11) return table_->finalize(context);
    return nccl::kSuccess;
  }
  ResultCode devices(int* count) override { return table_->devices(count); }
  ResultCode device_name(int device, const char** name) override {
    Properties properties{};
    const ResultCode code = table_->get_properties(device, &properties);
    if (code == nccl::kSuccess) *name = properties.name;
    return code;
  }
  ResultCode listen(int device, void* handle, void** comm) override {
    if constexpr (kVersion >= 11) {
      return table_->listen(context, device, handle, comm);
    } else {
      return table_->listen(device, handle, comm);
    }
  }
  ResultCode connect(void** handles, int ranks, int rank, void* listening, void** comm) override {
    return table_->connect(handles, ranks, rank, listening, comm);
  }
  ResultCode reduce_support(int type, int op, int* supported) override {
    return table_->reduce_support(static_cast<nccl::DataType>(type),
                                  static_cast<nccl::ReduceOp>(op), supported);
  }
  ResultCode reg(void* comm, void* data, int64_t bytes, int type, void** mhandle) override {
    return table_->reg_mr(comm, data, static_cast<RegSize>(bytes), type, mhandle);
  }
  ResultCode reg_dma_buf(void* comm, void* data, size_t bytes, int fd, void** mhandle) override {
    return table_->reg_mr_dma_buf(comm, data, bytes, nccl::kPointerHost, 0, fd, mhandle);
  }
  ResultCode dereg(void* comm, void* mhandle) override { return table_->dereg_mr(comm, mhandle); }
  ResultCode iallreduce(void* comm, const AllreduceCall& call, void** request) override {
    return table_->iallreduce(comm, call.send, call.receive, static_cast<Count>(call.count),
                              static_cast<nccl::DataType>(call.type),
                              static_cast<nccl::ReduceOp>(call.op), call.send_mhandle,
                              call.receive_mhandle, request);
  }
  ResultCode iflush(void* comm, void** request) override {
    return table_->iflush(comm, nullptr, 0, nullptr, request);
  }
  ResultCode test(void* request, int* done, int* size) override {
    return table_->test(request, done, size);
  }
  ResultCode close_coll(void* comm) override { return table_->close_coll(comm); }
  ResultCode close_listen(void* comm) override { return table_->close_listen(comm); }

 private:
  const Table* const table_;
};

}  // namespace

std::unique_ptr<CollApi> CollApi::of(const Plugin& plugin, int version) {
  using namespace nccl;
  const void* const table = plugin.find("ncclCollNetPlugin_v" + std::to_string(version));
  if (table == nullptr) return nullptr;
  switch (version) {
    case 6:
      return std::make_unique<CollApiOf<6, CollNetV6, PropertiesV6>>(table);
    case 7:
      return std::make_unique<CollApiOf<7, CollNetV7, PropertiesV7>>(table);
    case 8:
      return std::make_unique<CollApiOf<8, CollNetV8, PropertiesV8>>(table);
    case 9:
      return std::make_unique<CollApiOf<9, CollNetV9, PropertiesV9>>(table);
    case 10:
      return std::make_unique<CollApiOf<10, CollNetV10, PropertiesV10>>(table);
    case 11:
      return std::make_unique<CollApiOf<11, CollNetV11, PropertiesV11>>(table);
    case 12:
      return std::make_unique<CollApiOf<12, CollNetV12, PropertiesV12>>(table);
  }
  return nullptr;
}

}  // namespace slime::boundary
