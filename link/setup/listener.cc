// A listener: one control socket, to which any number of peers connect. A connection whose hello
// proves that it is a peer's becomes an IncomingHandshake or, if it is of type kResume, a lifeline
// of a link that the owner has. All others are strangers (base/net/hello_port.h).
//
// State: the handshakes that have begun (incoming_), oldest first. accept() returns the parts of
// one link for each that is complete.
// Invariants: there are at most kHandshakes of them. Each has a descriptor, those of its channels,
// and the memory of an end, so one more peer gets the place of one that has kept this end
// waiting for kHandshakeGraceNs: of the address that has the most, as among visitors, and of those
// that have not confirmed, if there are any. The deadline for the next peer runs from the first
// accept() after the last one. It does not count while a peer is in its handshake, which has a
// deadline of its own. After the first link with a lifeline accept() has no deadline. Thread: the
// one that calls accept().

#include <algorithm>
#include <bit>
#include <list>
#include <optional>

#include "base/log.h"
#include "base/net/advertised.h"
#include "base/net/dialer.h"
#include "base/net/hello_port.h"
#include "base/net/port_range.h"
#include "link/setup/incoming_handshake.h"
#include "link/setup/resume.h"

namespace slime {
namespace {

// NCCL accepts one peer at a listener, other programs accept some. If more
// come at the same time, they connect again until the first are through.
constexpr size_t kHandshakes = 16;
// A peer that works opens its channels and confirms sooner; one that was late connects again.
constexpr uint64_t kHandshakeGraceNs = 250'000'000;
// Where all peers have confirmed: such a peer does not dial again.
constexpr uint64_t kConfirmedGraceNs = 5'000'000'000;

class LinkListenerImpl final : public LinkListener, private HelloPort {
 public:
  LinkListenerImpl(Devices& devices, Device& device, const Nonce& nonce, SocketAddress address,
                   Fd fd, LinkOwner& owner, int traffic_class)
      : HelloPort(sizeof(Hello), seconds_to_ns(devices.settings().handshake_timeout)),
        devices_(devices),
        device_(device),
        nonce_(nonce),
        address_(address),
        fd_(std::move(fd)),
        owner_(owner),
        traffic_class_(traffic_class),
        serves_links_(owner.expects_peers_for_ever()) {}

  LinkAddress address() const override {
    AddressFields fields;
    fields.nonce = nonce_;
    fields.address = address_.pack();
    std::ranges::copy_n(own_name().begin(), fields.name.size(), fields.name.begin());
    return std::bit_cast<LinkAddress>(fields);
  }

  Result<std::unique_ptr<LinkParts>> accept() override {
    if (!deadline_) {
      deadline_ = Deadline(devices_.clock(), seconds_to_ns(devices_.settings().request_timeout));
    }
    const Deadline::Look look(*deadline_);
    for (auto next = incoming_.begin(); next != incoming_.end();) {
      const auto incoming = next++;
      const Status status = incoming->step();
      if (status == Status::kAgain) continue;
      if (status == Status::kOk || !may_come_again(*incoming)) return finish(incoming);
      forget(incoming);
    }
    Error error;
    const Status status = read_callers(fd_, devices_.clock(), &error);
    if (status != Status::kOk && status != Status::kAgain) return fail(std::move(error));
    if (look.expired() && incoming_.empty() && !serves_links_) return fail(nobody_came());
    return nullptr;
  }

  bool busy() const override { return !incoming_.empty() || has_callers(); }
  int descriptor() const override { return fd_.get(); }

 private:
  using Incoming = std::list<IncomingHandshake>;

  // Takes a handshake that is complete or has failed out of the list.
  Result<std::unique_ptr<LinkParts>> finish(Incoming::iterator incoming) {
    Incoming finished;
    finished.splice(finished.begin(), incoming_, incoming);
    if (finished.front().step() != Status::kOk) return fail(finished.front().error());
    deadline_.reset();
    broken_.reset();
    auto parts = finished.front().take();
    serves_links_ |= parts->lifeline_seconds > 0 && devices_.settings().rail_retry > 0;
    return parts;
  }

