// Registrations and queues of FakeVerbs, and the functions behind its symbols.
#include "test/support/verbs/fake_verbs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace slime::test {
namespace {

FakeVerbs* current = nullptr;

constexpr uint32_t kMaxWorks = 16'384;

}  // namespace

// All take the lock, so what they call must not.
struct FakeCalls {
  using Lock = std::lock_guard<std::mutex>;

  static ibv_device** get_device_list(int* count) {
    const Lock lock(current->mutex_);
    auto** const list = new ibv_device*[current->devices_.size() + 1]();
    for (size_t i = 0; i < current->devices_.size(); ++i) list[i] = &current->devices_[i]->base;
    if (count != nullptr) *count = static_cast<int>(current->devices_.size());
    return list;
  }
  static void free_device_list(ibv_device** list) { delete[] list; }
  static FakeVerbs::Device& device(const ibv_device* base) {
    for (const auto& each : current->devices_) {
      if (&each->base == base) return *each;
    }
    std::abort();
  }
  static const char* get_device_name(ibv_device* base) { return device(base).name.c_str(); }
  static __be64 get_device_guid(ibv_device* base) { return __builtin_bswap64(device(base).guid); }

  static ibv_context* open_device(ibv_device* base) {
    const Lock lock(current->mutex_);
    if (current->opening_code_ != 0) {
      errno = current->opening_code_;
      return nullptr;
    }
    ++current->contexts_;
    auto* const context = new ibv_context();
    context->device = base;
    context->cmd_fd = -1;
    context->async_fd = device(base).event_fd;
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    return context;
  }
  static int close_device(ibv_context* context) {
    const Lock lock(current->mutex_);
    --current->contexts_;
    delete context;
    return 0;
  }
  static int query_device(ibv_context* context, ibv_device_attr* attributes) {
    const FakeVerbs::Device& of = current->device_of(context);
    *attributes = {};
    attributes->vendor_id = current->options_.vendor_id;
    attributes->phys_port_cnt = static_cast<uint8_t>(current->options_.ports);
    attributes->max_cqe = FakeVerbs::kMaxCompletions;
    attributes->max_qp_wr = kMaxWorks;
    attributes->max_qp_init_rd_atom = of.reads;
    attributes->max_qp_rd_atom = of.reads_of_peer;
    return 0;
  }
  static int query_port(ibv_context* context, uint8_t /*port*/, _compat_ibv_port_attr* to) {
    const Lock lock(current->mutex_);
    auto* const attributes = reinterpret_cast<ibv_port_attr*>(to);
    *attributes = {};
    const FakeVerbs::Device& of = current->device_of(context);
    attributes->state = of.link_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attributes->max_mtu = IBV_MTU_4096;
    attributes->active_mtu = current->options_.mtu;
    attributes->gid_tbl_len = static_cast<int>(of.gids.size());
    attributes->max_msg_sz = 8 << 20;
    attributes->active_speed = current->options_.active_speed;
    attributes->active_width = current->options_.active_width;
    attributes->lid = current->options_.ethernet ? 0 : of.lid;
    attributes->link_layer =
        current->options_.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    return 0;
  }
  static int query_gid(ibv_context* context, uint8_t /*port*/, int index, ibv_gid* gid) {
    const Lock lock(current->mutex_);
    const FakeVerbs::Device& of = current->device_of(context);
    if (index < 0 || static_cast<size_t>(index) >= of.gids.size()) return -1;
    *gid = of.gids[static_cast<size_t>(index)];
    return 0;
  }

  static int get_async_event(ibv_context* context, ibv_async_event* event) {
    const Lock lock(current->mutex_);
    FakeVerbs::Device& of = current->device_of(context);
    auto& events = of.events;
    if (events.empty()) {
      ++of.counts.looks;
      errno = EAGAIN;
      return -1;
    }
    *event = events.front();
    events.pop_front();
    return 0;
  }
  static void ack_async_event(ibv_async_event* /*event*/) {}
  static const char* event_type_str(ibv_event_type type) {
    return type == IBV_EVENT_PORT_ERR ? "port error" : "event";
  }
  static const char* wc_status_str(ibv_wc_status status) {
    static const auto texts = [] {
      std::vector<std::string> all;
      for (int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; ++i) {
        all.push_back("fake status " + std::to_string(i));
      }
      return all;
    }();
    return texts.at(status).c_str();
  }

