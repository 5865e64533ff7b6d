// What endpoints of FakeFabric are bound to, asked for and named.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "test/support/fabric/fake_fabric_tables.h"

namespace slime::test {
namespace {

constexpr int kEfa = -(0xefa << 16);
constexpr int kRnrRetry = kEfa, kEmulatedRead = kEfa + 1, kEmulatedWrite = kEfa + 2;

// An endpoint's name: what getname() gives and an address vector takes.
struct Name {
  std::array<char, 8> mark = {'f', 'a', 'k', 'e', 'n', 'a', 'm', 'e'};
  uint32_t number = 0;
  std::array<char, 20> zeros = {};
};

}  // namespace

fi_ops_ep FakeObjects::endpoints = table<fi_ops_ep>([](fi_ops_ep& calls) {
  calls.getopt = get_option;
  calls.setopt = set_option;
});
fi_ops_cm FakeObjects::names = table<fi_ops_cm>([](fi_ops_cm& calls) { calls.getname = get_name; });
fi_ops_av FakeObjects::addresses =
    table<fi_ops_av>([](fi_ops_av& calls) { calls.insert = insert; });

int FakeObjects::open_endpoint(fid_domain* of, fi_info* /*info*/, fid_ep** made,
                               void* /*context*/) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  FakeFabric::Domain* const domain = in.domains_.at(&of->fid).get();
  const auto here = std::ranges::count_if(
      in.endpoints_, [&](const auto& each) { return each.second->domain == domain; });
  if (static_cast<size_t>(here) >= in.options_.ep_cnt) return -FI_ENOMEM;
  auto endpoint = std::make_unique<FakeFabric::Endpoint>();
  endpoint->base.fid = {FI_CLASS_EP, nullptr, &fids};
  endpoint->base.ops = &endpoints;
  endpoint->base.cm = &names;
  endpoint->base.rma = &FakeQueues::writes;
  endpoint->domain = domain;
  endpoint->number = in.next_number_ += 3;
  ++domain->users;
  *made = &endpoint->base;
  in.endpoints_[&endpoint->base.fid] = std::move(endpoint);
  return 0;
}

int FakeObjects::close_endpoint(FakeFabric& in, const fid* object) {
  FakeFabric::Endpoint& endpoint = *in.endpoints_.at(object);
  in.abandon(endpoint);
  in.make_visible(endpoint.domain->nic, false);
  if (endpoint.addresses != nullptr) --endpoint.addresses->users;
  if (endpoint.queue != nullptr) --endpoint.queue->users;
  --endpoint.domain->users;
  in.endpoints_.erase(object);
  return 0;
}

int FakeObjects::bind(fid* object, fid* to, uint64_t flags) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  FakeFabric::Endpoint& endpoint = *in.endpoints_.at(object);
  if (endpoint.enabled) in.complain("something is bound to an endpoint after it is enabled");
  if (to->fclass == FI_CLASS_AV) {
    endpoint.addresses = in.address_vectors_.at(to).get();
    ++endpoint.addresses->users;
    return 0;
  }
  if (to->fclass != FI_CLASS_CQ || flags != (FI_TRANSMIT | FI_RECV)) return -FI_EINVAL;
  endpoint.queue = in.queues_.at(to).get();
  ++endpoint.queue->users;
  return 0;
}

int FakeObjects::control(fid* object, int command, void* /*argument*/) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  FakeFabric::Endpoint& endpoint = *in.endpoints_.at(object);
  if (command != FI_ENABLE) return -FI_ENOSYS;
  if (endpoint.addresses == nullptr) return -FI_ENOAV;
  if (endpoint.queue == nullptr) return -FI_ENOCQ;
  endpoint.enabled = true;
  return 0;
}

int FakeObjects::set_option(fid* object, int level, int name, const void* value, size_t bytes) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  FakeFabric::Endpoint& endpoint = *in.endpoints_.at(object);
  size_t wanted = sizeof(bool);
  if (name == kRnrRetry) wanted = sizeof(size_t);
  if (name == FI_OPT_FI_HMEM_P2P) wanted = sizeof(int);
  if (level != FI_OPT_ENDPOINT || bytes != wanted) return -FI_EINVAL;
  FakeFabricOption option = {.name = name, .before_enable = !endpoint.enabled};
  std::memcpy(&option.value, value, bytes);
  in.options_set_.push_back(option);
  if (endpoint.enabled) in.complain("an option is set after the endpoint is enabled");
  const auto refused = in.options_.refused.find(name);
  if (refused != in.options_.refused.end()) return refused->second;
  if (name == kRnrRetry) endpoint.rnr_retry = option.value;
  return 0;
}

int FakeObjects::get_option(fid* /*object*/, int level, int name, void* value, size_t* bytes) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  const bool known = name == kEmulatedWrite || name == kEmulatedRead;
  if (level != FI_OPT_ENDPOINT || !known) return -FI_ENOPROTOOPT;
  if (in.options_.emulated_code != 0) return in.options_.emulated_code;
  if (*bytes < sizeof(bool)) return -FI_ETOOSMALL;
  const FakeFabricOptions& options = in.options_;
  *static_cast<bool*>(value) =
      name == kEmulatedRead ? options.emulated_read : options.emulated_write;
  *bytes = sizeof(bool);
  return 0;
}

int FakeObjects::get_name(fid* object, void* name, size_t* bytes) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  const FakeFabric::Endpoint& endpoint = *in.endpoints_.at(object);
  if (!endpoint.enabled) return -FI_EOPBADSTATE;
  const Name own{.number = endpoint.number};
  const size_t room = std::exchange(*bytes, sizeof own);
  std::memcpy(name, &own, std::min(room, sizeof own));
  return room < sizeof own ? -FI_ETOOSMALL : 0;
}

int FakeObjects::insert(fid_av* to, const void* name, size_t count, fi_addr_t* made,
                        uint64_t /*flags*/, void* /*context*/) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  Name peer;
  std::memcpy(&peer, name, sizeof peer);
  if (count != 1) return -FI_EINVAL;
  if (peer.mark != Name().mark) return 0;
  auto& endpoints = in.address_vectors_.at(&to->fid)->endpoints;
  *made = endpoints.size();
  endpoints.push_back(peer.number);
  return 1;
}

}  // namespace slime::test
