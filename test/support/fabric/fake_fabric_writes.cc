// How writes and reads of FakeFabric's endpoints are posted and move.
#include <algorithm>
#include <cstring>

#include "test/support/fabric/fake_fabric_tables.h"

namespace slime::test {
namespace {

// Of the device (efa_io_comp_status).
constexpr int kInvalidLocalKey = 5, kBadAddress = 7, kNotReady = 10, kUnresponsive = 13;

constexpr int kScribble = 0xc7;

uint64_t key_of(const void* description) { return reinterpret_cast<uint64_t>(description) - 1; }

}  // namespace

fi_ops_rma FakeQueues::writes = table<fi_ops_rma>([](fi_ops_rma& calls) {
  calls.writemsg = write;
  calls.readmsg = read_remote;
});

ssize_t FakeQueues::write(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  return in.post(*in.endpoints_.at(&endpoint->fid), *message, flags, false);
}

ssize_t FakeQueues::read_remote(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  return in.post(*in.endpoints_.at(&endpoint->fid), *message, flags, true);
}

// What this provider would not notice.
std::string FakeFabric::wrong_with(const Endpoint& endpoint, const fi_msg_rma& message,
                                   bool is_read) const {
  if (!endpoint.enabled) return "a write is posted before its endpoint is enabled";
  if (message.iov_count != 1 || message.rma_iov_count != 1) return "a write has several pieces";
  if (message.addr >= endpoint.addresses->endpoints.size()) return "a write has no peer";
  if (message.context == nullptr) return "a write has no context";
  if (is_read && (endpoint.domain->caps & FI_READ) == 0) return "a read without FI_READ";
  if (contexts_.contains(message.context)) return "a context is used by two writes at a time";
  const iovec& piece = message.msg_iov[0];
  const fi_rma_iov& target = message.rma_iov[0];
  if (piece.iov_len != target.len) return "a write is not as long as its target";
  if (target.key >> 32 != 0) return "a key has more than 4 bytes";
  const auto from = reinterpret_cast<uint64_t>(piece.iov_base);
  const uint64_t key = message.desc != nullptr ? key_of(message.desc[0]) : 0;
  const uint64_t access = is_read ? FI_READ : FI_WRITE;
  if (find_region(endpoint.domain, key, from, piece.iov_len, access) == nullptr) {
    return "the descriptor is not that of the memory that is written from, or read into";
  }
  return "";
}

long FakeFabric::refusal(const Endpoint& endpoint) {
  if (writes_before_refusal_ > 0) {
    --writes_before_refusal_;
  } else if (refusals_ > 0) {
    --refusals_;
    return refusal_code_;
  }
  const size_t places = options_.tx_places > 0 ? options_.tx_places : options_.tx_size;
  const bool busy = options_.busy_percent > 0 && random_() % 100 < options_.busy_percent;
  return busy || endpoint.places_taken >= places ? -FI_EAGAIN : 0;
}

long FakeFabric::post(Endpoint& endpoint, const fi_msg_rma& message, uint64_t flags, bool is_read) {
  if (const std::string wrong = wrong_with(endpoint, message, is_read); !wrong.empty()) {
    complain(wrong);
    return -FI_EINVAL;
  }
  FakeFabricCounts& counts = counts_[endpoint.domain->nic];
  if (const long code = refusal(endpoint); code != 0) {
    counts.refused += code == -FI_EAGAIN ? 1 : 0;
    return code;
  }
  Write write;
  write.is_read = is_read;
  write.target = endpoint.addresses->endpoints[message.addr];
  write.local_key = key_of(message.desc[0]);
  write.from = reinterpret_cast<uint64_t>(message.msg_iov[0].iov_base);
  write.bytes = message.msg_iov[0].iov_len;
  write.to = message.rma_iov[0].addr;
  write.key = message.rma_iov[0].key;
  if ((flags & FI_REMOTE_CQ_DATA) != 0) write.data = message.data;
  write.context = message.context;
  write.held = (flags & FI_MORE) != 0;
  std::memset(message.context, kScribble, sizeof(fi_context2));
  contexts_.insert(message.context);
  if (!is_read) write_flags_.push_back(flags);
  ++(is_read ? counts.reads : counts.writes);
  ++endpoint.places_taken;
  endpoint.writes.push_back(write);
  if (!write.held) {
    counts.doorbells += is_read ? 0 : 1;
    for (Write& each : endpoint.writes) each.held = false;
  }
  const auto held = std::ranges::count_if(endpoint.writes, &Write::held);
  counts.most_held = std::max(counts.most_held, static_cast<size_t>(held));
  return 0;
}

bool FakeFabric::step() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<uint32_t, std::pair<Endpoint*, size_t>>> ready;
  for (const auto& [fid, endpoint] : endpoints_) {
    const size_t most = options_.reorders ? endpoint->writes.size() : 1;
    for (size_t i = 0; i < std::min(most, endpoint->writes.size()); ++i) {
      if (!may_move(*endpoint, endpoint->writes[i])) continue;
      ready.push_back({endpoint->number, {endpoint.get(), i}});
    }
  }
  if (ready.empty()) return false;
  std::ranges::sort(ready);  // not by where the endpoints lie: the seed alone decides
  const auto [endpoint, index] = ready[random_() % ready.size()].second;
  Write& write = endpoint->writes[index];
  if (write.arrived) {
    complete(*endpoint, index);
  } else {
    arrive(*endpoint, write);
  }
  return true;
}

