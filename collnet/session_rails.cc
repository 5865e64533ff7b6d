// A session over several rails of its device: which there are, whether they reach the switch, and
// what is done when one does not, or not any more.
#include <sched.h>
#include <slime/log.h>

#include <bit>

#include "collnet/session.h"

namespace slime {
namespace {

constexpr uint64_t kOthersNs = 1'000'000'000;  // for a rail to answer, when another one has
constexpr uint64_t kProbeAgainNs = 20'000'000;

uint8_t all_of(uint32_t rails) { return static_cast<uint8_t>((1u << rails) - 1); }

// Asks about a slot on each rail. The switch answers whoever the job knows.
class RailProbe final : private DatagramUser {
 public:
  RailProbe(UdpRails& port, const WorkerOptions& job) : port_(port), job_(job) {
    // Without a slot there is nothing that the rail would have to carry.
    for (uint32_t rail = 0; rail < job.rails; ++rail) {
      if (rail * job.shards >= job.slots) answered_ |= static_cast<uint8_t>(1u << rail);
    }
  }
  uint8_t answered() const { return answered_; }
  void ask() {
    for (uint32_t rail = 0; rail < job_.rails; ++rail) {
      if ((answered_ >> rail & 1) == 0) ask(rail);
    }
    port_.flush();
  }
  void hear(uint64_t now_ns) { port_.receive(*this, now_ns); }

 private:
  void ask(uint32_t rail) {
    const sap::Header header{.type = sap::Type::kQuery,
                             .job = job_.job,
                             .generation = job_.generation,
                             .child = job_.child,
                             .token = job_.token,
                             .slot = static_cast<uint16_t>(rail * job_.shards),
                             .epoch = sap::kFirstEpoch};
    std::byte packet[sap::kHeaderBytes];
    sap::encode(header, packet);
    port_.send({Destination::Kind::kShard, 0, rail}, packet);
  }
  void on_datagram(std::span<const std::byte> datagram, const SocketAddress&, uint64_t) override {
    sap::Header header;
    if (sap::decode(datagram, &header) != sap::Fault::kNone || header.job != job_.job ||
        header.generation != job_.generation || header.token != job_.token ||
        header.type != sap::Type::kStatus) {
      return;
    }
    answered_ |= static_cast<uint8_t>(1u << sap::rail_of(header.slot, job_.shards, job_.rails));
  }

  UdpRails& port_;
  const WorkerOptions& job_;
  uint8_t answered_ = 0;
};

}  // namespace

std::vector<UdpRail> Session::rails_of_device(int device) const {
  std::vector<std::string> hosts;
  for (const Rail* rail : fabric_.device(device)->rails()) {
    hosts.push_back(rail->caps().oob_address);
  }
  return udp_rails_of(hosts);
}

// As many rails as all have.
void Session::take(SessionAddresses addresses) {
  members_ = std::move(addresses);
  if (port_->count() > members_.rails) {
    SLIME_INFO("%s: %u of %u rails to the switch are used; another rank has no more", name_.c_str(),
               members_.rails, port_->count());
    port_->keep(all_of(members_.rails));
  }
  for (uint32_t rail = 0; rail < members_.rails && members_.rails > 1; ++rail) {
    SLIME_INFO("%s: rail %u to the switch is %s", name_.c_str(), rail,
               port_->name_of(rail).c_str());
  }
}

std::span<const SocketAddress> Session::on_rail(uint32_t rail) const {
  return std::span(members_.all).subspan(size_t{rail} * ring_->size(), ring_->size());
}

// The same answer at all ranks. False: this one or others have fewer rails now.
Result<bool> Session::all_rails_work(const Grant& grant) {
  if (members_.rails == 1 || grant.from != Grant::From::kSwitch) return true;
  std::vector<uint8_t> answering(ring_->size());
  const uint8_t own = answering_rails();
  answering[ring_->rank()] = own;
  auto told = ring_->all_gather(std::as_writable_bytes(std::span(answering)), 1, deadline_ns_);
  if (!told) return fail(std::move(told.error()));
  bool work = true;
  for (const uint8_t rails : answering) work = work && rails == all_of(members_.rails);
  for (uint32_t rail = 0; rail < members_.rails; ++rail) {
    if ((own >> rail & 1) != 0) continue;
    SLIME_WARN(
        "%s: nothing came back from the switch's data address, %s, over %s, so CollNet does "
        "without it; check that both ends have a route, and rp_filter, or set "
        "NCCL_SLIME_SWITCH_RAILS=1",
        name_.c_str(), data_name_.c_str(), port_->name_of(rail).c_str());
  }
  // Where none works, the first sum is what fails, and says so.
  if (!work) port_->keep(own != 0 ? own : 1);
  return work;
}

// A rail that is silent is waited for a second longer than the first that answers: a switch that is
// busy answers on none. If all are silent, half of the time is left for the members to say so.
uint8_t Session::answering_rails() {
  RailProbe probe(*port_, job_);
  const uint8_t without_slots = probe.answered();
  uint64_t now_ns = fabric_.clock().now_ns(), ask_ns = now_ns;
  const uint64_t left_ns = deadline_ns_ - std::min(now_ns, deadline_ns_);
  uint64_t until_ns = now_ns + std::min(kTrialTimeoutNs, left_ns / 2);
  for (bool late = false; probe.answered() != all_of(members_.rails) && !late;) {
    late = now_ns >= until_ns;  // before the look: who was held up looks once more
    if (now_ns >= ask_ns) {
      probe.ask();
      ask_ns = now_ns + kProbeAgainNs;
    }
    const bool all_silent = probe.answered() == without_slots;
    probe.hear(now_ns);
    sched_yield();
    now_ns = fabric_.clock().now_ns();
    if (all_silent && probe.answered() != without_slots) {
      until_ns = std::min(until_ns, now_ns + kOthersNs);
    }
  }
  return probe.answered();
}

// Before its first sum.
void Session::leave_job() {
  lease_.reset();
  worker_.reset();
  port_->set_switch(SocketAddress(), 0);
}

// All have heard the same, so all drop the same.
void Session::drop_lost_rails() {
  uint8_t lost = 0;
  for (const Grant& grant : announced_) lost |= grant.lost_rails;
  const uint8_t left = all_of(members_.rails) & static_cast<uint8_t>(~lost);
  if (left == all_of(members_.rails) || left == 0) return;
  for (uint32_t rail = 0; rail < members_.rails; ++rail) {
    if ((left >> rail & 1) != 0) continue;
    SLIME_WARN(
        "%s: going on without %s, which does not reach the switch any more, here or at "
        "another rank",
        name_.c_str(), port_->name_of(rail).c_str());
  }
  SessionAddresses kept{.rails = static_cast<uint32_t>(std::popcount(left)), .all = {}};
  for (uint32_t rail = 0; rail < members_.rails; ++rail) {
    if ((left >> rail & 1) == 0) continue;
    kept.all.insert(kept.all.end(), on_rail(rail).begin(), on_rail(rail).end());
  }
  members_ = std::move(kept);
  port_->keep(left);
  port_->set_ranks({on_rail(0).begin(), on_rail(0).end()});
}

}  // namespace slime
