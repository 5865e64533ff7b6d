#include "transports/verbs/symbols.h"

#include <dlfcn.h>

namespace slime::verbs {
namespace {

constexpr const char* kLibrary = "libibverbs.so.1";

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(library, name));
  return *function != nullptr;
}

Result<Symbols> load() {
  // Never closed: channels may live until the process ends.
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return fail(make_error(Status::kUnsupported, 0,
                           "%s cannot be loaded (%s); install rdma-core's "
                           "libibverbs and the provider of the NIC",
                           kLibrary, why != nullptr ? why : "no reason given"));
  }
  Symbols symbols;
#define SLIME_VERBS_SYMBOL(name, required)                                  \
  if (!find(library, "ibv_" #name, &symbols.name) && (required)) {          \
    return fail(make_error(Status::kUnsupported, 0,                         \
                           "%s has no ibv_" #name "; install rdma-core 17 " \
                           "or later",                                      \
                           kLibrary));                                      \
  }
  SLIME_VERBS_SYMBOLS(SLIME_VERBS_SYMBOL)
#undef SLIME_VERBS_SYMBOL
  return symbols;
}

}  // namespace

Result<const Symbols*> load_symbols() {
  static const Result<Symbols> loaded = load();
  if (!loaded) return fail(loaded.error());
  return &*loaded;
}

}  // namespace slime::verbs
