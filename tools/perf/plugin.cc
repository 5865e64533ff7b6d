#include "tools/perf/plugin.h"

#include <cstdlib>

namespace slime::perf {

Error call_error(Status status, const std::string& call, nccl::ResultCode code) {
  const std::string warning = last_warning();
  return make_error(status, code, "%s: %s (%d)%s%s", call.c_str(), result_name(code), code,
                    warning.empty() ? "" : "; plugin: ", warning.c_str());
}

Result<void> Plugin::init(Algorithm algorithm, uint64_t comm_id) {
  auto code = net_->init(plugin_log, comm_id);
  if (code != nccl::kSuccess) return fail(call_error(Status::kSystem, "init of " + path_, code));
  net_ready_ = true;
  if (algorithm != Algorithm::kCollNet) return {};
  if (coll_ == nullptr) {
    return fail(make_error(Status::kConfig, 0,
                           "%s has no ncclCollNetPlugin_v6 to _v%d: NCCL has no CollNet with it",
                           path_.c_str(), max_api_));
  }
  code = coll_->init(plugin_log, comm_id);
  if (code != nccl::kSuccess) {
    return fail(call_error(Status::kSystem, "init of the CollNet of " + path_, code));
  }
  coll_ready_ = true;
  return {};
}

Result<void> Plugin::finalize() {
  Result<void> first;
  const auto end = [&first](auto& api, bool* ready) {
    if (!std::exchange(*ready, false)) return;
    const auto code = api->finalize();
    if (code == nccl::kSuccess || !first) return;
    first = fail(call_error(Status::kSystem, "finalize", code));
  };
  end(coll_, &coll_ready_);
  end(net_, &net_ready_);
  return first;
}

Result<CollProperties> Plugin::coll_device(int device) const {
  int count = 0;
  const auto code = coll_->devices(&count);
  if (code != nccl::kSuccess || count <= 0) {
    const char* address = std::getenv("NCCL_SLIME_SWITCH");
    const bool is_set = address != nullptr && *address != '\0';
    return fail(make_error(
        Status::kConfig, code, "the CollNet of %s has no device (%s): %s%s", path_.c_str(),
        result_name(code),
        is_set ? "although NCCL_SLIME_SWITCH is " : "NCCL_SLIME_SWITCH is not set; give it ",
        is_set ? address : "host:port of the control channel of a switch (slime-switchd)"));
  }
  CollProperties properties;
  if (device >= count || coll_->properties(device, &properties) != nccl::kSuccess) {
    return fail(make_error(Status::kConfig, 0, "--net-dev %d: CollNet has devices 0 to %d", device,
                           count - 1));
  }
  if ((properties.pointer_support & nccl::kPointerHost) == 0 ||
      properties.max_collective_bytes == 0) {
    return fail(
        make_error(Status::kUnsupported, 0, "CollNet device %d takes no host memory", device));
  }
  return properties;
}

}  // namespace slime::perf
