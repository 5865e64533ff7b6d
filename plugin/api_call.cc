#include "plugin/api_call.h"

#include "base/log.h"

namespace slime::plugin {

nccl::ResultCode to_result_code(Status status) noexcept {
  switch (status) {
    case Status::kOk:
    case Status::kAgain:
      return nccl::kSuccess;
    case Status::kConfig:
      return nccl::kInvalidUsage;
    case Status::kSystem:
    case Status::kNoMemory:
      return nccl::kSystemError;
    case Status::kRemote:
    case Status::kTimeout:
      return nccl::kRemoteError;
    case Status::kInvalid:  // NCCL's ext-net/README.md: ncclInvalidArgument is for NCCL itself
    case Status::kUnsupported:
    case Status::kCancelled:  // no call of NCCL's cancels
    case Status::kInternal:
      return nccl::kInternalError;
  }
  return nccl::kInternalError;
}

nccl::ResultCode report(const char* function, const Error& error) noexcept {
  if (!error.what.empty()) SLIME_WARN("%s: %s", function, error.what.c_str());
  return to_result_code(error.status);
}

nccl::ResultCode report_no_memory(const char* function) noexcept {
  SLIME_WARN("%s: out of memory: an allocation failed; raise the memory limit of this process",
             function);
  return to_result_code(Status::kNoMemory);
}

nccl::ResultCode report_exception(const char* function, const char* what) noexcept {
  SLIME_WARN("%s: unexpected exception: %s; please report this as a bug", function, what);
  return to_result_code(Status::kInternal);
}

}  // namespace slime::plugin
