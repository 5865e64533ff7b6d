// RDMA NICs without hardware: libibverbs' calls over reliable connections between memory of this
// process. Works move when step() is called, so a test decides when. It keeps to what
// ibv_modify_qp(3), ibv_post_send(3), ibv_poll_cq(3) and the InfiniBand specification promise, and
// no more:
//   - a queue pair goes through INIT, RTR, RTS with all attributes that each transition needs;
//   - a work without its signal flag keeps its place until a later one's completion is polled;
//   - a peer that is not there is a retry until the time-outs are used up; a peer without a receive
//     is asked again, without end if rnr_retry is 7;
//   - a write without immediate is visible only once a later message or read of its queue pair has
//     been carried out, though it completes before;
//   - an error flushes all that is posted on the queue pair.
// Works of one queue pair move in order, those of different ones in an order drawn from the seed.
//
// Threads: any; a lock serializes all calls. One FakeVerbs lives at a time.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "transports/verbs/device/symbols.h"

namespace slime::test {

struct FakeVerbsOptions {
  size_t devices = 2;
  std::vector<std::string> names;  // of the devices, instead of fake0, fake1 ...
  int ports = 1;                   // of each device; all have its GIDs
  uint64_t seed = 1;
  bool ethernet = true;
  // Of each device, instead of one link-local GID and, on Ethernet, one of IPv4.
  std::vector<std::string> gids;
  ibv_mtu mtu = IBV_MTU_4096;
  uint8_t active_speed = 1, active_width = 2;  // as in ibv_port_attr
  uint32_t max_inline = 128;                   // more is refused with EINVAL
  uint32_t vendor_id = 0;
  // max_qp_init_rd_atom and max_qp_rd_atom of each device; the last is that of all further ones.
  std::vector<std::pair<int, int>> reads = {{16, 16}};
  bool dma_bufs = false;     // the kernel and the driver take them
  bool old_library = false;  // without ibv_reg_mr_iova2 and ibv_reg_dmabuf_mr
  // Of a queue pair that is destroyed stay in the completion queue, as with rxe; mlx5 removes them.
  bool keeps_completions = false;
};

// Of one device, since it was made.
struct FakeVerbsCounts {
  uint64_t doorbells = 0;  // calls of ibv_post_send
  uint64_t sends = 0;      // works that they took
  uint64_t send_completions = 0;
  uint64_t receives = 0;  // that were posted
  uint64_t looks = 0;     // calls of ibv_get_async_event that found no event
  uint64_t polls = 0;     // calls of ibv_poll_cq
};

class FakeVerbs {
 public:
  explicit FakeVerbs(const FakeVerbsOptions& options = {});
  ~FakeVerbs();
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;

  const verbs::Symbols& symbols() const { return symbols_; }
  std::string sysfs_root() const { return root_.string(); }

  bool step();  // false: nothing can move now
  void set_link(size_t device, bool up);
  // These two raise no event.
  void set_gid(size_t device, size_t index, const std::string& gid);
  void set_lid(size_t device, uint16_t lid);
  // The next work that moves on any queue pair ends so instead.
  void fail_next(ibv_wc_status status);
  void raise(size_t device, ibv_event_type type);
  // From now on, once so many have succeeded: 0 is no failure.
  void fail_registrations(int code, size_t after = 0);
  void fail_opening(int code);
  // From now on: ibv_create_cq with more places than these, and ibv_resize_cq.
  void limit_queues(int most);
  // From now on; 0 is no failure.
  void fail_polls(int code);           // ibv_poll_cq
  void fail_resizes(int code);         // ibv_resize_cq
  void fail_event_requests(int code);  // ibv_req_notify_cq
  // ibv_destroy_qp, until it is 0 again: those pairs end then.
  void fail_destroys(int code);
  // Calls of ibv_post_send take so many works more, then fail.
  void fail_sends(size_t after, int code);

  // Misuse that real hardware answers with silence or damage, as sentences.
  std::vector<std::string> violations() const;
  // Contexts, protection domains, queue pairs, completion queues, channels of events and
  // registrations that exist.
  size_t objects() const;
  FakeVerbsCounts counts(size_t device) const;
  // What ibv_modify_qp has set of the queue pairs of a device, in the order of their creation.
  std::vector<ibv_qp_attr> attributes(size_t device) const;
  // The ibv_access_flags that memory was registered with.
  unsigned access_of(uint64_t remote_key) const;

 private:
  friend struct FakeCalls;                        // the functions behind symbols()
  static constexpr int kMaxCompletions = 32'767;  // as rxe

  struct Device;
  struct Context {
    ibv_context base = {};
    Device* device = nullptr;
  };
  struct Device {
    ibv_device base = {};
    std::string name;
    uint64_t guid = 0;
    int reads = 0, reads_of_peer = 0;
    uint16_t lid = 0;
    std::vector<ibv_gid> gids;
    bool link_up = true;
    std::deque<ibv_async_event> events;
    int event_fd = -1;
    FakeVerbsCounts counts;
  };
  struct Region {
    Region() = default;
    ~Region();
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

