// The CollNet tables of all versions behind one set of calls. See api.h.
#pragma once

#include <array>
#include <memory>

#include "plugin/abi/collnet_tables.h"
#include "test/boundary/support/net.h"

namespace slime::boundary {

struct AllreduceCall {
  void* send = nullptr;
  void* receive = nullptr;
  int64_t count = 0;
  int type = nccl::kInt32;
  int op = nccl::kSum;
  void* send_mhandle = nullptr;
  void* receive_mhandle = nullptr;
};

class CollApi {
 public:
  static std::unique_ptr<CollApi> of(const Plugin& plugin, int version);  // nullptr: not exported
  virtual ~CollApi() = default;

  void* context = nullptr;  // of the last init, for v11 and later

  virtual const char* name() const = 0;
  virtual bool complete() const = 0;  // all that NCCL calls is there, and no more than it may be
  virtual ResultCode init() = 0;
  virtual ResultCode finalize() = 0;  // v11; success before
  virtual ResultCode devices(int* count) = 0;
  virtual ResultCode device_name(int device, const char** name) = 0;
  virtual ResultCode listen(int device, void* handle, void** comm) = 0;
  virtual ResultCode connect(void** handles, int ranks, int rank, void* listening, void** comm) = 0;
  virtual ResultCode reduce_support(int type, int op, int* supported) = 0;
  virtual ResultCode reg(void* comm, void* data, int64_t bytes, int type, void** mhandle) = 0;
  virtual ResultCode reg_dma_buf(void* comm, void* data, size_t bytes, int fd, void** mhandle) = 0;
  virtual ResultCode dereg(void* comm, void* mhandle) = 0;
  virtual ResultCode iallreduce(void* comm, const AllreduceCall& call, void** request) = 0;
  virtual ResultCode iflush(void* comm, void** request) = 0;
  virtual ResultCode test(void* request, int* done, int* size) = 0;
  virtual ResultCode close_coll(void* comm) = 0;
  virtual ResultCode close_listen(void* comm) = 0;
};

// A test of one version's tables, net and CollNet.
class CollTest : public EveryVersion {
 protected:
  int traffic_class_ = nccl::kTrafficClassUndefined;  // of the net's configuration

  CollTest() : owned_(CollApi::of(plugin_, GetParam())), coll_(*owned_) {}

  // As NCCL: the net first.
  void init() {
    ASSERT_EQ(net_.init(Log::logger(), traffic_class_), nccl::kSuccess) << Log::text();
    ASSERT_EQ(coll_.init(), nccl::kSuccess) << Log::text();
    Log::clear();
  }
  void finalize_both() {
    EXPECT_EQ(coll_.finalize(), nccl::kSuccess);
    finalize();
  }
  // Without those about ranks that are late, which come whenever a machine is busy.
  static size_t warnings() {
    const auto lines = Log::lines();
    return static_cast<size_t>(std::ranges::count_if(lines, [](const LogLine& line) {
      return line.level == nccl::kLogWarn &&
             line.text.find("has not contributed for 300 ms") == std::string::npos;
    }));
  }
  // The call was refused with one sentence that holds `part`.
  void refused(ResultCode code, const std::string& part,
               ResultCode expected = nccl::kInvalidArgument) {
    EXPECT_EQ(code, expected) << part;
    EXPECT_EQ(warnings(), 1u) << part << "\n" << Log::text();
    EXPECT_EQ(Log::count(nccl::kLogWarn, part), 1u) << part << "\n" << Log::text();
    Log::clear();
  }

 private:
  const std::unique_ptr<CollApi> owned_;

 protected:
  CollApi& coll_;
};

}  // namespace slime::boundary
