// The wall between NCCL and us. Every exported function is one call of boundary(): nothing is
// thrown across it, and every error passes the one table that turns a Status into a result code.
#pragma once

#include <exception>
#include <new>

#include "base/error.h"
#include "plugin/nccl_abi.h"

namespace slime::plugin {

nccl::ResultCode to_result_code(Status status) noexcept;

// Logs the error once, as a warning (NCCL keeps it as "Last error"), and translates it. An error
// with an empty sentence was logged before: failures of a connection are for good, and every later
// call on it returns the same one.
nccl::ResultCode report(const char* function, const Error& error) noexcept;

// We throw nothing; what boundary() catches comes from the standard library.
nccl::ResultCode report_no_memory(const char* function) noexcept;
nccl::ResultCode report_exception(const char* function, const char* what) noexcept;

template <typename Body>
nccl::ResultCode boundary(const char* function, Body&& body) noexcept {
  try {
    const Result<void> outcome = body();
    if (outcome) [[likely]] {
      return nccl::kSuccess;
    }
    return report(function, outcome.error());
  } catch (const std::bad_alloc&) {
    return report_no_memory(function);
  } catch (const std::exception& exception) {
    return report_exception(function, exception.what());
  } catch (...) {
    return report_exception(function, "of an unknown type");
  }
}

}  // namespace slime::plugin