  // A peer whose connection a network breaks dials again (connector.cc), unless it has confirmed.
  static bool may_come_again(const IncomingHandshake& one) {
    return !one.confirmed() && Dialer::may_pass(one.error());
  }
  // It has as much time for that as it takes.
  void forget(Incoming::iterator one) {
    SLIME_INFO("%s; it may connect again", one->error().what.c_str());
    broken_ = one->error();
    incoming_.erase(one);
    const Deadline soon(devices_.clock(), seconds_to_ns(devices_.settings().connect_timeout));
    if (soon.end_ns() < deadline_->end_ns()) *deadline_ = soon;
  }

  // The preamble is enough to recognise a stranger, without a wait for the rest of its hello.
  const char* refuse_begun(std::span<const std::byte> said) const override {
    Preamble preamble;
    if (said.size() < sizeof preamble) return nullptr;
    if (said.size() == sizeof(Hello)) return nullptr;  // accept(Caller&) reads the whole hello
    std::memcpy(&preamble, said.data(), sizeof preamble);
    if (valid(preamble, MessageType::kHello) || valid(preamble, MessageType::kResume))
      return nullptr;
    return "it sent no hello of this version of libnet-slime";
  }

  std::optional<std::string> accept(Caller& caller) override {
    Hello hello;
    std::memcpy(&hello, caller.hello.data(), sizeof hello);
    if (auto why = judge_hello(hello, nonce_)) return why;
    if (valid(hello.preamble, MessageType::kResume)) return resume(hello.link, caller);
    if (!make_room()) {
      abort_connection(std::move(caller.fd));
      return "the listener is in the middle of as many handshakes as it may have; it may try again";
    }
    incoming_.emplace_back(devices_, device_, hello, std::move(caller.fd), caller.from, owner_,
                           traffic_class_);
    (void)incoming_.back().step();  // sends the welcome; the next accept() finds how it went
    return std::nullopt;
  }

  // A link whose handshake has ended at the other end only is not there yet: that end dials again.
  std::optional<std::string> resume(const LinkId& link, Caller& caller) {
    HandshakeMessage<Resumed> answer;
    answer.value.known = owner_.has_link(link);
    const bool begun =
        std::ranges::find(incoming_, link, &IncomingHandshake::id) != incoming_.end();
    if (answer.value.known == 0 && begun) {
      abort_connection(std::move(caller.fd));
      return std::nullopt;
    }
    Error error;
    const Status sent = answer.send(caller.fd, &error);
    if (answer.value.known == 0) return "it dials for a link that has ended here";
    if (sent != Status::kOk) return "it did not take the answer: " + error.what;
    owner_.resume(link, std::make_unique<TcpLifelineStream>(std::move(caller.fd)));
    return std::nullopt;
  }

  // Makes sure that there is a place for one more handshake. False: none can be freed now.
  bool make_room() {
    if (incoming_.size() < kHandshakes) return true;
    const uint64_t now_ns = devices_.clock().now_ns();
    const bool all_confirmed = std::ranges::all_of(incoming_, &IncomingHandshake::confirmed);
    std::vector<Visit> visits;
    std::vector<Incoming::iterator> waiting;
    for (auto one = incoming_.begin(); one != incoming_.end(); ++one) {
      if (one->confirmed() && !all_confirmed) continue;
      visits.push_back(one->visit());
      waiting.push_back(one);
    }
    const uint64_t grace_ns = all_confirmed ? kConfirmedGraceNs : kHandshakeGraceNs;
    const auto index = visit_to_drop(visits, now_ns, grace_ns);
    if (!index) return false;
    const auto dropped = waiting[*index];
    // Its answer may just have come.
    if (dropped->step() != Status::kAgain || dropped->visit().since_ns >= now_ns) return false;
    if (const auto more = dropped_.turned_away(now_ns)) {
      SLIME_WARN(
          "accept of peer %s on device %s: dropped its handshake, which does not go on, for that "
          "of another peer; a listener has %zu at a time%s",
          visits[*index].from.to_string().c_str(), device_.properties().name.c_str(), kHandshakes,
          more->c_str());
    }
    dropped->abort();
    incoming_.erase(dropped);
    return true;
  }

