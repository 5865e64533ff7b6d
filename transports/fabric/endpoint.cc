#include "transports/fabric/endpoint.h"

#include "transports/fabric/hello.h"

namespace slime::fabric {

Endpoint& Endpoint::operator=(Endpoint&& other) noexcept {
  endpoint_ = std::move(other.endpoint_);
  completions_ = std::move(other.completions_);
  addresses_ = std::move(other.addresses_);
  caps_ = other.caps_;
  name_ = std::move(other.name_);
  return *this;
}

Result<Endpoint> Endpoint::open(const Domain& domain, size_t places) {
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
  of_completions.size = places;
  of_completions.format = FI_CQ_FORMAT_DATA;
  fid_cq* completions = nullptr;
  int code = ::fi_cq_open(domain.get(), &of_completions, &completions, nullptr);
  if (code != 0) {
    return fail(
        fabric_error(domain.symbols(), code, "fi_cq_open for %zu completions failed", places));
  }
  made.completions_.reset(completions);
  fid_ep* endpoint = nullptr;
  code = ::fi_endpoint(domain.get(), domain.mutable_info(), &endpoint, nullptr);
  if (code != 0) {
    return fail(fabric_error(domain.symbols(), code,
                             "fi_endpoint failed; each connection takes one, and the domain %s has "
                             "%zu (ep_cnt, see fi_info -v)",
                             domain.info().domain_attr->name, domain.info().domain_attr->ep_cnt));
  }
  made.endpoint_.reset(endpoint);
  if (auto enabled = made.enable(domain); !enabled) return fail(std::move(enabled.error()));
  return made;
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

Result<fi_addr_t> Endpoint::add_peer(const Domain& domain, std::span<const std::byte> name) {
  fi_addr_t peer = FI_ADDR_UNSPEC;
  const int added = ::fi_av_insert(addresses_.get(), name.data(), 1, &peer, 0, nullptr);
  if (added == 1) return peer;
  return fail(fabric_error(domain.symbols(), added < 0 ? added : -FI_EINVAL,
                           "the peer's address cannot be used (fi_av_insert)"));
}

}  // namespace slime::fabric
