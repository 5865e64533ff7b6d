// What is opened and closed of FakeFabric.
#include <algorithm>

#include "test/support/fabric/fake_fabric_tables.h"

namespace slime::test {

fi_ops FakeObjects::fids = table<fi_ops>([](fi_ops& calls) {
  calls.close = close;
  calls.bind = bind;
  calls.control = control;
});
fi_ops_fabric FakeObjects::fabrics =
    table<fi_ops_fabric>([](fi_ops_fabric& calls) { calls.domain = open_domain; });
fi_ops_domain FakeObjects::domains = table<fi_ops_domain>([](fi_ops_domain& calls) {
  calls.av_open = open_addresses;
  calls.cq_open = open_queue;
  calls.endpoint = open_endpoint;
});
int FakeObjects::open_domain(fid_fabric* of, fi_info* info, fid_domain** made, void* /*context*/) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  const auto& nics = in.options_.nics;
  const auto nic = std::ranges::find(nics, info->domain_attr->name, domain_of);
  if (nic == nics.end()) return -FI_ENODEV;
  auto domain = std::make_unique<FakeFabric::Domain>();
  domain->base.fid = {FI_CLASS_DOMAIN, nullptr, &fids};
  domain->base.ops = &domains;
  domain->base.mr = &registrations;
  domain->fabric = in.fabrics_.at(&of->fid).get();
  domain->nic = static_cast<size_t>(nic - nics.begin());
  domain->caps = info->caps;
  ++domain->fabric->domains;
  *made = &domain->base;
  in.domains_[&domain->base.fid] = std::move(domain);
  return 0;
}

int FakeObjects::open_addresses(fid_domain* of, fi_av_attr* /*wanted*/, fid_av** made,
                                void* /*context*/) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  auto vector = std::make_unique<FakeFabric::Addresses>();
  vector->base.fid = {FI_CLASS_AV, nullptr, &fids};
  vector->base.ops = &addresses;
  vector->domain = in.domains_.at(&of->fid).get();
  ++vector->domain->users;
  *made = &vector->base;
  in.address_vectors_[&vector->base.fid] = std::move(vector);
  return 0;
}

int FakeObjects::open_queue(fid_domain* of, fi_cq_attr* wanted, fid_cq** made, void* /*context*/) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  if (wanted->format != FI_CQ_FORMAT_DATA) return -FI_ENOSYS;
  auto queue = std::make_unique<FakeFabric::Queue>();
  queue->base.fid = {FI_CLASS_CQ, nullptr, &fids};
  queue->base.ops = &FakeQueues::queues;
  queue->domain = in.domains_.at(&of->fid).get();
  queue->places = wanted->size;
  ++queue->domain->users;
  *made = &queue->base;
  in.queues_[&queue->base.fid] = std::move(queue);
  return 0;
}

int FakeObjects::close(fid* object) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  const auto close_of = [&](auto& all, const char* in_use) {
    const auto& one = all.at(object);
    if (one->users > 0) {
      in.complain(in_use);
      return -FI_EBUSY;
    }
    --one->domain->users;
    all.erase(object);
    return 0;
  };
  switch (object->fclass) {
    case FI_CLASS_EP:
      return close_endpoint(in, object);
    case FI_CLASS_MR:
      return close_region(in, object);
    case FI_CLASS_AV:
      return close_of(in.address_vectors_, "an address vector is closed before its endpoint");
    case FI_CLASS_CQ:
      return close_of(in.queues_, "a completion queue is closed before its endpoint");
    case FI_CLASS_DOMAIN:
      return close_domain(in, object);
    default:
      return close_fabric(in, object);
  }
}

int FakeObjects::close_domain(FakeFabric& in, const fid* object) {
  FakeFabric::Domain& domain = *in.domains_.at(object);
  if (domain.users > 0) {
    in.complain("a domain is closed before what was opened on it");
    return -FI_EBUSY;
  }
  --domain.fabric->domains;
  in.domains_.erase(object);
  return 0;
}

int FakeObjects::close_fabric(FakeFabric& in, const fid* object) {
  if (in.fabrics_.at(object)->domains > 0) {
    in.complain("a fabric is closed before its domains");
    return -FI_EBUSY;
  }
  in.fabrics_.erase(object);
  return 0;
}

}  // namespace slime::test
