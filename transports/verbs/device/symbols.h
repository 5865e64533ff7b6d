// What the verbs backend calls of libibverbs: looked up at run time, so that the plugin loads where
// the library is not installed. It is also where tests put another NIC.
//
// Calls of the data path (ibv_post_send, ibv_poll_cq, ibv_wr_*) are inline functions over tables in
// ibv_context and ibv_qp_ex (infiniband/verbs.h), and need no symbol.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "base/error.h"

namespace slime::verbs {

// name, required
#define SLIME_VERBS_SYMBOLS(X)  \
  X(get_device_list, true)      \
  X(free_device_list, true)     \
  X(get_device_name, true)      \
  X(get_device_guid, true)      \
  X(open_device, true)          \
  X(close_device, true)         \
  X(query_device, true)         \
  X(query_port, true)           \
  X(query_gid, true)            \
  X(get_async_event, true)      \
  X(ack_async_event, true)      \
  X(event_type_str, true)       \
  X(alloc_pd, true)             \
  X(dealloc_pd, true)           \
  X(reg_mr, true)               \
  X(reg_mr_iova2, false)        \
  X(reg_dmabuf_mr, false)       \
  X(dereg_mr, true)             \
  X(create_comp_channel, true)  \
  X(destroy_comp_channel, true) \
  X(get_cq_event, true)         \
  X(ack_cq_events, true)        \
  X(create_cq, true)            \
  X(resize_cq, true)            \
  X(destroy_cq, true)           \
  X(create_qp, true)            \
  X(modify_qp, true)            \
  X(destroy_qp, true)           \
  X(wc_status_str, true)        \
  X(fork_init, true)            \
  X(is_fork_initialized, false)

struct Symbols {
#define SLIME_VERBS_SYMBOL(name, required) decltype(&::ibv_##name) name = nullptr;
  SLIME_VERBS_SYMBOLS(SLIME_VERBS_SYMBOL)
#undef SLIME_VERBS_SYMBOL
};

// An object that ends with a call of the library that made it. What uses it must end before.
template <auto Destroy>
struct Release {
  const Symbols* verbs = nullptr;
  template <typename T>
  void operator()(T* object) const {
    (void)(verbs->*Destroy)(object);
  }
};
using CompletionQueue = std::unique_ptr<ibv_cq, Release<&Symbols::destroy_cq>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Release<&Symbols::dereg_mr>>;

// Of libibverbs.so.1, loaded once and kept. The error names what is missing.
Result<const Symbols*> load_symbols();

}  // namespace slime::verbs
