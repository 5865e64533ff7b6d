// How a session comes to be: ring, rails, a job on each switch, a sum over each, agreement.
#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "collnet/session.h"

namespace slime {
namespace {

constexpr uint64_t kSocketBufferBytes = 4 << 20;  // wanted; the kernel grants what it allows
constexpr uint32_t kLeastPacketBytes = sap::kHeaderBytes + 4 * Worker::kLeastLanes;

number::HalfBits half_bits_of(const Settings& settings) {
  if (settings.switch_half_bits == "16") return number::HalfBits::k16;
  return settings.switch_half_bits == "auto" ? number::HalfBits::kAuto : number::HalfBits::k32;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::connect(Fabric& fabric, int device, Listener& listener,
                                                  std::span<const Handle> handles, uint32_t rank,
                                                  uint64_t advice, const CommOptions& options) {
  std::unique_ptr<Session> session(
      new Session(fabric, "CollNet on " + fabric.device(device)->properties().name + ", rank " +
                              std::to_string(rank) + " of " + std::to_string(handles.size())));
  session->advice_ = advice;
  session->options_ = options;
  session->deadline_ns_ =
      fabric.clock().now_ns() + static_cast<uint64_t>(fabric.settings().connect_timeout * 1e9);
  auto done = session->set_up(device, listener, handles, rank);
  if (done) {
    session->connected_ = true;
    session->team_.keeper->take(session.get(), fabric.clock().now_ns());
    return session;
  }
  done.error().what = session->name() + ": " + done.error().what;
  return fail(std::move(done.error()));
}

// After each step that one member may fail at alone, all learn of it.
Result<void> Session::set_up(int device, Listener& listener, std::span<const Handle> handles,
                             uint32_t rank) {
  auto ring = Ring::connect(fabric_, device, listener, handles, rank, deadline_ns_, options_);
  if (!ring) return fail(std::move(ring.error()));
  ring_ = std::move(*ring);
  Result<void> done = compare_versions();
  if (done) done = come_together(device);
  return done ? agree(try_it(), "a first sum") : done;
}

// Once more, over fewer rails, for as long as some do not reach the switch.
Result<void> Session::come_together(int device) {
  for (;;) {
    std::vector<Member> members(ring_->size());
    Result<void> done = meet(device, &members);
    if (!done) return done;
    joined_ = false;
    shares_.clear();
    for (uint32_t i = 0; i < team_.switches.size(); ++i) {
      shares_.push_back(std::make_unique<Share>(team_, i));
    }
    auto jobs = obtain_jobs(members);
    if (!jobs) return fail(std::move(jobs.error()));
    // All are ready to receive before the first sends.
    done = agree(join(*jobs), "joining the job");
    if (!done) return done;
    auto work = all_rails_work();
    if (!work) return fail(std::move(work.error()));
    if (*work) return {};
  }
}

Result<Session::Member> Session::own_member() const {
  const auto name = random_number<uint64_t>();
  if (!name) return fail(name.error());
  Member own{.name = *name | 1,
             .advice = advice_,
             .lanes = (team_.port->max_packet_bytes() - uint32_t{sap::kHeaderBytes}) / 4,
             .well = 1,
             .half_bits = static_cast<uint32_t>(half_bits_of(fabric_.settings())),
             .rails = team_.port->count(),
             .guesses = 1,
             .switch_count = static_cast<uint32_t>(team_.switches.size())};
  for (uint32_t i = 0; i < own.rails; ++i) own.addresses[i] = team_.port->port(i).address().pack();
  for (uint32_t i = 0; i < own.switch_count; ++i) {
    own.switches[i] = {team_.switches[i].control.pack(), team_.switches[i].weight};
  }
  return own;
}

Result<void> Session::compare_versions() {
  std::vector<uint32_t> versions(ring_->size());
  versions[ring_->rank()] = kSessionVersion;
  auto told = ring_->all_gather(std::as_writable_bytes(std::span(versions)), sizeof(uint32_t),
                                deadline_ns_);
  return told ? check_versions(versions) : told;
}

Result<void> Session::meet(int device, std::vector<Member>* members) {
  Result<void> opened = team_.port ? Result<void>{} : prepare(device);
  if (opened) {
    auto own = own_member();
    if (own)
      (*members)[ring_->rank()] = *own;
    else
      opened = fail(std::move(own.error()));
  }
  auto told =
      ring_->all_gather(std::as_writable_bytes(std::span(*members)), sizeof(Member), deadline_ns_);
  if (!told) return told;
  std::vector<uint8_t> well;
  for (const Member& member : *members) well.push_back(member.well == 1);
  auto agreed = verdict(opened, well, "preparing for the switch");
  if (agreed) agreed = compare_advice(*members);
  if (!agreed) return agreed;
  auto addresses = addresses_of(*members);
  if (!addresses) return fail(std::move(addresses.error()));
  take(std::move(*addresses));
  team_.id = members->front().name;
  team_.job.half_bits = common_half_bits(*members);
  team_.job.guesses = std::ranges::all_of(*members, [](const Member& m) { return m.guesses == 1; });
  auto named = switches_of(*members);
  return named ? find_place(*named) : fail(std::move(named.error()));
}

// Ranks that differed would send what the switch cannot add up. 32 bits suit everybody.
number::HalfBits Session::common_half_bits(std::span<const Member> members) const {
  const number::HalfBits own = half_bits_of(fabric_.settings());
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].half_bits == static_cast<uint32_t>(own)) continue;
    SLIME_WARN(
        "%s: NCCL_SLIME_SWITCH_HALF_BITS is %s here and something else at rank %zu, so all ranks "
        "use 32 bits; give all the same value",
        name().c_str(), fabric_.settings().switch_half_bits.c_str(), rank);
    return number::HalfBits::k32;
  }
  return own;
}

