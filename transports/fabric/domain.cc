#include "transports/fabric/domain.h"

namespace slime::fabric {

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

Result<Handle<fid_mr>> Domain::register_memory(const MemoryRange& range,
                                               uint64_t wanted_key) const {
  fid_mr* region = nullptr;
  const uint64_t access = FI_WRITE | FI_REMOTE_WRITE;
  const int code =
      ::fi_mr_reg(get(), range.address, range.bytes, access, 0, wanted_key, 0, &region, nullptr);
  if (code == 0) return Handle<fid_mr>(region);
  return fail(fabric_error(symbols_, code,
                           "%zu bytes at %p cannot be registered; see `ulimit -l`, and mr_cnt "
                           "(fi_info -v)",
                           range.bytes, range.address));
}

}  // namespace slime::fabric
