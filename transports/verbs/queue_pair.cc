#include "transports/verbs/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "transports/verbs/work_id.h"

namespace slime::verbs {
namespace {

constexpr uint32_t kPsnMask = 0xffffff;
constexpr uint8_t kHopLimit = 255;
constexpr uint8_t kRnrTimer = 12;  // 0.64 ms (IBTA, table 45): a backstop, see channel.h
constexpr uint8_t kEndlessRnrRetries = 7;
constexpr int kLongestTimeout = 31;
constexpr int kMostRetriesOfSoftware = 6;
constexpr int kMostServiceLevel = 15;

// The NIC gives up when the time-out has passed once more than it may try again. It may take up to
// four times as long as is asked for (IBTA, 9.7.6.1.3).
uint64_t longest_wait_ns(int timeout, const Settings& settings) {
  const auto tries = static_cast<uint64_t>(settings.ib_retry_count) + 1;
  return tries * 4 * 4'096 << timeout;
}

uint8_t timeout_of(const Settings& settings) {
  if (settings.ib_timeout > 0) return static_cast<uint8_t>(settings.ib_timeout);
  const uint64_t limit_ns = seconds_to_ns(settings.peer_timeout) / 4 * 3;
  int timeout = 1;
  while (timeout < kLongestTimeout && longest_wait_ns(timeout + 1, settings) <= limit_ns) ++timeout;
  return static_cast<uint8_t>(timeout);
}

bool post_close(const QueuePair& pair, uint16_t place) {
  ibv_send_wr request = {};
  request.wr_id = WorkId{.kind = WorkId::Kind::kClose, .place = place}.pack();
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  return pair.post(&request) == 0;
}

}  // namespace

std::string describe_patience(const Settings& settings) {
  if (settings.ib_timeout == 0) return "";
  const double seconds = static_cast<double>(longest_wait_ns(settings.ib_timeout, settings)) / 1e9;
  if (seconds <= settings.peer_timeout) return "";
  return variable_of("NCCL_SLIME_IB_TIMEOUT") + "=" + std::to_string(settings.ib_timeout) +
         " with " + std::to_string(settings.ib_retry_count) +
         " retries lets a NIC wait for a dead peer for up to " +
         std::to_string(static_cast<int>(seconds)) + " s, longer than NCCL_SLIME_PEER_TIMEOUT";
}

Result<uint32_t> random_psn() {
  auto bits = random_number<uint32_t>();
  if (bits) *bits &= kPsnMask;
  return bits;
}

// As NCCL does: a setting comes first, then what the communicator asks for.
Path Path::from(const Port& port, const Settings& settings, int traffic_class) {
  Path path;
  path.mtu = port.mtu;
  int mark = traffic_class, level = settings.service_level;
  if (settings.traffic_class < 0 && settings.ib_traffic_class >= 0)
    mark = settings.ib_traffic_class;
  if (level < 0 && !port.ethernet && traffic_class <= kMostServiceLevel) level = traffic_class;
  path.traffic_class = static_cast<uint8_t>(std::max(mark, 0));
  path.service_level = static_cast<uint8_t>(std::max(level, 0));
  path.timeout = timeout_of(settings);
  const int most = port.nic->is_software() ? kMostRetriesOfSoftware : settings.ib_retry_count;
  path.retries = static_cast<uint8_t>(std::min(settings.ib_retry_count, most));
  return path;
}

// A NIC that cannot take as many bytes inline says EINVAL.
Result<QueuePair> QueuePair::create(std::shared_ptr<const Port> port, ibv_pd* pd,
                                    ibv_cq* completions, const QueueSizes& sizes) {
  const Nic& nic = *port->nic;
  ibv_qp_init_attr attributes = {};
  ibv_qp* made = nullptr;
  for (uint32_t inline_bytes = sizes.inline_bytes;; inline_bytes /= 2) {
    attributes = {};
    attributes.send_cq = attributes.recv_cq = completions;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = sizes.sends;
    attributes.cap.max_recv_wr = sizes.receives;
    attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = inline_bytes;
    made = nic.verbs().create_qp(pd, &attributes);
    if (made != nullptr || errno != EINVAL || inline_bytes == 0) break;
  }
  if (made == nullptr) {
    return fail(system_error(errno,
                             "device %s: ibv_create_qp for %u sends and %u receives failed; see "
                             "its max_qp and max_qp_wr (ibv_devinfo -v), and %s",
                             nic.name().c_str(), sizes.sends, sizes.receives, limit_behind(errno)));
  }
  QueuePair pair;
  pair.port_ = std::move(port);
  pair.qp_ = made;
  pair.inline_bytes_ = attributes.cap.max_inline_data;
  return pair;
}

QueuePair::~QueuePair() {
  if (qp_ == nullptr) return;
  const int code = port_->nic->verbs().destroy_qp(qp_);
  if (code == 0) return;
  if (shared_ != nullptr) shared_->note_lost_pair(place_);
  SLIME_WARN(
      "device %s: ibv_destroy_qp failed with error %d, so its peer may still write into this "
      "process's memory; see dmesg",
      port_->nic->name().c_str(), code);
}

Result<void> QueuePair::modify(ibv_qp_attr* attributes, int mask, const char* state) const {
  const Nic& nic = *port_->nic;
  const int code = nic.verbs().modify_qp(qp_, attributes, mask | IBV_QP_STATE);
  if (code == 0) return {};
  return fail(system_error(code, "device %s, port %d: qp 0x%x cannot become %s", nic.name().c_str(),
                           port_->number, qp_->qp_num, state));
}

Result<void> QueuePair::initialize(uint16_t pkey_index, unsigned peer_may) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = static_cast<uint8_t>(port_->number);
  attributes.pkey_index = pkey_index;
  attributes.qp_access_flags = peer_may;
  return modify(&attributes, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
}

Result<void> QueuePair::receive_from(const Path& path, const QueuePairName& peer) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = path.mtu;
  attributes.dest_qp_num = peer.number;
  attributes.rq_psn = peer.first_psn;
  attributes.max_dest_rd_atomic = path.reads_of_peer;
  attributes.min_rnr_timer = kRnrTimer;
  ibv_ah_attr& address = attributes.ah_attr;
  address.port_num = static_cast<uint8_t>(port_->number);
  address.sl = path.service_level;
  if (port_->ethernet || port_->needs_grh) {
    address.is_global = 1;
    std::memcpy(address.grh.dgid.raw, path.gid.data(), sizeof(Gid));
    address.grh.sgid_index = static_cast<uint8_t>(port_->gid.index);
    address.grh.hop_limit = kHopLimit;
    address.grh.traffic_class = path.traffic_class;
    address.grh.flow_label = path.flow_label;
  }
  if (!port_->ethernet) address.dlid = path.lid;
  return modify(&attributes,
                IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                "RTR");
}

