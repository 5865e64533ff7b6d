// Every call of NCCL runs inside api_call(). It throws nothing, and every error passes the one
// function that translates a Status into a result code.
//
// Threads: any, several at a time.
#pragma once

#include <cstddef>
#include <exception>
#include <new>

#include "base/error.h"
#include "plugin/abi/types.h"

#define SLIME_EXPORT extern "C" [[gnu::visibility("default")]]

namespace slime::plugin {

inline constexpr char kPluginName[] = "SLIME";  // the value of NCCL_NET that chooses this plugin

nccl::ResultCode to_result_code(Status status) noexcept;

// Logs the error once, as a warning (NCCL keeps it as "Last error"), and translates it. An error
// without a sentence was logged before: the failure of a connection is permanent, and every later
// call on it returns the same error.
nccl::ResultCode report(const char* function, const Error& error) noexcept;

// Our code throws nothing; api_call() catches exceptions of the standard library.
nccl::ResultCode report_no_memory(const char* function) noexcept;
nccl::ResultCode report_exception(const char* function, const char* what) noexcept;

// `function` is NCCL's name of the function, for messages. `body` returns Result<void>.
template <typename Body>
nccl::ResultCode api_call(const char* function, Body&& body) noexcept {
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

// NCCL's name of a function, in a type that can be a template argument.
template <size_t kBytes>
struct ApiName {
  consteval ApiName(const char (&name)[kBytes]) {
    for (size_t i = 0; i < kBytes; ++i) text[i] = name[i];
  }
  char text[kBytes];
};

// api_function<"closeSend", close_send> is the entry of a table for a function that takes NCCL's
// arguments unchanged.
template <ApiName kName, auto kFunction>
struct ApiFunction;
template <ApiName kName, typename... Arguments, Result<void> (*kFunction)(Arguments...)>
struct ApiFunction<kName, kFunction> {
  static nccl::ResultCode call(Arguments... arguments) noexcept {
    return api_call(kName.text, [&] { return kFunction(arguments...); });
  }
};
template <ApiName kName, auto kFunction>
inline constexpr auto api_function = &ApiFunction<kName, kFunction>::call;

}  // namespace slime::plugin
