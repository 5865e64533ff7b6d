// hwloc as a source for the NUMA node of a PCI function. It reads the same /sys. It also knows the
// administrator's settings (HWLOC_PCI_LOCALITY, HWLOC_XMLFILE; hwloc's "Environment Variables"),
// and corrects errors in the firmware of some hosts.
//
// The library is loaded at run time. Its inline functions call it by name, so none is used here.
#include <hwloc.h>

#include <utility>

#include "base/library.h"
#include "base/machine/topology.h"

namespace slime {
namespace {

constexpr const char* kLibrary = "libhwloc.so.15";  // hwloc 2; later ones have another layout

#define SLIME_HWLOC_SYMBOLS(X) \
  X(get_api_version)           \
  X(topology_init)             \
  X(topology_set_components)   \
  X(topology_set_type_filter)  \
  X(topology_load)             \
  X(topology_destroy)          \
  X(get_nbobjs_by_depth)       \
  X(get_obj_by_depth)          \
  X(bitmap_next)

struct Symbols {
#define SLIME_HWLOC_SYMBOL(name) decltype(&::hwloc_##name) name = nullptr;
  SLIME_HWLOC_SYMBOLS(SLIME_HWLOC_SYMBOL)
#undef SLIME_HWLOC_SYMBOL
};

Result<Symbols> load_symbols() {
  const auto library = load_library(kLibrary);
  if (!library) return fail(library.error());
  Symbols symbols;
#define SLIME_HWLOC_SYMBOL(name)                                                                \
  if (!find_function(*library, "hwloc_" #name, &symbols.name)) {                                \
    return fail(make_error(Status::kUnsupported, 0,                                             \
                           "%s has no hwloc_" #name "; install hwloc 2.1 or later", kLibrary)); \
  }
  SLIME_HWLOC_SYMBOLS(SLIME_HWLOC_SYMBOL)
#undef SLIME_HWLOC_SYMBOL
  return symbols;
}

class Hwloc final : public LocalitySource {
 public:
  explicit Hwloc(const Symbols& symbols) : call_(symbols) {
    const unsigned version = call_.get_api_version();
    name_ = "hwloc " + std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xff) +
            "." + std::to_string(version & 0xff);
  }
  ~Hwloc() override {
    if (topology_ != nullptr) call_.topology_destroy(topology_);
  }
  Hwloc(const Hwloc&) = delete;
  Hwloc& operator=(const Hwloc&) = delete;

  Result<void> load() {
    if (call_.topology_init(&topology_) != 0) return fail(failure("hwloc_topology_init"));
    // These components move the calling thread from CPU to CPU, or open GPUs, so they are excluded.
    // Not every build of hwloc has all of them.
    for (const char* component : {"x86", "cuda", "nvml", "rsmi", "levelzero", "opencl", "gl"}) {
      call_.topology_set_components(topology_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
    }
    call_.topology_set_type_filter(topology_, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (call_.topology_load(topology_) == 0) return {};
    return fail(failure("hwloc_topology_load"));
  }

  const std::string& name() const override { return name_; }

  CpuSet cpus_near(const PciAddress& address) const override {
    hwloc_obj_t object = find_function(address);
    while (object != nullptr && object->cpuset == nullptr) object = object->parent;
    CpuSet near;
    if (object == nullptr) return near;
    // A set may be infinite; add() ends the loop.
    for (int cpu = call_.bitmap_next(object->cpuset, -1); near.add(cpu);) {
      cpu = call_.bitmap_next(object->cpuset, cpu);
    }
    return near;
  }

 private:
  Error failure(const char* what) const {
    return make_error(Status::kSystem, 0, "%s of %s failed; see HWLOC_XMLFILE and lstopo", what,
                      name_.c_str());
  }

  hwloc_obj_t find_function(const PciAddress& address) const {
    const int count = call_.get_nbobjs_by_depth(topology_, HWLOC_TYPE_DEPTH_PCI_DEVICE);
    for (int i = 0; i < count; ++i) {
      const hwloc_obj_t object =
          call_.get_obj_by_depth(topology_, HWLOC_TYPE_DEPTH_PCI_DEVICE, static_cast<unsigned>(i));
      const auto& function = object->attr->pcidev;
      if (address == PciAddress{function.domain, function.bus, function.dev, function.func}) {
        return object;
      }
    }
    return nullptr;
  }

  const Symbols call_;
  std::string name_;
  hwloc_topology_t topology_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<LocalitySource>> open_hwloc() {
  auto symbols = load_symbols();
  if (!symbols) return fail(std::move(symbols.error()));
  auto hwloc = std::make_unique<Hwloc>(*symbols);
  if (auto loaded = hwloc->load(); !loaded) return fail(std::move(loaded.error()));
  return hwloc;
}

}  // namespace slime
