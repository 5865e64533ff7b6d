#include "transports/fabric/endpoint.h"

#include <algorithm>

#include "transports/fabric/side_connection.h"

namespace slime::fabric {
namespace {

// Names of rdma/fi_endpoint.h and rdma/fi_ext.h of libfabric 2.6. Those of 1.17 end before them.
constexpr int kCudaApiPermitted = 10;       // FI_OPT_CUDA_API_PERMITTED, a bool as all of these
constexpr int kSharedMemoryPermitted = 11;  // FI_OPT_SHARED_MEMORY_PERMITTED
constexpr int kEfa = -(0xefa << 16);
constexpr int kEfaRnrRetry = kEfa;                // FI_OPT_EFA_RNR_RETRY, a size_t
constexpr int kEfaEmulatedRead = kEfa + 1;        // FI_OPT_EFA_EMULATED_READ
constexpr int kEfaEmulatedWrite = kEfa + 2;       // FI_OPT_EFA_EMULATED_WRITE
constexpr int kEfaUseDeviceRdma = kEfa + 4;       // FI_OPT_EFA_USE_DEVICE_RDMA
constexpr int kEfaUnsolicitedReceive = kEfa + 8;  // FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV
constexpr int kEfaWriteInOrder = kEfa + 6;        // FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES

constexpr size_t kRetryForEver = 7;

template <typename T>
int set(fid_ep* endpoint, int option, T value) {
  return ::fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, option, &value, sizeof value);
}

// Whether the provider copies in software for want of RDMA.
bool is_emulated(fid_ep* endpoint, int option) {
  bool emulated = false;
  size_t bytes = sizeof emulated;
  return ::fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, option, &emulated, &bytes) == 0 && emulated;
}

// Each write with remote data uses one receive of the provider. If the receiver is slow and none is
// free, the sender's NIC tries again without end. Without this use of receives the completion queue
// could overrun.
Result<void> set_efa_options(const Domain& domain, fid_ep* endpoint, EndpointCaps* caps) {
  if (const int code = set(endpoint, kEfaUseDeviceRdma, true); code != 0) {
    return fail(fabric_error(domain.symbols(), code,
                             "this NIC, or its driver, has no RDMA (FI_OPT_EFA_USE_DEVICE_RDMA)"));
  }
  if (is_emulated(endpoint, kEfaEmulatedWrite)) {
    return fail(make_error(Status::kUnsupported, 0,
                           "this NIC has no RDMA write (FI_OPT_EFA_EMULATED_WRITE): what arrives "
                           "would be copied by the receiver; use instances whose EFA has it"));
  }
  if (const int code_of_retry = set(endpoint, kEfaRnrRetry, kRetryForEver); code_of_retry != 0) {
    return fail(fabric_error(domain.symbols(), code_of_retry, "FI_OPT_EFA_RNR_RETRY was refused"));
  }
  (void)set(endpoint, kEfaUnsolicitedReceive, false);
  caps->lines_in_order = set(endpoint, kEfaWriteInOrder, true) == 0;
  caps->reads = !is_emulated(endpoint, kEfaEmulatedRead);
  return {};
}

// What an endpoint is asked for before it is enabled (fi_endpoint(3), fi_efa(7)). An error where
// the provider refuses what a rail cannot do without; options that it does not know are left out.
//
// Processes of one host talk through the NIC too: fences and confirmations rely on it. The CUDA
// calls of a provider could wait for the application's kernels, which wait for NCCL; so a provider
// that copies device memory by such calls gets none of it.
Result<EndpointCaps> set_options(const Domain& domain, fid_ep* endpoint) {
  EndpointCaps caps;
  (void)set(endpoint, kSharedMemoryPermitted, false);
  const bool without_cuda = set(endpoint, kCudaApiPermitted, false) == 0;
  caps.device_memory = domain.has_device_memory() && without_cuda &&
                       set(endpoint, FI_OPT_FI_HMEM_P2P, int{FI_HMEM_P2P_REQUIRED}) == 0;
  if (!domain.provider().starts_with("efa")) return caps;
  if (auto set = set_efa_options(domain, endpoint, &caps); !set) {
    return fail(std::move(set.error()));
  }
  return caps;
}

}  // namespace

Endpoint& Endpoint::operator=(Endpoint&& other) noexcept {
  endpoint_ = std::move(other.endpoint_);
  completions_ = std::move(other.completions_);
  addresses_ = std::move(other.addresses_);
  caps_ = other.caps_;
  name_ = std::move(other.name_);
  return *this;
}

