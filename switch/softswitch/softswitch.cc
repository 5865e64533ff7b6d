#include "switch/softswitch/softswitch.h"

#include <algorithm>
#include <cerrno>

#include "base/interfaces/interfaces.h"
#include "switch/protocol/control.h"
#include "switch/softswitch/udp_socket.h"

namespace slime::net {
namespace {

using Wide = unsigned long long;  // for printf's %llu

Result<void> check(const SoftSwitchOptions& options) {
  const auto bad = [](const char* what, uint64_t value, const char* accepted) {
    return fail(Status::kConfig, "switch with %s %llu: %s", what, Wide{value}, accepted);
  };
  if (options.shards < 1 || options.shards > sap::kMaxShards) {
    return bad("shards", options.shards, "1 to 16 are possible, a thread and a port each");
  }
  if (options.max_lanes < 1 || options.max_lanes > sap::kMaxLanes) {
    return bad("max_lanes", options.max_lanes, "1 to 2048 words of 32 bits fit a packet");
  }
  if (!sap::suffice(options.formats)) {
    return fail(Status::kConfig, "switch with the formats %s: i32 and u32 are needed at least",
                control::format_list(options.formats).c_str());
  }
  if (options.slot_bytes == 0) return bad("slot_bytes", 0, "a job needs memory for its slots");
  // Answers must come from the address that workers sent to, and a socket bound to all addresses
  // lets the route decide.
  if (options.address.is_any()) {
    return fail(make_error(Status::kConfig, EADDRNOTAVAIL,
                           "switch at %s: name the one address that workers send to",
                           options.address.to_string().c_str()));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<SoftSwitch>> SoftSwitch::open(const SoftSwitchOptions& options) {
  if (auto checked = net::check(options); !checked) return fail(std::move(checked.error()));
  auto sockets = bind_udp_block(options.address, options.shards, options.socket_buffer_bytes,
                                ShardThread::kIdleUs);
  if (!sockets) return fail(std::move(sockets.error()));
  const auto address = local_address(sockets->front());
  if (!address) return fail(address.error());
  std::unique_ptr<SoftSwitch> opened(new SoftSwitch());
  opened->shape_ = {.address = *address,
                    .shards = options.shards,
                    .max_lanes = options.max_lanes,
                    .slot_bytes = options.slot_bytes,
                    .formats = options.formats};
  const auto records = interface_records();
  const CpuSet near = records ? cpus_near(*address, *records) : CpuSet();
  for (uint32_t index = 0; index < options.shards; ++index) {
    auto thread =
        ShardThread::start(std::move((*sockets)[index]), {.index = index,
                                                          .count = options.shards,
                                                          .max_lanes = options.max_lanes,
                                                          .busy_poll_us = options.busy_poll_us,
                                                          .segmentation = options.segmentation,
                                                          .near = near});
    if (!thread) return fail(std::move(thread.error()));
    opened->threads_.push_back(std::move(*thread));
  }
  return opened;
}

// All threads get the request to stop before the first is joined, so that they stop at the same
// time.
SoftSwitch::~SoftSwitch() {
  for (const auto& thread : threads_) thread->begin_stop();
}

// Whether this switch can reach all ends of the job, and send packets of its size.
Result<void> SoftSwitch::check(const JobSpec& spec) const {
  if (spec.max_lanes > shape_.max_lanes) {
    return fail(Status::kInvalid,
                "job %u: packets of %u lanes, but the switch at %s takes at most %u; ask for "
                "fewer, or start it with more max_lanes",
                spec.job, spec.max_lanes, shape_.address.to_string().c_str(), shape_.max_lanes);
  }
  const auto reachable = [this](const SocketAddress& address) {
    return address.family() == shape_.address.family() && !address.is_any() && address.port() != 0;
  };
  const auto unreachable = [&](const char* who, const SocketAddress& address) {
    return fail(Status::kInvalid,
                "job %u: %s %s cannot be reached from the switch at %s: same address family, full "
                "address and port are needed",
                spec.job, who, address.to_string().c_str(), shape_.address.to_string().c_str());
  };
  for (const SocketAddress& child : spec.children) {
    if (!reachable(child)) return unreachable("child", child);
  }
  if (spec.parent && !reachable(spec.parent->address)) {
    return unreachable("parent", spec.parent->address);
  }
  return {};
}

// The memory that the job may take: that of the job it replaces counts as free.
Result<uint64_t> SoftSwitch::reserve(const JobSpec& spec) const {
  const uint64_t bytes = Slots::bytes_for(spec.slots, spec.max_lanes);
  const auto replaced = jobs_.find(spec.job);
  const uint64_t used = used_bytes_ - (replaced == jobs_.end() ? 0 : replaced->second);
  const uint64_t left = shape_.slot_bytes - used;
  if (bytes <= left) return bytes;
  return fail(make_error(Status::kNoMemory, ENOMEM,
                         "job %u: %u slots of %u lanes take %llu bytes, and %llu of the %llu of "
                         "the switch at %s are left; ask for fewer slots or lanes, end other jobs, "
                         "or start the switch with more slot_bytes",
                         spec.job, spec.slots, spec.max_lanes, Wide{bytes}, Wide{left},
                         Wide{shape_.slot_bytes}, shape_.address.to_string().c_str()));
}

// A switch sends from, and listens at, a port per shard. The scope of a link-local address means
// something on its own host only: here it is that of our interface.
JobSpec SoftSwitch::spec_of_shard(const JobSpec& spec, uint32_t shard) const {
  JobSpec own = spec;
  const auto adapt = [&](SocketAddress& address, bool is_switch) {
    if (address.is_link_local()) address.set_scope(shape_.address.scope());
    if (is_switch) address.set_port(static_cast<uint16_t>(address.port() + shard));
  };
  for (SocketAddress& child : own.children) adapt(child, spec.children_are_switches);
  if (own.parent) adapt(own.parent->address, true);
  return own;
}

Result<void> SoftSwitch::add_job(const JobSpec& spec) {
  if (auto checked = check(spec); !checked) return checked;
  const auto bytes = reserve(spec);
  if (!bytes) return fail(bytes.error());
  // Everything that may fail is done first, on this thread, while the shards handle packets.
  std::vector<std::unique_ptr<Shard::Job>> parts;
  for (uint32_t shard = 0; shard < threads_.size(); ++shard) {
    auto part = threads_[shard]->shard().make_job(spec_of_shard(spec, shard));
    if (!part) return fail(std::move(part.error()));
    parts.push_back(std::move(*part));
  }
  const auto replaced = jobs_.find(spec.job);
  used_bytes_ += *bytes - (replaced == jobs_.end() ? 0 : replaced->second);
  jobs_[spec.job] = *bytes;
  for (uint32_t shard = 0; shard < threads_.size(); ++shard) {
    auto called = threads_[shard]->call(
        [&part = parts[shard]](Shard& there) { part = there.install(std::move(part)); });
    if (!called) {
      (void)remove_job(spec.job);
      return called;
    }
  }
  return {};
}

Result<void> SoftSwitch::remove_job(uint16_t job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return fail(no_job(job));
  Result<void> result;
  for (const auto& thread : threads_) {
    std::unique_ptr<Shard::Job> part;  // freed here, not by the shard's thread
    auto called = thread->call([&](Shard& shard) { part = shard.take(job); });
    if (!called) result = std::move(called);
  }
  if (!result) return result;  // a shard may still have it, so the job stays for a repeated call
  used_bytes_ -= found->second;
  jobs_.erase(found);
  return {};
}

Result<void> SoftSwitch::fence(uint16_t job, uint8_t generation, uint32_t token) {
  if (!jobs_.contains(job)) return fail(no_job(job));
  Result<void> result;
  for (const auto& thread : threads_) {  // all of them, also after a failure: the caller repeats it
    auto called = thread->call([&](Shard& shard) { shard.fence(job, generation, token); });
    if (!called) result = std::move(called);
  }
  return result;
}

Result<JobTotals> SoftSwitch::totals(uint16_t job) const {
  if (!jobs_.contains(job)) return fail(no_job(job));
  JobTotals totals;
  for (const auto& thread : threads_) {
    if (const JobCounters* counters = thread->shard().counters_of(job)) totals.add(*counters);
  }
  return totals;
}

IoTotals SoftSwitch::io_totals() const {
  IoTotals totals;
  for (const auto& thread : threads_) totals.add(thread->io());
  return totals;
}

// The shards go on counting meanwhile, so the numbers are not all of the same moment.
std::vector<DeviceCounter> SoftSwitch::counters() const {
  ShardTotals strays;
  for (const auto& thread : threads_) strays.add(thread->shard().counters());
  std::vector<DeviceCounter> all;
  const auto add = [&](const char* name, const char* help, uint64_t value) {
    all.push_back({name, help, value});
  };
  strays.each(add);
  io_totals().each(add);
  return all;
}

Error SoftSwitch::no_job(uint16_t job) const {
  return make_error(Status::kInvalid, ENOENT, "the switch at %s has no job %u",
                    shape_.address.to_string().c_str(), job);
}

}  // namespace slime::net