// All have the same list, so all come to the same end.
Result<void> Session::compare_advice(std::span<const Member> members) const {
  for (size_t rank = 1; rank < members.size(); ++rank) {
    if (members[rank].advice == members[0].advice) continue;
    return fail(make_error(Status::kConfig, 0,
                           "the ranks 0 and %zu were told differently where to use CollNet, and "
                           "would hang; give all ranks the same NCCL_SLIME_TUNER and the same "
                           "NCCL_SLIME_TUNER_FILE",
                           rank));
  }
  return {};
}

// Members learn that others wait for them (Ring::invited) from a message that has come unasked.
Result<void> Session::check_settings() const {
  const Settings& settings = fabric_.settings();
  const size_t announced = team_.switches.size() * sizeof(Grant);
  if (ring_->size() > 1 && settings.eager_max < announced) {
    return fail(make_error(Status::kConfig, 0,
                           "CollNet needs NCCL_SLIME_EAGER_MAX of at least %zu, and it is %llu",
                           announced, static_cast<unsigned long long>(settings.eager_max)));
  }
  if (settings.switch_lanes > 0 &&
      static_cast<uint32_t>(settings.switch_lanes) < Worker::kLeastLanes) {
    return fail(make_error(Status::kConfig, 0,
                           "NCCL_SLIME_SWITCH_LANES is %d, and a packet needs at least %u: two "
                           "blocks of four words, in two copies where the operation is no sum",
                           settings.switch_lanes, Worker::kLeastLanes));
  }
  if (!control::is_tenant_name(settings.switch_tenant)) {
    return fail(make_error(Status::kConfig, 0,
                           "NCCL_SLIME_SWITCH_TENANT is \"%s\"; a tenant's name has letters, "
                           "digits, '-', '_' and '.', and at most %zu of them",
                           settings.switch_tenant.c_str(), control::kMaxTenantBytes));
  }
  return {};
}

Result<void> Session::prepare(int device) {
  const Settings& settings = fabric_.settings();
  auto switches = parse_switches(settings.switch_address);
  if (!switches) return fail(std::move(switches.error()));
  team_.switches = std::move(*switches);
  auto sound = check_settings();
  if (!sound) return sound;
  auto keeper =
      Housekeeper::get("keeps jobs on the switch alive", fabric_.device(device)->properties().near);
  if (!keeper) return fail(std::move(keeper.error()));
  team_.keeper = std::move(*keeper);
  team_.retry_ns = seconds_to_ns(settings.switch_retry);
  team_.job.rank = ring_->rank();
  team_.job.contributors = ring_->size();
  team_.job.silent_ns = seconds_to_ns(settings.switch_timeout);
  team_.job.dead_ns = seconds_to_ns(settings.request_timeout);
  team_.who.tenant = settings.switch_tenant;
  if (!settings.switch_key_file.empty()) {
    auto key = SecretKey::read_file(settings.switch_key_file);
    if (!key) return fail(std::move(key.error()));
    team_.who.key = *key;
  }
  return open_rails(device);
}

