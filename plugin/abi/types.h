// NCCL's plugin ABI under our own names: the types that all API versions share.
//
// Sources: nccl.h.in, src/include/nccl_common.h, src/include/nccl_device/net_device.h and
// src/include/plugin/net/net_v*.h of NCCL v2.13.4 ... v2.30.7. Layouts are checked at compile time
// in plugin/abi/layout_check.cc; values are compared with an installed nccl.h in test/boundary.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slime::nccl {

// ncclResult_t
enum ResultCode : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

// ncclDebugLogLevel
enum LogLevel : int {
  kLogNone = 0,
  kLogVersion = 1,
  kLogWarn = 2,
  kLogInfo = 3,
  kLogAbort = 4,
  kLogTrace = 5,
};

// ncclDebugLogSubSys: bits that NCCL_DEBUG_SUBSYS selects.
inline constexpr unsigned long kSubsystemInit = 0x1;
inline constexpr unsigned long kSubsystemNet = 0x10;

// ncclDebugLogger_t
using Logger = void (*)(LogLevel level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

// ncclProfilerCallback_t: accepted and not called; we define no network events.
using ProfilerCallback = ResultCode (*)(void** event, int type, void* parent, int64_t plugin_id,
                                        void* extra);

inline constexpr size_t kHandleMaxBytes = 128;  // NCCL_NET_HANDLE_MAXSIZE since 2.12

// Kinds of memory: bits in the properties, a value in regMr.
inline constexpr int kPointerHost = 0x1;
inline constexpr int kPointerCuda = 0x2;
inline constexpr int kPointerDmaBuf = 0x4;

// NCCL (v9 tables and later) puts this into *request of an irecv whose completion it ignores.
inline constexpr uintptr_t kOptionalReceiveCompletion = 0x1;

inline constexpr int kMaxDevicesPerNic = 4;     // v9 ... v11
inline constexpr int kMaxDevicesPerNicV12 = 8;  // v12
inline constexpr int kTrafficClassUndefined = -1;
inline constexpr int16_t kNetIdUndefined = -1;  // railId, planeId
inline constexpr int kNetDeviceInvalidVersion = 0;

// ncclNetDeviceType: the processor that runs the transfer; here it is always the host.
enum NetDeviceType : int { kNetDeviceHost = 0, kNetDeviceUnpack = 1 };

// ncclNetDeviceHandle_v7 ... v12: device offload, which the plugin does not offer.
struct NetDeviceHandle {
  NetDeviceType type;
  int version;
  void* handle;
  size_t size;
  int needs_proxy_progress;
};

// ncclNetCommConfig_v10 ... v12
struct NetCommConfig {
  int traffic_class;
};

// ncclNetCommAttr_v11, v12
struct NetCommAttributes {
  int32_t max_concurrent_peers;
  int32_t min_concurrent_peers;
  int32_t max_flows_per_peer;
  int32_t min_flows_per_peer;
};

// ncclNetAttr_v11, v12: a hint about the traffic to come.
struct NetAttributes {
  NetCommAttributes send;
  NetCommAttributes receive;
  uint32_t operation;
  uint32_t algorithm;
  uint32_t protocol;
};

}  // namespace slime::nccl