// A receiver that has no place for the announcement is asked again, without end if the endpoint's
// option says so.
bool FakeFabric::may_move(const Endpoint& endpoint, const Write& write) const {
  if (write.held) return false;
  if (write.arrived || !write.data || endpoint.rnr_retry != 7) return true;
  const Endpoint* const target = endpoint_of(write.target);
  if (target == nullptr) return true;
  return static_cast<size_t>(std::ranges::count_if(target->queue->entries, &Entry::arrival)) <
         options_.rx_size;
}

void FakeFabric::arrive(const Endpoint& endpoint, Write& write) {
  write.arrived = true;
  const auto fail = [&write](int code, int provider_code) {
    write.code = code;
    write.provider_code = provider_code;
  };
  if (fail_next_) return fail(fail_next_->first, std::exchange(fail_next_, {})->second);
  const Region* const local = find_region(endpoint.domain, write.local_key, write.from, write.bytes,
                                          write.is_read ? FI_READ : FI_WRITE);
  if (local == nullptr) return fail(FI_EINVAL, kInvalidLocalKey);
  const Endpoint* const target = endpoint_of(write.target);
  if (target == nullptr || !target->enabled) return fail(FI_EHOSTUNREACH, kUnresponsive);
  const Region* const remote = find_region(target->domain, write.key, write.to, write.bytes,
                                           write.is_read ? FI_REMOTE_READ : FI_REMOTE_WRITE);
  if (remote == nullptr) return fail(FI_EACCES, kBadAddress);
  if (write.data && endpoint.rnr_retry != 7 &&
      static_cast<size_t>(std::ranges::count_if(target->queue->entries, &Entry::arrival)) >=
          options_.rx_size) {
    return fail(FI_ENORX, kNotReady);
  }
  move_bytes(write, *local, *remote);
  if (!write.data) return;
  Entry entry{.of = target, .arrival = true};
  entry.content.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
  entry.content.len = write.bytes;
  entry.content.data = *write.data;
  push(*target, entry);
}

// A read does not pass what the NIC had written into that memory before.
void FakeFabric::move_bytes(const Write& write, const Region& local, const Region& remote) {
  std::byte* const here = local.at(write.from);
  std::byte* const there = remote.at(write.to);
  if (write.is_read) {
    if (write.bytes > 0) make_visible(remote.domain->nic, remote.in_device);
    std::memmove(here, there, write.bytes);
  } else if (remote.in_device || !write.data) {
    unflushed_[remote.domain->nic].push_back(
        {write.key, remote.in_device, there, {here, here + write.bytes}});
  } else if (write.bytes > 0) {
    std::memmove(there, here, write.bytes);
  }
}

void FakeFabric::complete(Endpoint& endpoint, size_t index) {
  const Write write = endpoint.writes[index];
  endpoint.writes.erase(endpoint.writes.begin() + static_cast<ptrdiff_t>(index));
  std::memset(write.context, kScribble, sizeof(fi_context2));
  Entry entry{.of = &endpoint};
  entry.content.op_context = write.context;
  entry.content.flags = FI_RMA | (write.is_read ? FI_READ : FI_WRITE);
  entry.content.err = write.code;
  entry.content.prov_errno = write.provider_code;
  push(endpoint, entry);
}

// What the NIC of a closing endpoint had sent may arrive; what was not read of it is lost.
void FakeFabric::abandon(Endpoint& endpoint) {
  for (Write& write : endpoint.writes) {
    if (!write.arrived && may_move(endpoint, write) && random_() % 2 == 0) arrive(endpoint, write);
    contexts_.erase(write.context);
  }
  endpoint.writes.clear();
  if (endpoint.queue == nullptr) return;
  for (const Entry& entry : endpoint.queue->entries) contexts_.erase(entry.content.op_context);
  std::erase_if(endpoint.queue->entries, [&](const Entry& entry) { return entry.of == &endpoint; });
}

FakeFabric::Endpoint* FakeFabric::endpoint_of(uint32_t number) const {
  for (const auto& [fid, endpoint] : endpoints_) {
    if (endpoint->number == number) return endpoint.get();
  }
  return nullptr;
}

}  // namespace slime::test
