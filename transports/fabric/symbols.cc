#include "transports/fabric/symbols.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/library.h"

namespace slime::fabric {
namespace {

constexpr const char* kLibrary = "libfabric.so.1";
// Built against 1.17; what newer ones have is defined where it is used.
constexpr uint32_t kOldest = FI_VERSION(1, 17), kNewest = kDmaBufVersion;

Result<Symbols> load() {
  auto library = load_library(kLibrary);
  if (!library) {
    library.error().what =
        "libfabric: " + library.error().what + "; install libfabric 1.17 or later";
    return fail(std::move(library.error()));
  }
  Symbols symbols;
  const bool complete = find_function(*library, "fi_getinfo", &symbols.getinfo) &&
                        find_function(*library, "fi_freeinfo", &symbols.freeinfo) &&
                        find_function(*library, "fi_dupinfo", &symbols.dupinfo) &&
                        find_function(*library, "fi_fabric", &symbols.fabric) &&
                        find_function(*library, "fi_version", &symbols.version) &&
                        find_function(*library, "fi_strerror", &symbols.strerror);
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
