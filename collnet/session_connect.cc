// How a session comes to be: ring, address, job, one sum, agreement.
#include <sched.h>
#include <slime/log.h>
#include <slime/resolve.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collnet/session.h"

namespace slime {
namespace {

constexpr uint64_t kControlTimeoutNs = 5'000'000'000;
// On the way per rank: what socket buffers of 208 KiB (net.core.rmem_max, as kernels have it) hold
// of a few ranks, and enough for 1 GB/s at 100 us.
constexpr uint32_t kBytesOnTheWay = 128 << 10;
constexpr uint32_t kFewestSlots = 16, kMostSlots = 64;
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
    session->keeper_->take(session.get(), fabric.clock().now_ns());
    return session;
  }
  done.error().what = session->name_ + ": " + done.error().what;
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
    Grant grant;
    if (done) done = obtain_job(members, &grant);
    if (!done) return done;
    // All are ready to receive before the first sends.
    done = agree(join(grant), "joining the job");
    if (!done) return done;
    auto work = all_rails_work(grant);
    if (!work) return fail(std::move(work.error()));
    if (*work) return {};
    leave_job();
  }
}

Result<Session::Member> Session::own_member() const {
  const auto tree = random_number<uint64_t>();
  if (!tree) return fail(tree.error());
  Member own{.tree = *tree | 1,
             .advice = advice_,
             .lanes = (port_->max_packet_bytes() - uint32_t{sap::kHeaderBytes}) / 4,
             .well = 1,
             .half_bits = static_cast<uint32_t>(half_bits_of(fabric_.settings())),
             .rails = port_->count(),
             .guesses = 1,
             .control = control_address_.pack(),
             .addresses = {}};
  for (uint32_t i = 0; i < own.rails; ++i) own.addresses[i] = port_->port(i).address().pack();
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
  Result<void> opened = port_ ? Result<void>{} : open_rails(device);
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
  job_.half_bits = common_half_bits(*members);
  job_.guesses = std::ranges::all_of(*members, [](const Member& m) { return m.guesses == 1; });
  return find_place(*members);
}

// Ranks that differed would send what the switch cannot add up. 32 bits suit everybody.
number::HalfBits Session::common_half_bits(std::span<const Member> members) const {
  const number::HalfBits own = half_bits_of(fabric_.settings());
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].half_bits == static_cast<uint32_t>(own)) continue;
    SLIME_WARN(
        "%s: NCCL_SLIME_SWITCH_HALF_BITS is %s here and something else at rank %zu, so all ranks "
        "use 32 bits; give all the same value",
        name_.c_str(), fabric_.settings().switch_half_bits.c_str(), rank);
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

// Rank 0 asks, all learn what it got.
Result<void> Session::obtain_job(std::span<const Member> members, Grant* grant) {
  if (is_tree()) return obtain_part(members, grant);
  std::vector<Grant> grants(members.size());
  Result<control::JobGrant> asked = control::JobGrant{};
  if (ring_->rank() == 0) {
    asked = ask_for_job(members);
    const auto token = random_number<uint32_t>();
    if (asked) {
      grants[0] = grant_of(*asked);
    } else if (fabric_.settings().switch_optional && token) {
      SLIME_WARN("%s: without a switch, the ranks sum up for each other: %s", name_.c_str(),
                 asked.error().what.c_str());
      const control::CreateJob wanted = wanted_job(members);
      grants[0].from = Grant::From::kRanks;
      grants[0].token = *token;
      grants[0].slots = wanted.slots_wanted;
      grants[0].lanes = wanted.lanes_wanted;
      asked = control::JobGrant{};
    }
  }
  auto told =
      ring_->all_gather(std::as_writable_bytes(std::span(grants)), sizeof(Grant), deadline_ns_);
  if (!asked) return fail(std::move(asked.error()));
  if (!told) return told;
  *grant = grants[0];
  if (grant->from != Grant::From::kNobody) return check_grant(*grant);
  return fail(make_error(Status::kRemote, 0, "rank 0 got no job from the switch at %s; %s",
                         control_address_.to_string().c_str(), kToldElsewhere));
}

Session::Grant Session::grant_of(const control::JobGrant& grant) {
  return {.address = grant.address.pack(),
          .from = Grant::From::kSwitch,
          .shards = grant.shards,
          .slots = grant.slots,
          .lanes = grant.lanes,
          .job = grant.job.job,
          .generation = grant.job.generation,
          .token = grant.token};
}

