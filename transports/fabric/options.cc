#include "transports/fabric/options.h"

namespace slime::fabric {
namespace {

// Names of rdma/fi_endpoint.h and rdma/fi_ext.h of libfabric 2.6. Those of 1.17 end before them.
constexpr int kCudaApiPermitted = 10;       // FI_OPT_CUDA_API_PERMITTED, a bool as all of these
constexpr int kSharedMemoryPermitted = 11;  // FI_OPT_SHARED_MEMORY_PERMITTED
constexpr int kEfa = -(0xefa << 16);
constexpr int kEfaRnrRetry = kEfa;                // FI_OPT_EFA_RNR_RETRY, a size_t
constexpr int kEfaEmulatedWrite = kEfa + 2;       // FI_OPT_EFA_EMULATED_WRITE
constexpr int kEfaUseDeviceRdma = kEfa + 4;       // FI_OPT_EFA_USE_DEVICE_RDMA
constexpr int kEfaUnsolicitedReceive = kEfa + 8;  // FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV
constexpr int kEfaWriteInOrder = kEfa + 6;        // FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES

constexpr size_t kRetryForEver = 7;

template <typename T>
int set(fid_ep* endpoint, int option, T value) {
  return ::fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, option, &value, sizeof value);
}

// A write with remote data takes a receive of the provider's, so that a receiver that is slow keeps
// its sender waiting: the NIC asks again without end. Without receives the completion queue could
// overrun.
Result<EndpointCaps> set_efa_options(const Domain& domain, fid_ep* endpoint) {
  if (const int code = set(endpoint, kEfaUseDeviceRdma, true); code != 0) {
    return fail(fabric_error(domain.symbols(), code,
                             "this NIC, or its driver, has no RDMA (FI_OPT_EFA_USE_DEVICE_RDMA)"));
  }
  bool emulated = false;
  size_t bytes = sizeof emulated;
  const int code =
      ::fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, kEfaEmulatedWrite, &emulated, &bytes);
  if (code == 0 && emulated) {
    return fail(make_error(Status::kUnsupported, 0,
                           "this NIC has no RDMA write (FI_OPT_EFA_EMULATED_WRITE): what arrives "
                           "would be copied by the receiver; use instances whose EFA has it"));
  }
  if (const int code_of_retry = set(endpoint, kEfaRnrRetry, kRetryForEver); code_of_retry != 0) {
    return fail(fabric_error(domain.symbols(), code_of_retry, "FI_OPT_EFA_RNR_RETRY was refused"));
  }
  (void)set(endpoint, kEfaUnsolicitedReceive, false);
  return EndpointCaps{.lines_in_order = set(endpoint, kEfaWriteInOrder, true) == 0};
}

}  // namespace

// Processes of one host talk through the NIC too: fences and confirmations rely on it. The CUDA
// calls of a provider could wait for the application's kernels, which wait for NCCL.
Result<EndpointCaps> set_options(const Domain& domain, fid_ep* endpoint) {
  (void)set(endpoint, kSharedMemoryPermitted, false);
  (void)set(endpoint, kCudaApiPermitted, false);
  if (domain.provider().starts_with("efa")) return set_efa_options(domain, endpoint);
  return EndpointCaps{};
}

}  // namespace slime::fabric
