// Opens and closes the devices: the part of State from the first init to the last finalize.
#include <utility>

#include "base/log.h"
#include "plugin/logger.h"
#include "plugin/nccl_proto.h"
#include "plugin/state.h"
#include "settings/settings.h"

namespace slime::plugin {
namespace {

// An error here does not fail init: NCCL finds no devices and uses another transport, and the log
// has the reason.
std::unique_ptr<Devices> open_from_environment() {
  std::vector<std::string> warnings;
  const auto settings = parse_settings(process_environment(), &warnings);
  for (const std::string& warning : warnings) SLIME_WARN("%s", warning.c_str());
  if (!settings) {
    SLIME_WARN("%s", settings.error().what.c_str());
    announce_nothing("a setting cannot be used");
    return nullptr;
  }
  for (const std::string& warning : unusable_here(*settings)) SLIME_WARN("%s", warning.c_str());
  if (settings->disable) {
    announce_nothing("NCCL_SLIME_DISABLE is set");
    return nullptr;
  }
  auto devices = Devices::open(*settings, SteadyClock::instance());
  if (!devices) {
    SLIME_WARN("%s", devices.error().what.c_str());
    announce_nothing("the rails cannot be opened");
    return nullptr;
  }
  return std::move(*devices);
}

}  // namespace

void State::open_devices() {
  initialized_ = true;
  if (devices_) return;
  devices_ = open_from_environment();
  if (!devices_) return;
  if (devices_->device_count() == 0) {
    const std::string notes = joined(devices_->notes());
    announce_nothing(notes.empty() ? "no usable network interface was found" : notes);
    devices_.reset();
    return;
  }
  announce(*devices_);
  tuner_policy_ = std::make_shared<const TunerPolicy>(read_tuner_policy(devices_->settings()));
  forbid_ll128_where_unsafe(*devices_);
}

// NCCL calls this once, and again each time it has unloaded and loaded the plugin (2.24 and later,
// when the last communicator is gone). It then expects physical devices only, so the devices are
// opened anew, without merged devices.
void State::open_without_context() {
  const std::lock_guard lock(mutex_);
  const bool idle = contexts_.empty() && comms_.empty() && pending_.empty();
  if (devices_ && endless_ && idle) close_everything();
  endless_ = true;
  open_devices();
}

Context* State::open_with_context(const Context& context) {
  const std::lock_guard lock(mutex_);
  open_devices();
  auto owned = std::make_unique<Context>(context);
  Context* const raw = owned.get();
  contexts_.emplace(raw, std::move(owned));
  return raw;
}

bool State::finalize(const void* context) {
  const std::lock_guard lock(mutex_);
  if (contexts_.erase(context) == 0 || !contexts_.empty() || endless_) return false;
  close_everything();
  initialized_ = false;
  return true;
}

// This also closes comms that an aborted communicator has left: NCCL does not close a connection
// that was not established yet (src/transport/net.cc, sendProxyFree).
void State::close_everything() {
  size_t links = 0;
  for (const auto& [key, comm] : comms_) {
    links += comm->is_link() ? 1 : 0;
    if (comm->session) stats_.keep(comm->session->report());
  }
  if (links + pending_.size() > 0) {
    SLIME_INFO("closing %zu connections and %zu attempts to connect that were left open", links,
               pending_.size());
  }
  pending_.clear();
  comms_.clear();
  open_links_.fetch_sub(links);
  if (!devices_) return;
  tuner_policy_.reset();
  stats_.report(*devices_, {});
  stats_.retire(*devices_);
  devices_.reset();
}

}  // namespace slime::plugin
