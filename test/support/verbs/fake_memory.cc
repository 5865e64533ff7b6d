// Memory that FakeVerbs' NICs may use.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "test/support/verbs/fake_verbs.h"

namespace slime::test {

FakeVerbs::Region::~Region() {
  if (mapping != nullptr) (void)::munmap(mapping, mapped);
}

bool FakeVerbs::fails_registration() {
  if (registration_code_ == 0 || registrations_left_-- > 0) return false;
  registrations_left_ = 0;
  errno = registration_code_;
  return true;
}

ibv_mr* FakeVerbs::register_host(ibv_pd* pd, void* address, size_t bytes, unsigned access) {
  if (fails_registration()) return nullptr;
  auto region = std::make_unique<Region>();
  region->bytes = static_cast<std::byte*>(address);
  region->start = reinterpret_cast<uint64_t>(address);
  return add_region(pd, std::move(region), bytes, access);
}

// What is wrong is asked in the kernel's order (uverbs_std_types_mr.c). The bytes are those of the
// file; at the address itself there may be none that this process can read.
ibv_mr* FakeVerbs::register_dma_buf(ibv_pd* pd, const DmaBuf& buffer, unsigned access) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  errno = 0;
  if (!options_.dma_bufs) errno = EOPNOTSUPP;
  if (errno == 0 && fails_registration()) return nullptr;
  if (errno == 0 && buffer.offset % page != buffer.start % page) errno = EINVAL;
  if (errno != 0 || ::fcntl(buffer.fd, F_GETFD) < 0) return nullptr;
  const size_t mapped = buffer.offset + buffer.bytes;
  void* const mapping = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.fd, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto region = std::make_unique<Region>();
  region->mapping = mapping;
  region->mapped = mapped;
  region->bytes = static_cast<std::byte*>(mapping) + buffer.offset;
  region->start = buffer.start;
  return add_region(pd, std::move(region), buffer.bytes, access);
}

ibv_mr* FakeVerbs::add_region(ibv_pd* pd, std::unique_ptr<Region> region, size_t bytes,
                              unsigned access) {
  region->base.context = pd->context;
  region->base.pd = pd;
  region->base.length = bytes;
  region->base.lkey = next_key_ += 0x100;
  region->base.rkey = region->base.lkey + 1;
  region->access = access;
  ibv_mr* const made = &region->base;
  regions_[made->lkey] = std::move(region);
  return made;
}

bool FakeVerbs::is_device_memory(const ibv_sge& piece) const {
  const auto found = regions_.find(piece.lkey);
  return found != regions_.end() && found->second->mapping != nullptr;
}

FakeVerbs::Place FakeVerbs::find_memory(const ibv_pd* pd, uint32_t key, bool remote,
                                        uint64_t address, uint64_t bytes, unsigned access) {
  const auto found = regions_.find(remote ? key - 1 : key);
  if (found == regions_.end()) return {};
  const Region& region = *found->second;
  const bool inside = address >= region.start && bytes <= region.base.length &&
                      address - region.start <= region.base.length - bytes;
  const bool granted = inside && region.base.pd == pd && (region.access & access) == access;
  return {inside ? region.bytes + (address - region.start) : nullptr, granted};
}

}  // namespace slime::test
