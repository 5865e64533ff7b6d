#include "aggregation/path.h"

#include <utility>

namespace slime::aggregation {
namespace {

Error no_device(const Fabric& fabric, int device) {
  std::string notes;
  for (const std::string& note : fabric.notes()) notes += "; " + note;
  return make_error(Status::kConfig, 0,
                    "there is no device %d, there are %zu; see slime-info and "
                    "NCCL_SLIME_IFNAME%s",
                    device, fabric.device_count(), notes.c_str());
}

}  // namespace

Result<std::unique_ptr<SwitchPath>> SwitchPath::open(const Settings& settings, int device,
                                                     Handle* handle) {
  std::unique_ptr<SwitchPath> path(new SwitchPath);
  path->device_ = device;
  auto fabric = Fabric::open(settings, SteadyClock::instance());
  if (!fabric) return fail(std::move(fabric.error()));
  path->fabric_ = std::move(*fabric);
  if (path->fabric_->device(device) == nullptr) return fail(no_device(*path->fabric_, device));
  auto listener = Listener::open(*path->fabric_, device, handle, {.host_memory = true});
  if (!listener) return fail(std::move(listener.error()));
  path->listener_ = std::move(*listener);
  return path;
}

Result<void> SwitchPath::connect(std::span<const Handle> handles, uint32_t rank) {
  auto session = CollComm::connect(*fabric_, device_, *listener_, handles, rank);
  if (!session) return fail(std::move(session.error()));
  session_ = std::move(*session);
  listener_.reset();
  return {};
}

}  // namespace slime::aggregation
