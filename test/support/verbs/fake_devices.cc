// The devices of FakeVerbs, and what a test may ask and do to them.
#include <arpa/inet.h>
#include <sys/eventfd.h>

#include <fstream>

#include "test/support/verbs/fake_verbs.h"

namespace slime::test {
namespace {

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text << "\n";
}

ibv_gid gid_of(const std::string& text) {
  ibv_gid gid = {};
  (void)::inet_pton(AF_INET6, text.c_str(), gid.raw);
  return gid;
}

}  // namespace

void FakeVerbs::make_device(size_t index) {
  auto device = std::make_unique<Device>();
  device->name = options_.names.empty() ? "fake" + std::to_string(index) : options_.names.at(index);
  device->guid = 0xfa4e000000000001 + index;
  device->lid = static_cast<uint16_t>(index + 1);
  const auto& reads = options_.reads.at(std::min(index, options_.reads.size() - 1));
  device->reads = reads.first;
  device->reads_of_peer = reads.second;
  const std::string last = std::to_string(index + 1);
  std::vector<std::string> gids = options_.gids;
  if (gids.empty()) gids = {"fe80::" + last};
  if (options_.gids.empty() && options_.ethernet) gids.push_back("::ffff:10.77.0." + last);
  for (const std::string& gid : gids) device->gids.push_back(gid_of(gid));
  device->event_fd = ::eventfd(0, EFD_CLOEXEC);
  for (int port = 1; port <= options_.ports; ++port) {
    const auto attributes =
        root_ / "class/infiniband" / device->name / "ports" / std::to_string(port) / "gid_attrs";
    for (size_t i = 0; i < gids.size(); ++i) {
      write_file(attributes / "types" / std::to_string(i), "RoCE v2");
      write_file(attributes / "ndevs" / std::to_string(i), "lo");
    }
  }
  devices_.push_back(std::move(device));
}

std::vector<std::string> FakeVerbs::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

size_t FakeVerbs::objects() const {
  const std::lock_guard lock(mutex_);
  return contexts_ + domains_ + pairs_.size() + queues_.size() + events_.size() + regions_.size();
}

FakeVerbsCounts FakeVerbs::counts(size_t device) const {
  const std::lock_guard lock(mutex_);
  return devices_[device]->counts;
}

std::vector<ibv_qp_attr> FakeVerbs::attributes(size_t device) const {
  const std::lock_guard lock(mutex_);
  std::vector<ibv_qp_attr> all;
  for (const auto& [number, pair] : pairs_) {
    if (pair->base.context->device == &devices_[device]->base) all.push_back(pair->attributes);
  }
  return all;
}

unsigned FakeVerbs::access_of(uint64_t remote_key) const {
  const std::lock_guard lock(mutex_);
  return regions_.at(static_cast<uint32_t>(remote_key) - 1)->access;
}

void FakeVerbs::set_gid(size_t device, size_t index, const std::string& gid) {
  const std::lock_guard lock(mutex_);
  devices_[device]->gids.at(index) = gid_of(gid);
}

void FakeVerbs::set_lid(size_t device, uint16_t lid) {
  const std::lock_guard lock(mutex_);
  devices_[device]->lid = lid;
}

void FakeVerbs::fail_registrations(int code, size_t after) {
  const std::lock_guard lock(mutex_);
  registration_code_ = code;
  registrations_left_ = after;
}

void FakeVerbs::limit_queues(int most) {
  const std::lock_guard lock(mutex_);
  most_completions_ = most;
}

void FakeVerbs::fail_polls(int code) {
  const std::lock_guard lock(mutex_);
  poll_code_ = code;
}

void FakeVerbs::fail_resizes(int code) {
  const std::lock_guard lock(mutex_);
  resize_code_ = code;
}

void FakeVerbs::fail_destroys(int code) {
  const std::lock_guard lock(mutex_);
  destroy_code_ = code;
  if (code != 0) return;
  for (ibv_qp* const pair : undestroyed_) destroy_pair(pair);
  undestroyed_.clear();
}

void FakeVerbs::fail_event_requests(int code) {
  const std::lock_guard lock(mutex_);
  event_request_code_ = code;
}

void FakeVerbs::fail_opening(int code) {
  const std::lock_guard lock(mutex_);
  opening_code_ = code;
}

void FakeVerbs::fail_sends(size_t after, int code) {
  const std::lock_guard lock(mutex_);
  sends_left_ = after;
  send_code_ = code;
}

void FakeVerbs::fail_next(ibv_wc_status status) {
  const std::lock_guard lock(mutex_);
  fail_next_ = status;
}

void FakeVerbs::raise(size_t device, ibv_event_type type) {
  const std::lock_guard lock(mutex_);
  ibv_async_event event = {};
  event.event_type = type;
  event.element.port_num = 1;
  static ibv_qp some_pair = {};
  const bool of_pair = type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
                       type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_COMM_EST;
  if (of_pair) event.element.qp = &some_pair;
  devices_[device]->events.push_back(event);
}

void FakeVerbs::set_link(size_t device, bool up) {
  {
    const std::lock_guard lock(mutex_);
    devices_[device]->link_up = up;
  }
  raise(device, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

}  // namespace slime::test