Result<Endpoint> Endpoint::open(const Domain& domain, const EndpointSizes& sizes) {
  Endpoint made;
  fi_av_attr of_addresses = {};
  of_addresses.type = FI_AV_TABLE;
  of_addresses.count = 1;
  fid_av* addresses = nullptr;
  if (const int code = ::fi_av_open(domain.get(), &of_addresses, &addresses, nullptr); code != 0) {
    return fail(fabric_error(domain.symbols(), code, "fi_av_open failed"));
  }
  made.addresses_.reset(addresses);
  fi_cq_attr of_completions = {};
  of_completions.size = sizes.completions;
  of_completions.format = FI_CQ_FORMAT_DATA;
  fid_cq* completions = nullptr;
  if (const int code = ::fi_cq_open(domain.get(), &of_completions, &completions, nullptr);
      code != 0) {
    return fail(fabric_error(domain.symbols(), code, "fi_cq_open for %zu completions failed",
                             sizes.completions));
  }
  made.completions_.reset(completions);
  auto opened = made.create(domain, sizes);
  if (opened) opened = made.enable(domain);
  if (!opened) return fail(std::move(opened.error()));
  return made;
}

Result<void> Endpoint::create(const Domain& domain, const EndpointSizes& sizes) {
  const Info wanted = duplicate(domain.symbols(), &domain.info());
  if (wanted == nullptr) return fail(make_error(Status::kNoMemory, 0, "fi_dupinfo failed"));
  const auto limit = [](size_t* size, size_t most) {
    if (most > 0) *size = std::min(*size, most);
  };
  if (domain.traits().in_hardware) {
    limit(&wanted->tx_attr->size, sizes.sends);
    limit(&wanted->rx_attr->size, sizes.receives);
  }
  fid_ep* endpoint = nullptr;
  if (const int code = ::fi_endpoint(domain.get(), wanted.get(), &endpoint, nullptr); code != 0) {
    return fail(fabric_error(domain.symbols(), code,
                             "fi_endpoint failed; each connection takes one, and the domain %s has "
                             "%zu (ep_cnt, see fi_info -v)",
                             domain.info().domain_attr->name, domain.info().domain_attr->ep_cnt));
  }
  endpoint_.reset(endpoint);
  return {};
}

Result<void> Endpoint::enable(const Domain& domain) {
  const Symbols& symbols = domain.symbols();
  int code = ::fi_ep_bind(get(), &addresses_->fid, 0);
  if (code == 0) code = ::fi_ep_bind(get(), &completions_->fid, FI_TRANSMIT | FI_RECV);
  if (code != 0) return fail(fabric_error(symbols, code, "fi_ep_bind failed"));
  auto caps = set_options(domain, get());
  if (!caps) return fail(std::move(caps.error()));
  caps_ = *caps;
  if (code = ::fi_enable(get()); code != 0) {
    return fail(fabric_error(symbols, code, "fi_enable failed"));
  }
  name_.resize(kMaxName);
  size_t bytes = name_.size();
  code = ::fi_getname(&endpoint_->fid, name_.data(), &bytes);
  if (code == 0 && bytes >= kMaxName) code = -FI_ETOOSMALL;
  if (code != 0) {
    return fail(fabric_error(symbols, code, "fi_getname failed with %zu bytes", bytes));
  }
  name_.resize(bytes);
  return {};
}

std::string Endpoint::describe(const Domain& domain, const fi_cq_err_entry& error) const {
  char text[128] = "";
  const char* const detail =
      ::fi_cq_strerror(completions(), error.prov_errno, error.err_data, text, sizeof text);
  return std::string(domain.symbols().strerror(error.err)) + " (" + std::to_string(error.err) +
         "; provider " + domain.provider() + ": " + (detail != nullptr ? detail : text) + ", " +
         std::to_string(error.prov_errno) + ")";
}

Result<fi_addr_t> Endpoint::add_peer(const Domain& domain, std::span<const std::byte> name) {
  fi_addr_t peer = FI_ADDR_UNSPEC;
  const int added = ::fi_av_insert(addresses_.get(), name.data(), 1, &peer, 0, nullptr);
  if (added == 1) return peer;
  return fail(fabric_error(domain.symbols(), added < 0 ? added : -FI_EINVAL,
                           "the peer's address cannot be used (fi_av_insert)"));
}

}  // namespace slime::fabric
