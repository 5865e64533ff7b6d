// The completion queues of FakeFabric.
#include <cstdio>

#include "test/support/fabric/fake_fabric_tables.h"

namespace slime::test {

fi_ops_cq FakeQueues::queues = table<fi_ops_cq>([](fi_ops_cq& calls) {
  calls.read = read;
  calls.readerr = read_error;
  calls.strerror = error_text;
});
void FakeFabric::push(const Endpoint& endpoint, const Entry& entry) {
  if (endpoint.queue->entries.size() == endpoint.queue->places) {
    complain("a completion queue is overrun");
  }
  endpoint.queue->entries.push_back(entry);
}

ssize_t FakeQueues::read(fid_cq* queue, void* entries, size_t count) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  auto& from = in.queues_.at(&queue->fid)->entries;
  if (from.empty()) return -FI_EAGAIN;
  if (from.front().content.err != 0) return -FI_EAVAIL;
  auto* const to = static_cast<fi_cq_data_entry*>(entries);
  size_t taken = 0;
  for (; taken < count && !from.empty() && from.front().content.err == 0; ++taken) {
    const fi_cq_err_entry& entry = from.front().content;
    to[taken] = {entry.op_context, entry.flags, entry.len, nullptr, entry.data};
    in.release(from.front());
    from.pop_front();
  }
  return static_cast<ssize_t>(taken);
}

ssize_t FakeQueues::read_error(fid_cq* queue, fi_cq_err_entry* entry, uint64_t /*flags*/) {
  FakeFabric& in = *FakeFabric::current_;
  const Lock lock(in.mutex_);
  auto& from = in.queues_.at(&queue->fid)->entries;
  if (from.empty() || from.front().content.err == 0) return -FI_EAGAIN;
  *entry = from.front().content;
  if (in.interface_ >= FI_VERSION(1, 20)) {  // src_addr
    reinterpret_cast<fabric::CompletionError*>(entry)->later[0] = FI_ADDR_UNSPEC;
  }
  in.release(from.front());
  from.pop_front();
  return 1;
}

const char* FakeQueues::error_text(fid_cq* /*queue*/, int code, const void* /*data*/, char* text,
                                   size_t bytes) {
  std::snprintf(text, bytes, "fake device status %d", code);
  return text;
}

void FakeFabric::disturb(size_t nic) {
  const std::lock_guard lock(mutex_);
  for (const auto& [fid, endpoint] : endpoints_) {
    if (endpoint->domain->nic != nic) continue;
    Entry entry{.of = endpoint.get(), .arrival = true};
    entry.content.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    push(*endpoint, entry);
    entry.content.err = FI_EIO;
    push(*endpoint, entry);
  }
}

void FakeFabric::release(const Entry& entry) {
  if (entry.arrival) return;
  contexts_.erase(entry.content.op_context);
  for (const auto& [fid, endpoint] : endpoints_) {
    if (endpoint.get() == entry.of) --endpoint->places_taken;
  }
}

}  // namespace slime::test