Result<void> Session::open_rails(int device) {
  const Settings& settings = fabric_.settings();
  const auto most = static_cast<uint32_t>(settings.switch_rails);
  std::vector<SocketAddress> peers;
  for (const NamedSwitch& named : team_.switches) peers.push_back(named.control);
  auto port = UdpRails::open(
      {.peers = std::move(peers),
       .buffer_bytes = settings.socket_buffer > 0 ? settings.socket_buffer : kSocketBufferBytes,
       .traffic_class = options_.chosen_class(settings)},
      rails_of_device(device), most > 0 ? most : sap::kMaxRails);
  if (!port) return fail(std::move(port.error()));
  team_.port = std::move(*port);
  const uint32_t bytes = team_.port->max_packet_bytes();
  if (bytes >= kLeastPacketBytes) return {};
  return fail(make_error(Status::kConfig, 0,
                         "the path to the switch at %s takes %u bytes a packet; "
                         "%u are needed: raise the MTU",
                         settings.switch_address.c_str(), bytes, kLeastPacketBytes));
}

// One sum over each switch.
Result<void> Session::try_it() {
  std::vector<int32_t> ones(shares_.size(), 1);
  uint64_t ticket = tickets_++;
  uint64_t now_ns = fabric_.clock().now_ns();
  const uint64_t until_ns = std::min(deadline_ns_, now_ns + kTrialTimeoutNs);
  for (size_t i = 0; i < shares_.size(); ++i) {
    const Operation operation{.send = &ones[i], .receive = &ones[i], .count = 1};
    (void)shares_[i]->worker().start(operation, now_ns, &ticket);
  }
  for (bool late = false; status() == Status::kOk && !done(ticket) && !late;) {
    // Before the look: who was held up looks once more.
    late = now_ns >= until_ns;
    progress(now_ns);
    sched_yield();
    now_ns = fabric_.clock().now_ns();
  }
  if (status() != Status::kOk) return fail(failure());
  for (size_t i = 0; i < shares_.size(); ++i) {
    const Share& share = *shares_[i];
    if (share.worker().done(ticket) && ones[i] == static_cast<int32_t>(ring_->size())) continue;
    if (!share.on_switch()) {
      return fail(make_error(Status::kTimeout, 0,
                             "without the switch at %s the ranks sum up for each other, but no sum "
                             "came within 5 s; does a firewall let UDP through between them?",
                             share.named().control.to_string().c_str()));
    }
    const ShardPorts data = share.data();
    return fail(make_error(Status::kTimeout, 0,
                           "the switch at %s answers, but no sum came back over UDP within 5 s "
                           "from its data address, %s; does this host reach that (the switch's "
                           "data.listen), and does a firewall let UDP through?",
                           share.named().control.to_string().c_str(),
                           control::shard_range(data.first, data.count).c_str()));
  }
  return {};
}

Result<void> Session::agree(const Result<void>& own, const char* on) {
  std::vector<uint8_t> well(ring_->size());
  well[ring_->rank()] = own ? 1 : 0;
  auto told = ring_->all_gather(std::as_writable_bytes(std::span(well)), 1, deadline_ns_);
  if (own && !told) return told;
  return verdict(own, well, on);
}

// What a member failed at is told by itself; the others say who it was.
Result<void> Session::verdict(const Result<void>& own, std::span<const uint8_t> well,
                              const char* on) {
  if (!own) return own;
  std::string who;
  for (uint32_t rank = 0; rank < well.size(); ++rank) {
    if (well[rank] == 0) who += (who.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (who.empty()) return {};
  return fail(make_error(Status::kRemote, 0, "%s failed at rank %s, so at all; %s", on, who.c_str(),
                         kToldElsewhere));
}

}  // namespace slime
