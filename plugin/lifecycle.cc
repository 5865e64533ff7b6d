// Opens and closes the fabric: the part of State from the first init to the last finalize.
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
std::unique_ptr<Fabric> open_from_environment() {
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
  auto fabric = Fabric::open(*settings, SteadyClock::instance());
  if (!fabric) {
    SLIME_WARN("%s", fabric.error().what.c_str());
    announce_nothing("the rails cannot be opened");
    return nullptr;
  }
  return std::move(*fabric);
}

}  // namespace

void State::open_fabric() {
  initialized_ = true;
  if (fabric_) return;
  fabric_ = open_from_environment();
  if (!fabric_) return;
  if (fabric_->device_count() == 0) {
    const std::string notes = joined(fabric_->notes());
    announce_nothing(notes.empty() ? "no usable network interface was found" : notes);
    fabric_.reset();
    return;
  }
  announce(*fabric_);
  tuner_policy_ = std::make_shared<const TunerPolicy>(read_tuner_policy(fabric_->settings()));
  forbid_ll128_where_unsafe(*fabric_);
}

// NCCL calls this once, and again each time it has unloaded and loaded the plugin (2.24 and later,
// when the last communicator is gone). It then expects physical devices only, so the fabric is
// opened anew, without merged devices.
void State::open_without_context() {
  const std::lock_guard lock(mutex_);
  const bool idle = contexts_.empty() && comms_.empty() && pending_.empty();
  if (fabric_ && endless_ && idle) close_everything();
  endless_ = true;
  open_fabric();
}

Context* State::open_with_context(const Context& context) {
  const std::lock_guard lock(mutex_);
  open_fabric();
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
  if (!fabric_) return;
  tuner_policy_.reset();
  stats_.report(*fabric_, {});
  stats_.retire(*fabric_);
  fabric_.reset();
}

}  // namespace slime::plugin