Result<void> QueuePair::send_to(const Path& path, uint32_t first_psn) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = first_psn;
  attributes.timeout = path.timeout;
  attributes.retry_cnt = path.retries;
  attributes.rnr_retry = kEndlessRnrRetries;
  attributes.max_rd_atomic = path.reads;
  return modify(&attributes,
                IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                    IBV_QP_MAX_QP_RD_ATOMIC,
                "RTS");
}

int QueuePair::post(ibv_send_wr* requests, ibv_send_wr** refused) const {
  ibv_send_wr* unread = nullptr;
  return ibv_post_send(qp_, requests, refused == nullptr ? &unread : refused);
}

bool QueuePair::refuse_works() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  return modify(&attributes, IBV_QP_ACCESS_FLAGS, "RTS without works of the peer").has_value();
}

void QueuePair::stop() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_ERR;
  if (auto stopped = modify(&attributes, 0, "ERR"); !stopped) {
    SLIME_WARN("%s; the queue pair is destroyed instead", stopped.error().what.c_str());
  }
}

ClosingPairs::ClosingPairs(Completions completions, std::unique_ptr<Registered<Hellos>> hellos,
                           std::vector<QueuePair> pairs)
    : completions_(std::move(completions)), hellos_(std::move(hellos)), pairs_(std::move(pairs)) {
  const auto posted = [this](const QueuePair& pair) {
    return post_close(pair, completions_.place());
  };
  left_ = static_cast<size_t>(std::ranges::count_if(pairs_, posted));
}

bool ClosingPairs::is_done() {
  const int polled = take_all(completions_, [this](const ibv_wc& completion) {
    left_ -= WorkId::unpack(completion.wr_id).kind == WorkId::Kind::kClose;
  });
  return left_ == 0 || polled < 0;
}

}  // namespace slime::verbs
