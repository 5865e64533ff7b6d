#include "c_abi/boundary.h"

#include <slime_version.h>

namespace slime::api {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

std::string& result_text() {
  thread_local std::string text;
  return text;
}

int status_of(Status status) {
  switch (status) {
    case Status::kOk:
      return SLIME_OK;
    case Status::kAgain:
      return SLIME_AGAIN;
    case Status::kInvalid:
      return SLIME_ERR_INVALID;
    case Status::kConfig:
      return SLIME_ERR_CONFIG;
    case Status::kSystem:
      return SLIME_ERR_SYSTEM;
    case Status::kRemote:
      return SLIME_ERR_REMOTE;
    case Status::kTimeout:
      return SLIME_ERR_TIMEOUT;
    case Status::kNoMemory:
      return SLIME_ERR_NO_MEMORY;
    case Status::kUnsupported:
      return SLIME_ERR_UNSUPPORTED;
    case Status::kInternal:
      return SLIME_ERR_INTERNAL;
    case Status::kCancelled:
      return SLIME_ERR_CANCELLED;
  }
  return SLIME_ERR_INTERNAL;
}

int failed(const Error& error) {
  last_error() = with_option_names(error.what);
  return status_of(error.status);
}

bool read_extra(const slime_extra* given, Extra* known) {
  slime_extra read = SLIME_EXTRA_INIT;
  const uint32_t flags =
      SLIME_WITH_IMMEDIATE | SLIME_WITH_NOTIFICATION | SLIME_COMPLETES | SLIME_MORE | SLIME_BORROW;
  if (!read_struct(given, &read) || (read.flags & ~flags) != 0 || read.deadline_ns < 0)
    return false;
  const bool listed = (read.flags & SLIME_COMPLETES) != 0;
  if (listed && read.callback != nullptr) return false;
  Terms& terms = known->terms;
  terms.deadline_ns = static_cast<uint64_t>(read.deadline_ns);
  terms.more = (read.flags & SLIME_MORE) != 0;
  terms.completion.user = read.user;
  if (listed) terms.completion.by = Completion::By::kList;
  if (read.callback != nullptr) {
    terms.completion.by = Completion::By::kCallback;
    terms.completion.function = reinterpret_cast<Function>(read.callback);
  }
  known->borrows = (read.flags & SLIME_BORROW) != 0;
  if ((read.flags & SLIME_WITH_IMMEDIATE) != 0) known->immediate = read.immediate;
  if ((read.flags & SLIME_WITH_NOTIFICATION) == 0) return true;
  if (read.notification == nullptr && read.notification_bytes > 0) return false;
  known->notification =
      std::span(static_cast<const std::byte*>(read.notification), read.notification_bytes);
  return true;
}

int tell(const Result<uint64_t>& made, uint64_t* handle) {
  if (!made) return failed(made.error());
  *handle = *made;
  return SLIME_OK;
}

int invalid(const char* what) { return failed(make_error(Status::kInvalid, 0, "%s", what)); }

}  // namespace slime::api

extern "C" {

const char* slime_last_error(void) { return slime::api::last_error().c_str(); }

const char* slime_status_name(int status) {
  switch (status) {
    case SLIME_OK:
      return "ok";
    case SLIME_AGAIN:
      return "not yet";
    case SLIME_ERR_INVALID:
      return "invalid argument";
    case SLIME_ERR_CONFIG:
      return "configuration error";
    case SLIME_ERR_SYSTEM:
      return "system error";
    case SLIME_ERR_REMOTE:
      return "remote error";
    case SLIME_ERR_TIMEOUT:
      return "timeout";
    case SLIME_ERR_NO_MEMORY:
      return "out of resources";
    case SLIME_ERR_UNSUPPORTED:
      return "unsupported";
    case SLIME_ERR_INTERNAL:
      return "internal error";
    case SLIME_ERR_CANCELLED:
      return "cancelled";
    default:
      return "no status of libslime";
  }
}

const char* slime_version(void) { return SLIME_VERSION; }

}  // extern "C"
