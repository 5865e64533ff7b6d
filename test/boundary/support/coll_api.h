// The CollNet tables of all versions behind one set of calls. See api.h.
#pragma once

#include <memory>

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

// As Api, for CollNet.
class CollApi : public tools::CollTable {
 public:
  static std::unique_ptr<CollApi> of(const Plugin& plugin, int version);  // nullptr: not exported

  bool complete() const;  // all that NCCL calls is there, and no more than it may be
  ResultCode init() { return CollTable::init(Log::logger(), 0x51e); }
  ResultCode reduce_support(int type, int op, int* supported) {
    return CollTable::reduce_support(static_cast<nccl::DataType>(type),
                                     static_cast<nccl::ReduceOp>(op), supported);
  }
  ResultCode reg_dma_buf(void* comm, void* data, size_t bytes, int fd, void** mhandle);
  ResultCode iallreduce(void* comm, const AllreduceCall& call, void** request) {
    return CollTable::iallreduce(comm, call.send, call.receive, static_cast<size_t>(call.count),
                                 static_cast<nccl::DataType>(call.type),
                                 static_cast<nccl::ReduceOp>(call.op), call.send_mhandle,
                                 call.receive_mhandle, request);
  }
  ResultCode iflush(void* comm, void** request);
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
             line.text.find("has not contributed for ") == std::string::npos;
    }));
  }
  // The call was refused with one sentence that holds `part`.
  void refused(ResultCode code, const std::string& part,
               ResultCode expected = nccl::kInternalError) {
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
