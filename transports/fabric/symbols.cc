#include "transports/fabric/symbols.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace slime::fabric {
namespace {

constexpr const char* kLibrary = "libfabric.so.1";
// Built against 1.17; what newer ones have is defined where it is used.
constexpr uint32_t kOldest = FI_VERSION(1, 17), kNewest = FI_VERSION(1, 18);

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
                           "libfabric: %s cannot be loaded (%s); install libfabric 1.17 or later",
                           kLibrary, why != nullptr ? why : "no reason given"));
  }
  Symbols symbols;
  const bool complete = find(library, "fi_getinfo", &symbols.getinfo) &&
                        find(library, "fi_freeinfo", &symbols.freeinfo) &&
                        find(library, "fi_dupinfo", &symbols.dupinfo) &&
                        find(library, "fi_fabric", &symbols.fabric) &&
                        find(library, "fi_version", &symbols.version) &&
                        find(library, "fi_strerror", &symbols.strerror);
  if (!complete || symbols.version() < kOldest) {
    return fail(make_error(Status::kUnsupported, 0,
                           "libfabric: %s is version %s; install 1.17 or later", kLibrary,
                           complete ? version_name(symbols.version()).c_str() : "unknown"));
  }
  return symbols;
}

}  // namespace

Result<const Symbols*> load_symbols() {
  static const Result<Symbols> loaded = load();
  if (!loaded) return fail(loaded.error());
  return &*loaded;
}

uint32_t interface_version(const Symbols& symbols) { return std::min(symbols.version(), kNewest); }

std::string version_name(uint32_t version) {
  return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

Error fabric_error(const Symbols& symbols, long code, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const int positive = static_cast<int>(-code);
  return make_error(Status::kSystem, positive, "%s: %s (%d)", text, symbols.strerror(positive),
                    positive);
}

}  // namespace slime::fabric
