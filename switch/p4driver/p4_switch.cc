#include "switch/p4driver/p4_switch.h"

#include <algorithm>

#include "base/log.h"
#include "switch/core/shard.h"
#include "switch/core/slots.h"

namespace slime::net {
namespace {

using std::chrono::steady_clock;

SwitchShape shape_of(const P4Options& options, const P4Traits& traits) {
  const uint32_t lanes = std::min(options.max_lanes, traits.lanes);
  return {.address = options.address,
          .shards = options.shards,
          .max_lanes = lanes,
          .slot_bytes = Slots::bytes_for(traits.slots, lanes),
          .formats = options.formats & traits.formats};
}

}  // namespace

P4Switch::P4Switch(std::unique_ptr<P4Runtime> runtime, std::unique_ptr<const P4Program> program)
    : runtime_(std::move(runtime)),
      program_(std::move(program)),
      shape_(shape_of(program_->options(), program_->traits())) {}

Result<std::unique_ptr<P4Switch>> P4Switch::open(std::unique_ptr<P4Runtime> runtime,
                                                 std::unique_ptr<const P4Program> program) {
  auto checked = net::check(program->options(), program->traits());
  if (!checked) return fail(std::move(checked.error()));
  std::unique_ptr<P4Switch> opened(new P4Switch(std::move(runtime), std::move(program)));
  opened->end_by(steady_clock::now() + kOperation);
  if (auto done = opened->runtime_->connect(); !done) return fail(std::move(done.error()));
  if (auto done = opened->program(); !done) return fail(std::move(done.error()));
  opened->end_by(steady_clock::time_point::max());
  return opened;
}

// Programs what does not depend on jobs: own address, hosts, flooding, the rate of refusals.
Result<void> P4Switch::program() {
  if (auto done = runtime_->reset(); !done) return done;
  for (const TableEntry& entry : program_->device_entries()) {
    if (auto done = runtime_->add(entry); !done) return done;
  }
  const P4Program::Flooding flooding = program_->flooding();
  if (auto done = runtime_->add_group(flooding.group); !done) return done;
  if (auto done = runtime_->set_default(flooding.table, flooding.action); !done) return done;
  return runtime_->limit(program_->traits().reject_meter, Shard::kRejectsPerSecond);
}

void P4Switch::maintain() {
  if (steady_clock::now() < next_check_) return;
  if (lost_ || !runtime_->is_connected()) reprogram();
  next_check_ = steady_clock::now() + kCheckEvery;
}

// All jobs are lost from the first failure on, whether or not the device kept their entries,
// because the last calls may have taken effect or not. A reason that repeats is logged once.
void P4Switch::reprogram() {
  if (!lost_) {
    SLIME_WARN("%s is lost, and with it %zu jobs; it is tried again every %lld ms", name().c_str(),
               jobs_.size(), static_cast<long long>(kCheckEvery.count()));
  }
  lost_ = true;
  for (auto& [number, job] : jobs_) job.lose();
  auto done = runtime_->connect();
  if (done) done = program();
  if (!done) {
    if (done.error().what != trouble_) SLIME_WARN("%s", done.error().what.c_str());
    trouble_ = done.error().what;
    return;
  }
  lost_ = false;
  trouble_.clear();
  ++restarts_;
  SLIME_WARN("%s is programmed again; it has no jobs", name().c_str());
}

Result<void> P4Switch::check_address(const JobSpec& spec, const char* who,
                                     const SocketAddress& end) const {
  if (end.is_ipv6() || end.port() == 0) {
    return fail(Status::kInvalid, "job %u: %s %s: the P4 program takes IPv4 addresses with a port",
                spec.job, who, end.to_string().c_str());
  }
  if (!program_->options().hosts.contains(ipv4_of(end))) {
    return fail(Status::kInvalid,
                "job %u: %s %s: the switch does not know where that host is; add its MAC and port "
                "to the section hosts of slime-switchd's configuration",
                spec.job, who, end.to_string().c_str());
  }
  return {};
}

Result<void> P4Switch::check(const JobSpec& spec) const {
  const P4Traits& traits = program_->traits();
  const auto refuse = [&](const std::string& why) {
    return fail(Status::kInvalid, "job %u: %s", spec.job, why.c_str());
  };
  if (lost_) return refuse(lost().what);
  // A job that no switch could have is refused as the software switch does.
  if (auto possible = Shard::check(spec); !possible) return possible;
  if (spec.max_lanes > shape_.max_lanes) {
    return refuse("packets have at most " + std::to_string(shape_.max_lanes) + " lanes on " +
                  traits.device);
  }
  for (const SocketAddress& child : spec.children) {
    if (auto known = check_address(spec, "child", child); !known) return known;
  }
  if (spec.parent) {
    if (auto known = check_address(spec, "parent", spec.parent->address); !known) return known;
  }
  if (const std::string why = program_->refusal_of(spec); !why.empty()) return refuse(why);
  return {};
}

// Room beside the other jobs. A lost job takes none.
Result<Placement> P4Switch::place(const JobSpec& spec) const {
  const P4Traits& traits = program_->traits();
  std::vector<PlacedJob> placed;
  for (const auto& [number, job] : jobs_) {
    if (!job.is_lost()) placed.push_back(job.placed());
  }
  if (const auto found = find_place(placed, footprint_of(spec), traits)) return *found;
  return fail(
      Status::kNoMemory,
      "job %u: %u slots, %zu addresses of children: the P4 program has %u slots in all (and no gap "
      "that wide is left), %u jobs and %u addresses; ask for fewer slots, or end other jobs",
      spec.job, spec.slots, spec.children.size(), traits.slots, traits.jobs, traits.sources);
}

// A job of the same number is replaced: it is removed first.
Result<void> P4Switch::add_job(const JobSpec& spec) {
  if (auto checked = check(spec); !checked) return checked;
  if (jobs_.contains(spec.job)) {
    if (auto removed = remove_job(spec.job); !removed) return removed;
  }
  const auto place = this->place(spec);
  if (!place) return fail(place.error());
  P4Job& job = jobs_.try_emplace(spec.job, *runtime_, *program_, spec, *place).first->second;
  auto installed = job.install();
  // What could not be removed stays in jobs_: the next add_job or remove_job tries it again.
  if (!installed && job.uninstall()) jobs_.erase(spec.job);
  return installed;
}

Result<void> P4Switch::remove_job(uint16_t number) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return fail(no_job(number));
  if (auto removed = found->second.uninstall(); !removed) return removed;
  jobs_.erase(found);
  return {};
}

Result<void> P4Switch::fence(uint16_t number, uint8_t generation, uint32_t token) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end() || !found->second.is_open()) return fail(no_job(number));
  return found->second.fence(generation, token);
}

Result<JobTotals> P4Switch::totals(uint16_t number) const {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return fail(no_job(number));
  return found->second.totals();
}

std::vector<DeviceCounter> P4Switch::counters() const {
  std::vector<DeviceCounter> all;
  ShardTotals().each([&](const char* name, const char* help, uint64_t) {
    const auto cell = program_->device_counter(static_cast<uint32_t>(all.size()));
    all.push_back({name, help, runtime_->read_counter(cell).value_or(0)});
  });
  all.push_back(
      {"restarts", "times that the switch was programmed again after it was lost", restarts_});
  return all;
}

std::string P4Switch::name() const {
  return program_->traits().device + (" at " + runtime_->server().to_string());
}

Error P4Switch::lost() const {
  return make_error(Status::kInvalid, 0,
                    "%s is lost, and tried again every half second; is %s running?", name().c_str(),
                    program_->traits().process);
}

Error P4Switch::no_job(uint16_t job) const {
  return make_error(Status::kInvalid, 0, "%s has no job %u", name().c_str(), job);
}

}  // namespace slime::net
