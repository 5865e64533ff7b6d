// Memory of include/slime/slime.h, here and at peers.
#include "c_abi/boundary.h"

using namespace slime;
using namespace slime::api;

namespace {

static_assert(sizeof(slime_remote_info::name) == NamedRegions::kMostNameBytes + 1);

// The blob was checked when it came.
slime_remote_info info_of(const NamedRegion& region) {
  const RegionAddress address = *unpack_region(region.blob);
  slime_remote_info info = {};
  std::ranges::copy(region.name, info.name);
  std::memcpy(info.blob, region.blob.data(), region.blob.size());
  info.base = address.base;
  info.bytes = address.bytes;
  info.rights = address.rights;
  info.kind = address.in_device ? SLIME_CUDA : SLIME_HOST;
  return info;
}

}  // namespace

extern "C" {

int slime_register(slime_engine* engine, void* address, size_t bytes, const slime_memory* memory,
                   slime_region* region) {
  return guarded(engine, [&] {
    if (engine == nullptr || region == nullptr) {
      return invalid("slime_register: an argument is NULL");
    }
    slime_memory known = SLIME_MEMORY_INIT;
    if (!read_struct(memory, &known) || known.rights > 3 || known.kind > SLIME_CUDA_DMA_BUF ||
        (known.kind == SLIME_CUDA_DMA_BUF && known.dma_buf < 0) || known.reserved != 0) {
      return invalid(
          "slime_register: memory.size is wrong (begin with SLIME_MEMORY_INIT), memory.rights or "
          "memory.kind is unknown, memory.dma_buf is no descriptor, or memory.reserved is not 0");
    }
    const std::string name = known.name != nullptr ? known.name : "";
    if (name.size() > NamedRegions::kMostNameBytes) {
      return invalid("slime_register: the name has more than 63 bytes");
    }
    const auto rights = static_cast<uint8_t>(known.rights);
    MemoryRange range{.address = address, .bytes = bytes, .rights = rights};
    if (known.kind != SLIME_HOST) range.kind = MemoryKind::kCuda;
    if (known.kind == SLIME_CUDA_DMA_BUF) {
      range.dma_buf = known.dma_buf;
      range.dma_buf_offset = known.dma_buf_offset;
      range.alone = true;  // another one may have the same address
    }
    return tell(engine->engine->register_memory(range, name), region);
  });
}

int slime_advertise(slime_engine* engine, slime_region region, void* blob64) {
  return guarded(engine, [&] {
    if (engine == nullptr || blob64 == nullptr) {
      return invalid("slime_advertise: an argument is NULL");
    }
    auto blob = engine->engine->advertise(region);
    if (!blob) return failed(blob.error());
    std::memcpy(blob64, blob->data(), blob->size());
    return static_cast<int>(SLIME_OK);
  });
}

int slime_deregister(slime_engine* engine, slime_region handle, int64_t timeout_ns) {
  return guarded(engine, [&] {
    if (engine == nullptr) return invalid("slime_deregister: engine is NULL");
    if (Engine::is_calling_back() && timeout_ns != 0) return invalid(kCallsBack);
    Result<bool> ended = false;
    (void)in_time(limit_of(timeout_ns), [&] {
      ended = engine->engine->deregister(handle);
      return !ended || *ended;
    });
    if (!ended) return failed(ended.error());
    return static_cast<int>(*ended ? SLIME_OK : SLIME_AGAIN);
  });
}

int slime_import(slime_engine* engine, slime_peer peer, const void* blob64, slime_remote* remote) {
  return guarded(engine, [&] {
    if (engine == nullptr || blob64 == nullptr || remote == nullptr) {
      return invalid("slime_import: an argument is NULL");
    }
    const std::span blob(static_cast<const std::byte*>(blob64), kRegionBlobBytes);
    return tell(engine->engine->import(peer, blob), remote);
  });
}

int slime_regions(slime_engine* engine, slime_peer peer, int64_t timeout_ns,
                  slime_remote_info* regions, size_t* count) {
  return guarded(engine, [&] {
    if (engine == nullptr || count == nullptr || (regions == nullptr && *count > 0)) {
      return invalid("slime_regions: an argument is NULL");
    }
    if (Engine::is_calling_back()) return invalid(kCallsBack);
    const auto listed = engine->engine->list_regions(peer, limit_of(timeout_ns));
    if (!listed) return failed(listed.error());
    const size_t told = std::min(*count, listed->size());
    std::transform(listed->begin(), listed->begin() + static_cast<ptrdiff_t>(told), regions,
                   info_of);
    *count = listed->size();
    return static_cast<int>(SLIME_OK);
  });
}

}  // extern "C"
