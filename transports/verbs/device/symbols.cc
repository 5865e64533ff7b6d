#include "transports/verbs/device/symbols.h"

#include "base/library.h"

namespace slime::verbs {
namespace {

constexpr const char* kLibrary = "libibverbs.so.1";

Result<Symbols> load() {
  auto library = load_library(kLibrary);
  if (!library) {
    library.error().what += "; install rdma-core's libibverbs and the provider of the NIC";
    return fail(std::move(library.error()));
  }
  Symbols symbols;
#define SLIME_VERBS_SYMBOL(name, required)                                   \
  if (!find_function(*library, "ibv_" #name, &symbols.name) && (required)) { \
    return fail(make_error(Status::kUnsupported, 0,                          \
                           "%s has no ibv_" #name "; install rdma-core 17 "  \
                           "or later",                                       \
                           kLibrary));                                       \
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
