// Libraries that are looked up at run time, so that ours loads where they are not installed.
//
// Threads: any.
#pragma once

#include "base/error.h"

namespace slime {

// Opened for the rest of the process: what it gave out may be in use until then. The error says why
// it cannot be loaded.
Result<void*> load_library(const char* name);

void* find_symbol(void* library, const char* name);  // nullptr: it has none

template <typename Function>
bool find_function(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(find_symbol(library, name));
  return *function != nullptr;
}

}  // namespace slime
