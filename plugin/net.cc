#include "plugin/net.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "base/log.h"
#include "plugin/logger.h"

namespace slime::plugin {
namespace {

// NCCL puts a merged device below the nearest PCI function above its members. If there is none, it
// puts a <nic> into a <nic>, does not read that, and has no network left: "Could not find any local
// path from gpu" (2.24 to 2.30: src/graph/topo.cc, ncclTopoGetVNicParent and ncclTopoAddNic). If
// the merge is refused, NCCL uses the members one by one. In our order the first member is virtual
// only if all are, so only the first one is checked.
bool has_no_place_in_topology(const int* members, int count) {
  const bool several =
      std::any_of(members, members + count, [&](int member) { return member != members[0]; });
  return several && State::get().devices()->device(members[0])->properties().pci_path.empty();
}

// This is logged as information, not as a warning, because it happens in every run and costs
// nothing.
Result<void> refuse_virtual_devices(int count) {
  SLIME_INFO(
      "%d devices without a PCI function are not merged, because NCCL could not use the result: it "
      "uses each of them; NCCL_SLIME_RAILS_PER_DEVICE makes one device of several NICs",
      count);
  return fail({Status::kUnsupported, 0, ""});
}

}  // namespace

Error null_argument(const char* name) {
  return make_error(Status::kInvalid, 0, "%s is NULL", name);
}

Error not_a(const char* what, const void* comm) {
  return make_error(
      Status::kInvalid, 0,
      "%p is not a %s of this process that is open: it was closed already, belongs to "
      "the process that forked this one, or is of another kind",
      comm, what);
}

Error not_a(CommKind kind, const void* comm) {
  constexpr const char* kNames[] = {"listenComm", "sendComm", "recvComm", "listenComm", "collComm"};
  return not_a(kNames[static_cast<size_t>(kind)], comm);
}

Result<Device*> find_device(int index) {
  Devices* const devices = State::get().devices();
  if (devices == nullptr) {
    return fail(make_error(Status::kInvalid, 0,
                           "device %d does not exist: the plugin has no devices, or was not "
                           "initialized in this process",
                           index));
  }
  Device* const device = devices->device(index);
  if (device == nullptr) {
    return fail(make_error(Status::kInvalid, 0, "device %d does not exist: the last one is %zu",
                           index, devices->device_count() - 1));
  }
  return device;
}

Error failure_of(const Comm& comm) {
  Error error = comm.failure();
  if (!State::get().first_failure_of(comm)) error.what.clear();
  return error;
}

Result<void> init(nccl::Logger logger) {
  set_logger(logger);
  State::get().open_without_context();
  return {};
}

Result<void> init_context(void** context, uint64_t comm_id, const nccl::NetCommConfig* config,
                          nccl::Logger logger) {
  if (context == nullptr) return fail(null_argument("ctx"));
  set_logger(logger);
  const Context wanted{comm_id, checked_traffic_class(config)};
  *context = State::get().open_with_context(wanted);
  const Devices* const devices = State::get().devices();
  if (wanted.traffic_class == nccl::kTrafficClassUndefined || devices == nullptr) return {};
  const int chosen = CommOptions{wanted.traffic_class}.chosen_class(devices->settings());
  SLIME_INFO("communicator 0x%llx asks for traffic class %d, and gets %d%s",
             static_cast<unsigned long long>(comm_id), wanted.traffic_class, chosen,
             chosen == wanted.traffic_class ? "" : " (NCCL_SLIME_TRAFFIC_CLASS)");
  return {};
}

int checked_traffic_class(const nccl::NetCommConfig* config) {
  if (config == nullptr) return nccl::kTrafficClassUndefined;
  const int wanted = config->traffic_class;
  if (wanted == nccl::kTrafficClassUndefined || (wanted >= 0 && wanted <= 255)) return wanted;
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    SLIME_WARN(
        "trafficClass %d in the configuration of a communicator is not from 0 to 255, so its "
        "packets go unmarked; give the TOS byte, which is DSCP times 4 (104 for AF31), or leave it "
        "undefined",
        wanted);
  }
  return nccl::kTrafficClassUndefined;
}

int traffic_class_of(const void* context) { return State::get().traffic_class_of(context); }

Result<void> finalize(void* context) {
  if (State::get().finalize(context)) set_logger(nullptr);
  return {};
}

Result<void> devices(int* count) {
  if (count == nullptr) return fail(null_argument("ndev"));
  if (!State::get().initialized()) {
    return fail(make_error(Status::kInvalid, 0, "init was not called in this process"));
  }
  const Devices* const devices = State::get().devices();
  *count = devices ? static_cast<int>(devices->device_count()) : 0;
  return {};
}

// NCCL keeps the pointers to name and pciPath for an unknown time, so the texts are never freed.
const char* keep_for_ever(const std::string& text) {
  static std::mutex mutex;
  static auto* const kept = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return kept->insert(text).first->c_str();
}

int pointer_support(const DeviceProperties& known) {
  int support = known.dma_buf ? nccl::kPointerDmaBuf : 0;
  if (known.takes(MemoryKind::kHost)) support |= nccl::kPointerHost;
  if (known.takes(MemoryKind::kCuda)) support |= nccl::kPointerCuda;
  return support;
}

Result<void> make_virtual_device(int* device, const int* members, int count) {
  if (device == nullptr) return fail(null_argument("d"));
  if (members == nullptr) return fail(null_argument("props"));
  if (count < 1 || count > nccl::kMaxDevicesPerNicV12) {
    return fail(make_error(Status::kInvalid, 0, "cannot merge %d devices: 1 to %d are possible",
                           count, nccl::kMaxDevicesPerNicV12));
  }
  for (int i = 0; i < count; ++i) {
    const auto member = find_device(members[i]);
    if (!member) return fail(member.error());
  }
  if (has_no_place_in_topology(members, count)) return refuse_virtual_devices(count);
  const auto merged = State::get().devices()->merge(std::span(members, static_cast<size_t>(count)));
  if (!merged) return fail(merged.error());
  *device = *merged;
  SLIME_INFO("device %d is now %d devices together: %s", *merged, count,
             State::get().devices()->device(*merged)->properties().name.c_str());
  return {};
}

}  // namespace slime::plugin