  static ibv_pd* alloc_pd(ibv_context* context) {
    const Lock lock(current->mutex_);
    ++current->domains_;
    return new ibv_pd{context, 0};
  }
  static int dealloc_pd(ibv_pd* pd) {
    const Lock lock(current->mutex_);
    for (const auto& [key, region] : current->regions_) {
      if (region->base.pd == pd) current->complain("a protection domain ends before its memory");
    }
    --current->domains_;
    delete pd;
    return 0;
  }
  static ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t bytes, int access) {
    const Lock lock(current->mutex_);
    const auto flags = static_cast<unsigned>(access);
    if (flags & IBV_ACCESS_OPTIONAL_RANGE) {  // the kernel knows no such flag in this call
      errno = EINVAL;
      return nullptr;
    }
    return current->register_host(pd, address, bytes, flags);
  }
  static ibv_mr* reg_mr_iova2(ibv_pd* pd, void* address, size_t bytes, uint64_t start,
                              unsigned access) {
    const Lock lock(current->mutex_);
    if (start != reinterpret_cast<uint64_t>(address)) std::abort();  // nobody needs more yet
    return current->register_host(pd, address, bytes, access);
  }
  static ibv_mr* reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t bytes, uint64_t start, int fd,
                               int access) {
    const Lock lock(current->mutex_);
    return current->register_dma_buf(pd, {offset, bytes, start, fd}, static_cast<unsigned>(access));
  }
  static int dereg_mr(ibv_mr* region) {
    const Lock lock(current->mutex_);
    for (const auto& [number, pair] : current->pairs_) current->show_writes_of(*pair);
    if (current->regions_.erase(region->lkey) == 1) return 0;
    current->complain("memory is deregistered twice");
    return EINVAL;
  }

  static ibv_comp_channel* create_comp_channel(ibv_context* context) {
    const Lock lock(current->mutex_);
    return current->create_events(context);
  }
  static int destroy_comp_channel(ibv_comp_channel* channel) {
    const Lock lock(current->mutex_);
    return current->destroy_events(channel);
  }
  static int get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** user) {
    const Lock lock(current->mutex_);
    *user = nullptr;
    return current->take_event(channel, queue);
  }
  static void ack_cq_events(ibv_cq* queue, unsigned count) {
    const Lock lock(current->mutex_);
    current->queues_.at(queue)->unacknowledged -= count;
  }
  static ibv_cq* create_cq(ibv_context* context, int entries, void* /*user*/,
                           ibv_comp_channel* channel, int /*vector*/) {
    const Lock lock(current->mutex_);
    return current->create_queue(context, entries, channel);
  }
  static int resize_cq(ibv_cq* queue, int entries) {
    const Lock lock(current->mutex_);
    return current->resize_queue(queue, entries);
  }
  static int destroy_cq(ibv_cq* queue) {
    const Lock lock(current->mutex_);
    return current->destroy_queue(queue);
  }
  static int poll_cq(ibv_cq* queue, int room, ibv_wc* to) {
    const Lock lock(current->mutex_);
    return current->poll_queue(queue, room, to);
  }
  static int req_notify_cq(ibv_cq* queue, int /*solicited_only*/) {
    const Lock lock(current->mutex_);
    return current->request_event(queue);
  }

  static ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) {
    const Lock lock(current->mutex_);
    if (wanted->cap.max_inline_data > current->options_.max_inline ||
        wanted->cap.max_send_wr > kMaxWorks || wanted->cap.max_recv_wr > kMaxWorks ||
        wanted->qp_type != IBV_QPT_RC) {
      errno = EINVAL;
      return nullptr;
    }
    auto pair = std::make_unique<FakeVerbs::Pair>();
    pair->base.context = pd->context;
    pair->base.pd = pd;
    pair->base.send_cq = wanted->send_cq;
    pair->base.recv_cq = wanted->recv_cq;
    pair->base.qp_num = current->next_number_ += 3;
    pair->base.state = IBV_QPS_RESET;
    pair->room = wanted->cap;
    pair->all_signaled = wanted->sq_sig_all != 0;
    ++current->queues_.at(wanted->send_cq)->users;
    ++current->queues_.at(wanted->recv_cq)->users;
    ibv_qp* const made = &pair->base;
    current->pairs_[made->qp_num] = std::move(pair);
    return made;
  }
  static int destroy_qp(ibv_qp* base) {
    const Lock lock(current->mutex_);
    if (current->destroy_code_ != 0) {
      current->undestroyed_.push_back(base);
    } else {
      current->destroy_pair(base);
    }
    return current->destroy_code_;
  }
  // The masks are those of ibv_modify_qp(3), for reliable connections.
  static int modify_qp(ibv_qp* base, ibv_qp_attr* attributes, int mask) {
    const Lock lock(current->mutex_);
    FakeVerbs::Pair& pair = *current->pairs_.at(base->qp_num);
    constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    constexpr int kReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    constexpr int kSend = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    constexpr int kAccess = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
    const auto from = base->state, to = attributes->qp_state;
    const bool known = to == IBV_QPS_ERR ||
                       (from == IBV_QPS_RESET && to == IBV_QPS_INIT && mask == kInit) ||
                       (from == IBV_QPS_INIT && to == IBV_QPS_RTR && mask == kReceive) ||
                       (from == IBV_QPS_RTR && to == IBV_QPS_RTS && mask == kSend) ||
                       (from == IBV_QPS_RTS && to == IBV_QPS_RTS && mask == kAccess);
    if (!known) return EINVAL;
    if (to == IBV_QPS_ERR) {
      current->break_pair(pair);
      return 0;
    }
    if (mask & IBV_QP_ACCESS_FLAGS) pair.attributes.qp_access_flags = attributes->qp_access_flags;
    if (from == to) return 0;
    if (to == IBV_QPS_RTR) {
      pair.attributes.ah_attr = attributes->ah_attr;
      pair.attributes.dest_qp_num = attributes->dest_qp_num;
      pair.attributes.max_dest_rd_atomic = attributes->max_dest_rd_atomic;
      pair.expected_psn = attributes->rq_psn;
    }
    if (to == IBV_QPS_RTS) {
      pair.attributes.timeout = attributes->timeout;
      pair.attributes.retry_cnt = attributes->retry_cnt;
      pair.attributes.rnr_retry = attributes->rnr_retry;
      pair.attributes.max_rd_atomic = attributes->max_rd_atomic;
      pair.next_psn = attributes->sq_psn;
    }
    base->state = to;
    return 0;
  }

  static int post_send(ibv_qp* base, ibv_send_wr* request, ibv_send_wr** refused) {
    const Lock lock(current->mutex_);
    FakeVerbs::Pair& pair = *current->pairs_.at(base->qp_num);
    FakeVerbsCounts& counts = current->device_of(base->context).counts;
    ++counts.doorbells;
    for (; request != nullptr; request = request->next) {
      *refused = request;
      if (current->send_code_ != 0 && current->sends_left_-- == 0) {
        return std::exchange(current->send_code_, 0);
      }
      if (base->state != IBV_QPS_RTS && base->state != IBV_QPS_ERR) return EINVAL;
      if (pair.sends_held == pair.room.max_send_wr) return ENOMEM;
      FakeVerbs::Send work;
      work.id = request->wr_id;
      work.opcode = request->opcode;
      work.flags = request->send_flags;
      if (pair.all_signaled) work.flags |= IBV_SEND_SIGNALED;
      work.immediate = request->imm_data;
      work.address = request->wr.rdma.remote_addr;
      work.key = request->wr.rdma.rkey;
      work.pieces.assign(request->sg_list, request->sg_list + request->num_sge);
      for (const ibv_sge& piece : work.pieces) work.bytes += piece.length;
      if (work.flags & IBV_SEND_INLINE) {
        if (work.opcode == IBV_WR_RDMA_READ) current->complain("a read is inline");
        if (work.bytes > pair.room.max_inline_data) return EINVAL;
        for (const ibv_sge& piece : work.pieces) {
          if (current->is_device_memory(piece)) {
            current->complain("the CPU copies device memory, for an inline work");
            continue;
          }
          const auto* const from = reinterpret_cast<const std::byte*>(piece.addr);
          work.data.insert(work.data.end(), from, from + piece.length);
        }
      }
      ++pair.sends_held;
      ++counts.sends;
      if (base->state == IBV_QPS_ERR) {
        current->complete_send(pair, work, IBV_WC_WR_FLUSH_ERR);
      } else {
        pair.sends.push_back(std::move(work));
      }
    }
    *refused = nullptr;
    return 0;
  }
  static int post_recv(ibv_qp* base, ibv_recv_wr* request, ibv_recv_wr** refused) {
    const Lock lock(current->mutex_);
    FakeVerbs::Pair& pair = *current->pairs_.at(base->qp_num);
    for (; request != nullptr; request = request->next) {
      *refused = request;
      if (base->state == IBV_QPS_RESET) return EINVAL;
      if (pair.receives.size() == pair.room.max_recv_wr) return ENOMEM;
      FakeVerbs::Receive receive{request->wr_id, std::nullopt};
      if (request->num_sge > 0) receive.piece = request->sg_list[0];
      pair.receives.push_back(receive);
      ++current->device_of(base->context).counts.receives;
    }
    *refused = nullptr;
    if (base->state == IBV_QPS_ERR) current->break_pair(pair);
    return 0;
  }
  static int fork_init() { return 0; }
};

