// Memory that FakeFabric's NICs may use.
#include <sys/mman.h>

#include <algorithm>

#include "test/support/fabric/fake_fabric_tables.h"

namespace slime::test {

fi_ops_mr FakeObjects::registrations =
    table<fi_ops_mr>([](fi_ops_mr& calls) { calls.regattr = register_memory; });

FakeFabric::Region::~Region() {
  if (mapping != nullptr) (void)::munmap(mapping, mapped);
}

int FakeObjects::register_memory(fid* of, const fi_mr_attr* attributes, uint64_t flags,
                                 fid_mr** made) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  return static_cast<int>(in.add_region(*in.domains_.at(of), *attributes, flags, made));
}

long FakeFabric::add_region(Domain& domain, const fi_mr_attr& attributes, uint64_t flags,
                            fid_mr** made) {
  if (registration_code_ != 0) return registration_code_;
  const auto& whole = reinterpret_cast<const fabric::MemoryAttributes&>(attributes);
  if (interface_ >= FI_VERSION(1, 19) && whole.later[0] != 0) {  // hmem_data
    complain("attributes of a registration are too short for the interface that was asked for");
  }
  const bool as_dma_buf = (flags & fabric::kMrDmaBuf) != 0;
  if (as_dma_buf && options_.version < fabric::kDmaBufVersion) return -FI_EBADFLAGS;
  if (as_dma_buf && !options_.dma_bufs) return -FI_EOPNOTSUPP;
  auto region = std::make_unique<Region>();
  region->in_device = attributes.iface == FI_HMEM_CUDA;
  if (region->in_device && (domain.caps & FI_HMEM) == 0) return -FI_ENOSYS;
  if (attributes.iov_count != 1) return -FI_EINVAL;
  if (as_dma_buf) {
    const auto& buffer = *reinterpret_cast<const fabric::DmaBuf*>(attributes.mr_iov);
    if (!map(buffer, region.get())) return -FI_EBADF;
  } else {
    region->memory = static_cast<std::byte*>(attributes.mr_iov->iov_base);
    region->start = reinterpret_cast<uint64_t>(region->memory);
    region->bytes = attributes.mr_iov->iov_len;
  }
  const uint64_t key = next_key_ += 0x100;
  region->base.fid = {FI_CLASS_MR, nullptr, &FakeObjects::fids};
  region->base.mem_desc = reinterpret_cast<void*>(key + 1);
  region->base.key = key;
  region->domain = &domain;
  region->access = attributes.access;
  if (options_.version < FI_VERSION(2, 5)) region->access |= FI_REMOTE_READ | FI_REMOTE_WRITE;
  ++domain.users;
  *made = &region->base;
  regions_[key] = std::move(region);
  return 0;
}

// The bytes are those of the file; at the address itself there may be none that this process can
// read.
bool FakeFabric::map(const fabric::DmaBuf& buffer, Region* region) const {
  region->mapped = buffer.offset + buffer.bytes;
  void* const mapping =
      ::mmap(nullptr, region->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.descriptor, 0);
  if (mapping == MAP_FAILED) return false;
  region->mapping = mapping;
  region->memory = static_cast<std::byte*>(mapping) + buffer.offset;
  region->start = buffer.start + buffer.offset;
  region->bytes = buffer.bytes;
  return true;
}

int FakeObjects::close_region(FakeFabric& in, const fid* object) {
  const auto found = std::ranges::find_if(
      in.regions_, [&](const auto& each) { return &each.second->base.fid == object; });
  FakeFabric::Domain& domain = *found->second->domain;
  in.make_visible(domain.nic, [&](const auto& one) { return one.key == found->first; });
  --domain.users;
  in.regions_.erase(found);
  return 0;
}

const FakeFabric::Region* FakeFabric::find_region(const Domain* domain, uint64_t key,
                                                  uint64_t address, uint64_t bytes,
                                                  uint64_t access) const {
  const auto found = regions_.find(key);
  if (found == regions_.end()) return nullptr;
  const Region& region = *found->second;
  const bool inside = address >= region.start && bytes <= region.bytes &&
                      address - region.start <= region.bytes - bytes;
  const bool shares = options_.version < FI_VERSION(2, 2) && region.domain->nic == domain->nic;
  const bool known = region.domain == domain || shares;
  return inside && known && (region.access & access) == access ? &region : nullptr;
}

}  // namespace slime::test