// Members learn that others wait for them (Ring::invited) from a message that has come unasked.
Result<void> Session::check_settings() const {
  const Settings& settings = fabric_.settings();
  if (ring_->size() > 1 && settings.eager_max < sizeof(Grant)) {
    return fail(make_error(Status::kConfig, 0,
                           "CollNet needs NCCL_SLIME_EAGER_MAX of at least %zu, and it is %llu",
                           sizeof(Grant), static_cast<unsigned long long>(settings.eager_max)));
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

Result<void> Session::open_rails(int device) {
  auto sound = check_settings();
  if (!sound) return sound;
  auto keeper =
      Housekeeper::get("keeps jobs on the switch alive", fabric_.device(device)->properties().near);
  if (!keeper) return fail(std::move(keeper.error()));
  keeper_ = std::move(*keeper);
  const Settings& settings = fabric_.settings();
  auto address = resolve(settings.switch_address, control::kDefaultPort,
                         "NCCL_SLIME_SWITCH, the control channel of the switch");
  if (!address) return fail(std::move(address.error()));
  control_address_ = *address;
  who_.tenant = settings.switch_tenant;
  if (!settings.switch_key_file.empty()) {
    auto key = SecretKey::read_file(settings.switch_key_file);
    if (!key) return fail(std::move(key.error()));
    who_.key = *key;
  }
  const auto most = static_cast<uint32_t>(settings.switch_rails);
  auto port = UdpRails::open(
      {.peer = control_address_,
       .buffer_bytes = settings.socket_buffer > 0 ? settings.socket_buffer : kSocketBufferBytes,
       .traffic_class = options_.chosen_class(settings)},
      rails_of_device(device), most > 0 ? most : sap::kMaxRails);
  if (!port) return fail(std::move(port.error()));
  port_ = std::move(*port);
  if (port_->max_packet_bytes() >= kLeastPacketBytes) return {};
  return fail(make_error(Status::kConfig, 0,
                         "the path to the switch at %s takes %u bytes a packet; "
                         "%u are needed: raise the MTU",
                         control_address_.to_string().c_str(), port_->max_packet_bytes(),
                         kLeastPacketBytes));
}

control::CreateJob Session::job_of_all() const {
  control::CreateJob job;
  job.tenant = fabric_.settings().switch_tenant;
  job.formats = sap::kKnownFormats;
  job.children = members_.all;
  job.rails = members_.rails;
  return job;
}

control::CreateJob Session::wanted_job(std::span<const Member> members) const {
  const Settings& settings = fabric_.settings();
  control::CreateJob wanted = job_of_all();
  wanted.slots_least = 1;
  wanted.lanes_least = Worker::kLeastLanes;
  wanted.lanes_wanted =
      settings.switch_lanes > 0 ? static_cast<uint32_t>(settings.switch_lanes) : sap::kMaxLanes;
  for (const Member& member : members) {
    wanted.lanes_wanted = std::min(wanted.lanes_wanted, member.lanes);
  }
  wanted.slots_wanted =
      settings.switch_slots > 0
          ? static_cast<uint32_t>(settings.switch_slots)
          : std::clamp(kBytesOnTheWay / (4 * wanted.lanes_wanted), kFewestSlots, kMostSlots);
  return wanted;
}

Result<control::JobGrant> Session::ask_for_job(std::span<const Member> members) {
  auto client = SwitchClient::open(control_address_, who_, kControlTimeoutNs);
  if (!client) return fail(std::move(client.error()));
  auto grant = (*client)->create_job(wanted_job(members), kControlTimeoutNs);
  if (!grant) return grant;
  lease_.emplace(LeaseTerms{control_address_, who_, grant->job, grant->lease_ms},
                 std::move(*client), keeper_);
  return grant;
}

Result<void> Session::join(const Grant& grant) {
  const Settings& settings = fabric_.settings();
  job_.job = grant.job;
  job_.generation = grant.generation;
  job_.token = grant.token;
  job_.rank = ring_->rank();
  job_.contributors = ring_->size();
  job_.slots = grant.slots;
  job_.lanes = grant.lanes;
  job_.silent_ns = static_cast<uint64_t>(settings.switch_timeout * 1e9);
  job_.dead_ns = static_cast<uint64_t>(settings.request_timeout * 1e9);
  const bool direct = grant.from == Grant::From::kRanks;
  job_.shards = direct ? 1 : grant.shards;
  job_.rails = direct ? 1 : members_.rails;
  auto worker = Worker::open(job_, *port_);
  if (!worker) return fail(std::move(worker.error()));
  worker_ = std::move(*worker);
  port_->set_ranks({on_rail(0).begin(), on_rail(0).end()});
  if (direct) {
    worker_->resume({.job = job_.job,
                     .generation = job_.generation,
                     .token = job_.token,
                     .direct = true,
                     .epochs = {}},
                    fabric_.clock().now_ns());
    seek_switch(fabric_.clock().now_ns());
    return serve();
  }
  auto address = SocketAddress::unpack(grant.address);
  if (!address) return fail(std::move(address.error()));
  port_->set_switch(*address, grant.shards);
  data_name_ = control::shard_range(*address, grant.shards);
  return {};
}

Result<void> Session::try_it() {
  int32_t one = 1;
  uint64_t ticket = 0;
  const Operation operation{.send = &one, .receive = &one, .count = 1};
  const uint64_t until_ns = std::min(deadline_ns_, fabric_.clock().now_ns() + kTrialTimeoutNs);
  Status status = start(operation, &ticket);
  bool done = false;
  for (bool late = false; status == Status::kOk && !done && !late;) {
    // Before the look: who was held up looks once more.
    late = fabric_.clock().now_ns() >= until_ns;
    status = test(ticket, &done);
    sched_yield();
  }
  if (done && one == static_cast<int32_t>(ring_->size())) return {};
  if (status != Status::kOk) return fail(worker_->failure());
  return fail(make_error(Status::kTimeout, 0,
                         "the switch at %s answers, but no sum came back over UDP within 5 s from "
                         "its data address, %s; does this host reach that (the switch's "
                         "data.listen), and does a firewall let UDP through?",
                         control_address_.to_string().c_str(), data_name_.c_str()));
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
