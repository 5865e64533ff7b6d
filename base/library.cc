#include "base/library.h"

#include <dlfcn.h>

namespace slime {

Result<void*> load_library(const char* name) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* const why = ::dlerror();
  return fail(make_error(Status::kUnsupported, 0, "%s cannot be loaded (%s)", name,
                         why != nullptr ? why : "no reason given"));
}

void* find_symbol(void* library, const char* name) { return ::dlsym(library, name); }

}  // namespace slime
