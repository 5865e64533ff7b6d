// Loads libraries at run time, so that the plugin also loads on hosts without them.
//
// Threads: any.
#pragma once

#include "base/error.h"

namespace slime {

// Loads a library until the process ends, because its functions may be in use until then. The error
// says why it cannot be loaded.
Result<void*> load_library(const char* name);

void* find_symbol(void* library, const char* name);  // nullptr: no such symbol

template <typename Function>
bool find_function(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(find_symbol(library, name));
  return *function != nullptr;
}

}  // namespace slime
