// Builds an Error. The length of its sentence is bounded, because NCCL's logger has a limit (see
// base/log.cc).

#include "base/error.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/net/socket.h"
#include "base/text.h"

namespace slime {
namespace {

std::string format_text(const char* format, va_list arguments) {
  char text[1024];
  const int length = vsnprintf(text, sizeof text, format, arguments);
  if (length < 0) return format;         // an invalid conversion: the bare sentence still helps
  blank_controls({text, strlen(text)});  // names and reasons in it may be a stranger's
  if (static_cast<size_t>(length) >= sizeof text) return std::string(text) + "...";
  return text;
}

}  // namespace

Status status_of_errno(int code) {
  switch (code) {
    case EAGAIN:
    case EINPROGRESS:
      return Status::kAgain;
    case ETIMEDOUT:
      return Status::kTimeout;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case ENETRESET:
      return Status::kRemote;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return Status::kNoMemory;
    default:
      return Status::kSystem;
  }
}

Error make_error(Status status, int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string what = format_text(format, arguments);
  va_end(arguments);
  return Error{status, code, std::move(what)};
}

tl::unexpected<Error> fail(Status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string what = format_text(format, arguments);
  va_end(arguments);
  return fail(Error{status, 0, std::move(what)});
}

Error system_error(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string what = format_text(format, arguments);
  va_end(arguments);
  char buffer[128];
  const char* reason = strerror_r(code, buffer, sizeof buffer);  // GNU's: strerror is not
                                                                 // thread-safe
  what += std::string(": ") + reason + " (errno " + std::to_string(code) + ")";
  // An error must not be kAgain, which callers take for no error.
  const Status status = status_of_errno(code);
  return Error{status == Status::kAgain ? Status::kSystem : status, code, std::move(what)};
}

const char* descriptor_advice(int code) {
  switch (code) {
    case EMFILE:
      return "; this process is out of descriptors, raise its limit (ulimit -n)";
    case ENFILE:
      return "; the machine is out of descriptors, raise fs.file-max";
    default:
      return "";
  }
}

Error descriptor_error(int code, const char* call) {
  Error error = system_error(code, "%s", call);
  error.what += descriptor_advice(code);
  return error;
}

}  // namespace slime
