#include "transports/fabric/domain.h"

#include <cerrno>

namespace slime::fabric {
namespace {

Error too_old(std::string_view provider, uint32_t version, const char* needed, const char* why) {
  return make_error(Status::kUnsupported, 0,
                    "libfabric: provider %.*s of version %s is not used: %s; install libfabric %s "
                    "or later",
                    static_cast<int>(provider.size()), provider.data(),
                    version_name(version).c_str(), why, needed);
}

}  // namespace

Result<Traits> traits_of(std::string_view provider, uint32_t version) {
  if (provider == "efa") {
    if (version < FI_VERSION(1, 19)) {
      return fail(too_old(provider, version, "1.19",
                          "it sends RDMA writes as messages, or (1.18.0) registers no memory for "
                          "them"));
    }
    // FI_MORE is honoured from 1.22 on, but some doorbells were lost until 2.6. Up to 2.4 the
    // provider lets peers read and write all that is registered, whatever access was asked for.
    return Traits{.in_hardware = true,
                  .device_memory = true,
                  .more = version >= FI_VERSION(2, 6),
                  .keeps_rights = version >= FI_VERSION(2, 5),
                  .reads = true};
  }
  if (provider == "shm") return Traits{.reads_peer_memory = true, .refuses_silently = true};
  const bool verbs = provider.starts_with("verbs");
  const bool counts_since_118 = verbs || provider.starts_with("tcp") || provider.starts_with("net");
  if (counts_since_118 && version < FI_VERSION(1, 18)) {
    return fail(too_old(provider, version, "1.18",
                        "it does not say how many bytes have arrived (fi_cq(3), \"len\")"));
  }
  Traits traits{.in_hardware = verbs, .delivery_complete = !verbs};
  if (provider == "verbs;ofi_rxm" && version <= FI_VERSION(2, 6)) {
    traits.fault =
        "up to libfabric 2.6 its ofi_rxm uses a connection that it has freed when an endpoint "
        "closes, and the process may crash; use NCCL_SLIME_TRANSPORTS=verbs";
  }
  return traits;
}

Result<std::unique_ptr<Domain>> Domain::open(const Symbols& symbols, Info info,
                                             const Traits& traits) {
  std::unique_ptr<Domain> domain(new Domain(symbols, std::move(info), traits));
  fi_info& found = *domain->info_;
  fid_fabric* fabric = nullptr;
  if (const int code = symbols.fabric(found.fabric_attr, &fabric, nullptr); code != 0) {
    return fail(fabric_error(symbols, code, "fi_fabric for %s (%s) failed", found.domain_attr->name,
                             found.fabric_attr->prov_name));
  }
  domain->fabric_.reset(fabric);
  fid_domain* opened = nullptr;
  if (const int code = ::fi_domain(fabric, &found, &opened, nullptr); code != 0) {
    return fail(fabric_error(symbols, code, "fi_domain for %s (%s) failed", found.domain_attr->name,
                             found.fabric_attr->prov_name));
  }
  domain->domain_.reset(opened);
  return domain;
}

// `buffer`: null where the range is registered by its address.
int Domain::ask_for_memory(const MemoryRange& range, const DmaBuf* buffer, uint64_t wanted_key,
                           uint64_t access, fid_mr** region) const {
  const bool in_device = range.kind == MemoryKind::kCuda;
  const iovec piece = {range.address, range.bytes};
  MemoryAttributes asked;
  fi_mr_attr& attributes = asked.known;
  attributes.mr_iov = buffer == nullptr ? &piece : reinterpret_cast<const iovec*>(buffer);
  attributes.iov_count = 1;
  attributes.access = access;
  attributes.requested_key = wanted_key;
  // Which GPU it is matters to providers that copy.
  attributes.iface = in_device ? FI_HMEM_CUDA : FI_HMEM_SYSTEM;
  return ::fi_mr_regattr(get(), &attributes, buffer == nullptr ? 0 : kMrDmaBuf, region);
}

Result<Handle<fid_mr>> Domain::register_memory(const MemoryRange& range, uint64_t wanted_key,
                                               uint64_t access) const {
  const bool as_dma_buf = range.dma_buf >= 0;
  const uint64_t start = reinterpret_cast<uint64_t>(range.address) - range.dma_buf_offset;
  const DmaBuf buffer = {range.dma_buf, range.dma_buf_offset, range.bytes, start};
  fid_mr* region = nullptr;
  const int code =
      ask_for_memory(range, as_dma_buf ? &buffer : nullptr, wanted_key, access, &region);
  if (code == 0) return Handle<fid_mr>(region);
  return fail(fabric_error(
      symbols_, code, "%zu bytes at %p cannot be registered%s; see %s, and mr_cnt (fi_info -v)",
      range.bytes, range.address, as_dma_buf ? " as a DMA-BUF" : "",
      range.kind == MemoryKind::kCuda ? "dmesg" : "`ulimit -l`"));
}

uint64_t Domain::access_of(uint8_t rights) const {
  const uint64_t of_peers = ((rights & kRemoteWrite) != 0 ? FI_REMOTE_WRITE : 0) |
                            ((rights & kRemoteRead) != 0 ? FI_REMOTE_READ : 0);
  return traits_.reads ? FI_WRITE | FI_READ | of_peers : FI_WRITE | (of_peers & ~FI_REMOTE_READ);
}

bool Domain::takes_dma_bufs() const {
  if (interface_version(symbols_) < kDmaBufVersion) return false;
  const DmaBuf none = {.descriptor = -1, .bytes = 1};
  fid_mr* region = nullptr;
  errno = 0;  // some versions return it, though the call has not set it
  const int code =
      ask_for_memory({nullptr, 1, MemoryKind::kCuda}, &none, 0, access_of(kRemoteWrite), &region);
  if (code == 0) (void)::fi_close(&region->fid);
  return code == -FI_EBADF;
}

}  // namespace slime::fabric