    ibv_mr base = {};
    unsigned access = 0;
    uint64_t start = 0;          // as works say it
    std::byte* bytes = nullptr;  // where they are
    void* mapping = nullptr;     // of a DMA-BUF
    size_t mapped = 0;
  };
  struct Queue {
    ibv_cq base = {};
    std::deque<ibv_wc> completions;
    size_t users = 0;           // queue pairs
    bool announces = false;     // its next completion is an event
    size_t unacknowledged = 0;  // events
  };
  struct Events {
    ibv_comp_channel base = {};
    std::deque<ibv_cq*> raised;
  };
  struct Send {
    uint64_t id = 0;
    ibv_wr_opcode opcode = IBV_WR_SEND;
    unsigned flags = 0;
    uint32_t immediate = 0;
    uint64_t address = 0;
    uint32_t key = 0;
    std::vector<ibv_sge> pieces;
    std::vector<std::byte> data;  // inline
    uint32_t bytes = 0;
  };
  struct Receive {
    uint64_t id = 0;
    std::optional<ibv_sge> piece;
  };
  struct Unseen {
    std::byte* to = nullptr;
    std::vector<std::byte> bytes;
  };
  struct Pair {
    ibv_qp base = {};
    ibv_qp_cap room = {};
    ibv_qp_attr attributes = {};
    std::deque<Send> sends;
    std::deque<Receive> receives;
    std::vector<Unseen> unseen;  // of its writes, that are not in the peer's memory yet
    uint32_t sends_held = 0;     // places of the send queue that are not free
    uint32_t unsignaled = 0;     // of those, done and not known to be
    uint32_t next_psn = 0, expected_psn = 0;
    uint64_t tried_ns = 0;  // since when the first work is not acknowledged; 0: it was not tried
    uint32_t rnr_left = 0;
    bool all_signaled = false;
  };

  struct Place {  // where a work's bytes come from or go to
    std::byte* data = nullptr;
    bool granted = false;
  };

  // fake_devices.cc
  void make_device(size_t index);

  // fake_verbs.cc
  Device& device_of(const ibv_context* context);
  void complain(const std::string& what);

  // fake_queues.cc
  ibv_comp_channel* create_events(ibv_context* context);
  int destroy_events(ibv_comp_channel* channel);
  int take_event(ibv_comp_channel* channel, ibv_cq** queue);
  ibv_cq* create_queue(ibv_context* context, int entries, ibv_comp_channel* channel);
  int resize_queue(ibv_cq* queue, int entries);
  int destroy_queue(ibv_cq* queue);
  int request_event(ibv_cq* queue);
  int poll_queue(ibv_cq* queue, int room, ibv_wc* to);
  void complete(ibv_cq* queue, const ibv_wc& completion);

  // fake_memory.cc
  struct DmaBuf {
    uint64_t offset = 0;
    size_t bytes = 0;
    uint64_t start = 0;
    int fd = -1;
  };
  ibv_mr* register_host(ibv_pd* pd, void* address, size_t bytes, unsigned access);
  ibv_mr* register_dma_buf(ibv_pd* pd, const DmaBuf& buffer, unsigned access);
  ibv_mr* add_region(ibv_pd* pd, std::unique_ptr<Region> region, size_t bytes, unsigned access);
  bool fails_registration();  // with errno
  bool is_device_memory(const ibv_sge& piece) const;
  Place find_memory(const ibv_pd* pd, uint32_t key, bool remote, uint64_t address, uint64_t bytes,
                    unsigned access);

  // fake_pairs.cc
  void destroy_pair(ibv_qp* base);
  bool advance(Pair& pair);
  bool wait_for_peer(Pair& pair);
  ibv_wc_status carry_out(Pair& pair, Pair& peer, const Send& work);
  void show_writes(Pair& between);  // of it and of its peer
  static void show_writes_of(Pair& pair);
  ibv_wc_status read_remote(Pair& pair, Pair& peer, const Send& work);
  ibv_wc_status gather(const Pair& pair, const Send& work, std::vector<std::byte>* bytes);
  ibv_wc_status receive(Pair& peer, const Send& work, const std::vector<std::byte>& bytes);
  Pair* peer_of(const Pair& pair);
  void complete_send(Pair& pair, const Send& work, ibv_wc_status status);
  void break_pair(Pair& pair);

  mutable std::mutex mutex_;
  const FakeVerbsOptions options_;
  verbs::Symbols symbols_;
  std::filesystem::path root_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::map<uint32_t, std::unique_ptr<Pair>> pairs_;      // by number
  std::map<uint32_t, std::unique_ptr<Region>> regions_;  // by lkey
  std::map<ibv_cq*, std::unique_ptr<Queue>> queues_;
  std::map<ibv_comp_channel*, std::unique_ptr<Events>> events_;
  size_t contexts_ = 0, domains_ = 0;
  uint32_t next_number_ = 0x11, next_key_ = 0x1000;
  std::optional<ibv_wc_status> fail_next_;
  int most_completions_ = kMaxCompletions;
  int registration_code_ = 0, opening_code_ = 0, send_code_ = 0;
  int poll_code_ = 0, event_request_code_ = 0, resize_code_ = 0, destroy_code_ = 0;
  std::vector<ibv_qp*> undestroyed_;
  size_t sends_left_ = 0;          // before send_code_
  size_t registrations_left_ = 0;  // before registration_code_
  std::vector<std::string> violations_;
};

}  // namespace slime::test