FakeVerbs::FakeVerbs(const FakeVerbsOptions& options) : options_(options), random_(options.seed) {
  std::string name = std::filesystem::temp_directory_path() / "slime-fake-verbs-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr || current != nullptr) std::abort();
  root_ = name;
  current = this;
  const size_t devices = options.names.empty() ? options.devices : options.names.size();
  for (size_t i = 0; i < devices; ++i) make_device(i);
#define SLIME_FAKE(name) symbols_.name = FakeCalls::name;
  SLIME_FAKE(get_device_list)
  SLIME_FAKE(free_device_list)
  SLIME_FAKE(get_device_name)
  SLIME_FAKE(get_device_guid)
  SLIME_FAKE(open_device)
  SLIME_FAKE(close_device)
  SLIME_FAKE(query_device)
  SLIME_FAKE(query_port)
  SLIME_FAKE(query_gid)
  SLIME_FAKE(get_async_event)
  SLIME_FAKE(ack_async_event)
  SLIME_FAKE(event_type_str)
  SLIME_FAKE(alloc_pd)
  SLIME_FAKE(dealloc_pd)
  SLIME_FAKE(reg_mr)
  SLIME_FAKE(dereg_mr)
  SLIME_FAKE(create_comp_channel)
  SLIME_FAKE(destroy_comp_channel)
  SLIME_FAKE(get_cq_event)
  SLIME_FAKE(ack_cq_events)
  SLIME_FAKE(create_cq)
  SLIME_FAKE(resize_cq)
  SLIME_FAKE(destroy_cq)
  SLIME_FAKE(create_qp)
  SLIME_FAKE(modify_qp)
  SLIME_FAKE(destroy_qp)
  SLIME_FAKE(wc_status_str)
  SLIME_FAKE(fork_init)
  if (!options.old_library) {
    SLIME_FAKE(reg_mr_iova2)
    SLIME_FAKE(reg_dmabuf_mr)
  }
#undef SLIME_FAKE
}

FakeVerbs::~FakeVerbs() {
  current = nullptr;
  for (const auto& device : devices_) (void)::close(device->event_fd);
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

FakeVerbs::Device& FakeVerbs::device_of(const ibv_context* context) {
  return FakeCalls::device(context->device);
}

void FakeVerbs::complain(const std::string& what) { violations_.push_back(what); }

}  // namespace slime::test
