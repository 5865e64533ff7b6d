// What the libfabric backend calls of libfabric: looked up at run time, so that the plugin loads
// where the library is not installed. It is also where tests put another one.
//
// All other calls are inline functions over tables in the objects that fi_fabric() and what follows
// it return (fabric(7)), and need no symbol.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"

namespace slime::fabric {

struct Symbols {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_version) version = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
};

// Of libfabric.so.1, loaded once and kept. The error names what is missing.
Result<const Symbols*> load_symbols();

// The newest interface that we know and this library has (fi_getinfo(3), "version").
uint32_t interface_version(const Symbols& symbols);

// "1.17"
std::string version_name(uint32_t version);

// What the headers of 1.17 do not have yet. From version 1.19 of the interface on libfabric reads
// more of the attributes, where zeros must be, and from 1.20 on it writes more of an error.
inline constexpr uint32_t kDmaBufVersion = FI_VERSION(1, 20);
inline constexpr uint64_t kMrDmaBuf = uint64_t{1} << 40;  // FI_MR_DMABUF
struct DmaBuf {                                           // fi_mr_dmabuf
  int descriptor = -1;
  uint64_t offset = 0;
  size_t bytes = 0;
  uint64_t start = 0;  // address of the buffer's first byte
};
struct MemoryAttributes {
  fi_mr_attr known = {};
  std::array<uint64_t, 8> later = {};
};
struct CompletionError {
  fi_cq_err_entry known = {};
  std::array<uint64_t, 8> later = {};
};

struct FreeInfo {
  const Symbols* symbols = nullptr;
  void operator()(fi_info* info) const { symbols->freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

inline Info duplicate(const Symbols& symbols, const fi_info* info) {
  return Info(symbols.dupinfo(info), FreeInfo{&symbols});
}

// A fid that is closed at the end. What it was opened on must outlive it.
template <typename T>
struct Close {
  void operator()(T* object) const { (void)::fi_close(&object->fid); }
};
template <typename T>
using Handle = std::unique_ptr<T, Close<T>>;

// For failed calls: appends what libfabric says of the code. `code` as returned, negative.
[[gnu::format(printf, 3, 4)]] Error fabric_error(const Symbols& symbols, long code,
                                                 const char* format, ...);

}  // namespace slime::fabric