  void log_stranger(const Caller& caller, const std::string& why,
                    const std::string& more) const override {
    SLIME_WARN("turned a connection away: accept of peer %s on device %s: %s%s",
               caller.from.to_string().c_str(), device_.properties().name.c_str(), why.c_str(),
               more.c_str());
  }

  Error nobody_came() const {
    if (broken_) {
      return make_error(broken_->status, broken_->code,
                        "%s; it has not connected again within %.0f s (NCCL_SLIME_CONNECT_TIMEOUT)",
                        broken_->what.c_str(), devices_.settings().connect_timeout);
    }
    return make_error(Status::kTimeout, 0,
                      "accept on device %s: nobody connected to %s for %.0f s; see whether the "
                      "other process lives and can reach this address, or raise "
                      "NCCL_SLIME_REQUEST_TIMEOUT%s",
                      device_.properties().name.c_str(), address_.to_string().c_str(),
                      devices_.settings().request_timeout, summary().c_str());
  }

  Devices& devices_;
  Device& device_;
  const Nonce nonce_;
  const SocketAddress address_;
  const Fd fd_;
  LinkOwner& owner_;
  const int traffic_class_;
  std::optional<Deadline> deadline_;  // until which some peer must connect
  std::optional<Error> broken_;       // the last handshake that a network broke since then
  bool serves_links_ = false;         // which have lifelines
  Incoming incoming_;                 // oldest first
  StrangerLog dropped_;               // of these
};

// The address of a rail, for control connections. A wildcard address is refused, because a peer
// cannot connect to it.
Result<SocketAddress> control_address(const RailCaps& caps) {
  auto address = SocketAddress::parse(caps.oob_address);
  if (!address || address->is_any()) {
    return fail(make_error(Status::kConfig, 0,
                           "rail %s has no address for control connections (\"%s\"); give an "
                           "interface of this host one, and name it in NCCL_SLIME_IFNAME",
                           caps.name.c_str(), caps.oob_address.c_str()));
  }
  address->set_port(0);
  return address;
}

// Listens at the address of the first rail that has a carrier, so that control connections stay on
// the network that the user chose; if that cannot be had, at that of another one.
Result<Fd> listen_at_some_rail(const Device& device, const PortRange& ports) {
  std::vector<Rail*> rails = device.rails();
  std::stable_partition(rails.begin(), rails.end(),
                        [](Rail* rail) { return rail->carrier() != Carrier::kDown; });
  std::optional<Error> first;
  for (const Rail* rail : rails) {
    auto address = control_address(rail->caps());
    auto fd = address ? listen_within(*address, ports) : Result<Fd>(fail(address.error()));
    if (fd) return fd;
    if (!first) first = std::move(fd.error());
  }
  return fail(std::move(*first));
}

}  // namespace

Result<std::unique_ptr<LinkListener>> LinkListener::open(Devices& devices, int device_index,
                                                         LinkOwner& owner, int traffic_class) {
  Device* device = devices.device(device_index);
  if (device == nullptr) {
    return fail(make_error(Status::kInvalid, 0, "listen: no device %d", device_index));
  }
  auto fd = listen_at_some_rail(*device, PortRange::of_setting(devices.settings().ports));
  if (!fd) return fail(fd.error());
  auto bound = local_address(*fd);
  if (!bound) return fail(bound.error());
  const auto advertised = AdvertisedAddresses::of_setting(devices.settings().advertise);
  auto nonce = random_nonce();
  if (!nonce) return fail(nonce.error());
  return std::make_unique<LinkListenerImpl>(devices, *device, *nonce, advertised.of(*bound),
                                            std::move(*fd), owner, traffic_class);
}

}  // namespace slime
