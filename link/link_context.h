// The common knowledge of all parts of a link: its two ends, its settings, and its failure.
//
// States: working until the first fail(), then failed for good. Any part may call fail(); later
// calls change nothing. Thread: that of the link.
#pragma once

#include <string>
#include <utility>

#include "base/check.h"
#include "devices/devices.h"

namespace slime {

class LinkEnd;

class LinkContext {
 public:
  LinkContext(Devices& devices_in, Device& device_in, std::string peer_in, bool active_in,
              int traffic_class_in, uint32_t channel_depth_in, uint64_t tag_in = 0)
      : devices(devices_in),
        device(device_in),
        peer(std::move(peer_in)),
        active(active_in),
        traffic_class(traffic_class_in),
        channel_depth(channel_depth_in),
        tag(tag_in),
        rail_timeout_ns(seconds_to_ns(settings().rail_timeout)),
        rail_retry_ns(seconds_to_ns(settings().rail_retry)) {}

  const Settings& settings() const { return devices.settings(); }
  // The address in the peer's name: "10.0.0.2" of "hostB:4711 (10.0.0.2)"; the whole name if it has
  // no address.
  std::string peer_host() const {
    const size_t begin = peer.rfind('(');
    return begin == std::string::npos ? peer : peer.substr(begin + 1, peer.rfind(')') - begin - 1);
  }
  const char* device_name() const { return device.properties().name.c_str(); }

  // The sender or receiver that uses the link; set before works complete or arrive.
  LinkEnd& user() const {
    SLIME_CHECK(user_ != nullptr);
    return *user_;
  }
  void set_user(LinkEnd& user) { user_ = &user; }

  // Fails the link. Every later call returns the status of the first error.
  Status fail(Error error) {
    if (failure_.status != Status::kOk) return failure_.status;
    failure_ = std::move(error);
    failure_.what = "peer " + peer + ", device " + device_name() + ": " + failure_.what;
    return failure_.status;
  }
  // The end of the link is near: it ends with its last rail, lifeline or not.
  void expect_end() { ends_ = true; }
  bool ends() const { return ends_; }
  Status fail_protocol(const char* what) {
    return fail(make_error(
        Status::kRemote, 0,
        "the peer sent %s; both ends should run the same version of libnet-slime", what));
  }
  Status status() const { return failure_.status; }
  const Error& failure() const { return failure_; }

  Devices& devices;
  Device& device;
  const std::string peer;          // for errors: host, process, address
  const bool active;               // this end connected, and tries to bring dead rails back
  const int traffic_class;         // of all channels, also of those that replace dead ones
  const uint32_t channel_depth;    // of the same channels: ChannelOptions::depth
  const uint64_t tag;              // of the same channels: what pollers call them
  const uint64_t rail_timeout_ns;  // NCCL_SLIME_RAIL_TIMEOUT
  const uint64_t rail_retry_ns;    // NCCL_SLIME_RAIL_RETRY; 0: dead rails stay dead

 private:
  LinkEnd* user_ = nullptr;
  Error failure_{Status::kOk, 0, {}};
  bool ends_ = false;
};

}  // namespace slime
