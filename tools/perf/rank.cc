#include <slime_version.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "tools/common/bytes.h"
#include "tools/common/machine.h"
#include "tools/perf/benchmark.h"
#include "tools/perf/collective/coll_communicator.h"
#include "tools/perf/collective/ring_communicator.h"
#include "tools/perf/plugin/plugin.h"
#include "tools/perf/report/output.h"
#include "tools/perf/report/progress.h"
#include "tools/perf/report/report.h"
#include "tools/perf/run.h"

namespace slime::perf {
namespace {

// After a failure a plugin may hang in its close calls; the process ends all the same.
constexpr unsigned kCloseLimitS = 5;

// A warning of the plugin's was shown when it came.
std::string without_warning(const std::string& verdict) {
  const size_t warning = verdict.find("; plugin: ");
  if (warning == std::string::npos || !warnings_are_shown() || is_consequence(verdict)) {
    return verdict;
  }
  return verdict.substr(0, warning) + "; the plugin's warning above says why";
}

// Rank 0 prints the cause once. The others add their own error if it is another one, and nothing if
// it only follows from the cause. Of a rank that was killed or is silent there is no report: then
// all ranks name it.
void show_failure(int rank, const Member* member, const Error& verdict, const Error& error) {
  const bool told =
      verdict.what.find(error.what) != std::string::npos || is_consequence(error.what);
  const bool reported = member != nullptr && member->was_reported();
  const bool usage = verdict.status == Status::kConfig;  // all ranks have the same command line
  const bool first = rank == 0 || member == nullptr;
  if (!first && told && (usage || reported)) return;
  std::string text = verdict.what;
  if (reported && !first) text = "ends with the others";
  if (reported && first) text = without_warning(text) + (usage ? "" : "; all ranks end");
  fprintf(stderr, "slime-perf: rank %d: %s%s%s\n", rank, text.c_str(),
          told ? "" : "\n  seen here as: ", told ? "" : error.what.c_str());
}

// States: joined -> prepared (plugin, buffers) -> measured -> finished, or give_up() from any of
// them. Members are in the order in which they must outlive each other: buffers outlive the
// connections that know them, and the plugin outlives the communicator. Thread rules: the main
// thread.
class Rank {
 public:
  Rank(const Options& options, const Identity& identity, const std::string& command)
      : options_(options),
        identity_(identity),
        progress_(&pulse_, identity.rank == 0 && !options.quiet),
        json_to_output_(options.json_path == "-" || names_own_output(options.json_path)),
        table_(table_file()) {
    report_.info.command = command;
  }

  int run() {
    set_log_rank(identity_.rank);
    Result<void> done = join();
    const Result<void> opened = open_json();  // also for the report that no rank came
    if (done) done = opened;
    if (!done) return give_up(done.error());
    done = prepare();
    if (done) done = measure();
    if (done) done = finish();
    if (!done) return give_up(done.error());
    write_json();
    member_->leave();
    return report_.exit_code;
  }

 private:
  FILE* table_file() const {
    if (identity_.rank != 0 || options_.quiet) return nullptr;
    return json_to_output_ || counters_.for_output() ? stderr : stdout;
  }

  Result<void> join();
  Result<void> prepare();
  Result<void> open_json();
  Result<void> check_memory(size_t bytes) const;
  Result<void> start_plugin();
  Result<void> choose_devices();
  Result<void> choose_coll_device();
  Result<void> check_protocol();
  Result<void> measure();
  Result<std::unique_ptr<Communicator>> connect();
  Result<void> finish();
  Result<void> describe_run();
  Result<void> exchange_devices();
  int give_up(const Error& error);
  void print_counters() const;
  void write_json();

  const Options& options_;
  const Identity& identity_;
  Pulse pulse_;
  ProgressLine progress_;
  CounterFile counters_;
  const bool json_to_output_;
  Table table_;
  Report report_;
  JsonFile json_file_;
  Buffer send_buffer_, receive_buffer_;
  BenchmarkSetup setup_;
  CommunicatorSetup connections_;
  CollSetup coll_;
  Plugin plugin_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Member> member_;
  std::unique_ptr<Communicator> communicator_;
};

Result<void> Rank::join() {
  const Agreement agreement{identity_.token, identity_.size,
                            std::string(SLIME_VERSION) + " " + SLIME_COMMIT,
                            common_arguments(options_)};
  if (identity_.rank == 0) {
    auto coordinator = Coordinator::start(identity_, agreement, options_.timeout_s);
    if (!coordinator) return fail(coordinator.error());
    coordinator_ = std::move(*coordinator);
  }
  auto member =
      Member::join(identity_, agreement, options_.timeout_s, &pulse_, [this] { progress_.tick(); });
  if (!member) return fail(member.error());
  member_ = std::move(*member);
  return {};
}

Result<void> Rank::prepare() {
  pulse_.enter("starting the plugin");
  if (options_.rails > 0) {
    setenv("NCCL_SLIME_RAILS_PER_IF", std::to_string(options_.rails).c_str(), 0);
  }
  auto sizes = buffer_sizes_from_environment();
  if (!sizes) return fail(sizes.error());
  connections_.sizes = *sizes;
  if (options_.root >= identity_.size) {
    return fail(make_error(Status::kConfig, 0, "-r %d: there are ranks 0 to %d", options_.root,
                           identity_.size - 1));
  }
  Result<void> done = start_plugin();
  if (done) done = choose_devices();
  if (done && options_.algorithm == Algorithm::kCollNet) done = choose_coll_device();
  if (done) done = check_protocol();
  if (!done) return done;
  const size_t bytes = buffer_bytes(options_, identity_.size);
  done = check_memory(bytes);
  if (!done) return done;
  for (const bool send : {true, false}) {
    auto allocated = Buffer::allocate(bytes, send ? "the send buffer" : "the receive buffer");
    if (!allocated) return fail(allocated.error());
    (send ? send_buffer_ : receive_buffer_) = std::move(*allocated);
  }
  return {};
}

Result<void> Rank::open_json() {
  if (identity_.rank != 0 || options_.json_path.empty()) return {};
  return json_file_.open(options_.json_path);
}

Result<void> Rank::check_memory(size_t bytes) const {
  const uint64_t available = tools::describe_machine().available_bytes;
  const auto& ranks = member_->ranks();
  const auto here =
      static_cast<uint64_t>(std::count_if(ranks.begin(), ranks.end(), [&](const RankInfo& rank) {
        return rank.host == ranks[static_cast<size_t>(identity_.rank)].host;
      }));
  if (available == 0 || 2 * bytes * here <= available) return {};
  return fail(make_error(
      Status::kConfig, 0,
      "%lu ranks on this host need %s for their buffers and %s are free; choose a smaller -e", here,
      tools::format_bytes(2 * bytes * here).c_str(), tools::format_bytes(available).c_str()));
}

Result<void> Rank::start_plugin() {
  if (auto loaded = plugin_.load(options_.plugin, options_.max_api); !loaded) return loaded;
  // NCCL's commId is a hash of the communicator's id: the same at all ranks.
  const uint64_t comm_id = std::hash<std::string>{}(identity_.token);
  if (auto ready = plugin_.init(options_.algorithm, comm_id); !ready) return ready;
  report_.info.plugin_path = plugin_.path();
  report_.info.plugin_name = plugin_.net()->name;
  report_.info.api_version =
      options_.algorithm == Algorithm::kCollNet ? plugin_.coll()->version : plugin_.net()->version;
  return {};
}

Result<void> Rank::choose_devices() {
  auto chosen = plugin_.choose_devices(options_.devices);
  if (!chosen) return fail(chosen.error());
  connections_.devices = std::move(chosen->indices);
  report_.info.devices = std::move(chosen->described);
  return {};
}

// NCCL opens one collComm on one device, the same as the net's of that number.
Result<void> Rank::choose_coll_device() {
  connections_.devices.resize(1);
  auto properties = plugin_.coll_device(connections_.devices[0]);
  if (!properties) return fail(properties.error());
  coll_ = {plugin_.coll(), properties->max_collective_bytes, options_.types, options_.ops};
  report_.info.devices.erase(report_.info.devices.begin() + 1, report_.info.devices.end());
  return {};
}

// After init: a plugin may forbid LL128 there.
Result<void> Rank::check_protocol() {
  auto allowed = allowed_protocols(std::getenv("NCCL_PROTO"));
  if (!allowed) return fail(allowed.error());
  setup_.protocols = *allowed;
  const bool has_simple = (*allowed)[static_cast<size_t>(Protocol::kSimple)];
  if (options_.algorithm == Algorithm::kCollNet && !has_simple) {
    return fail(
        make_error(Status::kConfig, 0,
                   "NCCL_PROTO=%s forbids Simple, the only protocol that NCCL has for CollNet",
                   std::getenv("NCCL_PROTO")));
  }
  if (!options_.protocol || (*allowed)[static_cast<size_t>(*options_.protocol)]) return {};
  return fail(make_error(Status::kConfig, 0,
                         "--proto %s: NCCL_PROTO=%s forbids it (set by you, or by the plugin "
                         "because its rails do not keep the order that LL128 needs)",
                         name_of(*options_.protocol).data(), std::getenv("NCCL_PROTO")));
}

Result<void> Rank::describe_run() {
  RunInfo& info = report_.info;
  info.ranks = identity_.size;
  info.launcher = identity_.launcher;
  info.direct = options_.direct;
  info.channels = setup_.channels;
  info.algorithm = name_of(options_.algorithm);
  info.protocol = options_.protocol ? name_of(*options_.protocol) : "by size";
  return exchange_devices();
}

Result<void> Rank::exchange_devices() {
  nlohmann::json names = nlohmann::json::array();
  for (const auto& device : report_.info.devices) names.push_back(device["name"]);
  auto parts = member_->exchange("devices", std::move(names));
  if (!parts) return fail(parts.error());
  for (size_t rank = 0; rank < parts->size(); ++rank) {
    const RankInfo& from = member_->ranks()[rank];
    report_.info.members.push_back(
        {{"host", from.host}, {"pid", from.pid}, {"devices", texts_of((*parts)[rank])}});
  }
  return {};
}

Result<void> Rank::measure() {
  const int devices = static_cast<int>(connections_.devices.size());
  setup_.options = &options_;
  setup_.member = member_.get();
  setup_.pulse = &pulse_;
  setup_.send_buffer = &send_buffer_;
  setup_.receive_buffer = &receive_buffer_;
  setup_.rank = connections_.rank = identity_.rank;
  setup_.ranks = connections_.ranks = identity_.size;
  setup_.channels = connections_.channels =
      options_.channels > 0 ? options_.channels : std::max(1, devices);
  connections_.member = member_.get();
  connections_.pulse = &pulse_;
  connections_.collective = options_.collective;
  connections_.timeout_s = options_.timeout_s;
  if (options_.direct) {
    connections_.send_buffer = &send_buffer_;
    connections_.receive_buffer = &receive_buffer_;
  }
  if (auto described = describe_run(); !described) return described;
  if (options_.duration_s > 0) catch_end_requests();
  auto communicator = connect();
  if (!communicator) return fail(communicator.error());
  communicator_ = std::move(*communicator);
  setup_.communicator = communicator_.get();
  table_.begin(options_, report_.info);
  Benchmark benchmark(setup_);
  progress_.set_total(benchmark.row_count(), options_.duration_s);
  auto done = benchmark.run([this](const Row& row) {
    progress_.before_row();
    table_.row(row);
    progress_.after_row();
    report_.rows.push_back(row);
  });
  report_.ended_early = benchmark.ended_early();
  return done;
}

Result<std::unique_ptr<Communicator>> Rank::connect() {
  if (options_.algorithm == Algorithm::kCollNet)
    return CollCommunicator::create(coll_, connections_);
  return RingCommunicator::create(plugin_.net(), connections_);
}

Result<void> Rank::finish() {
  pulse_.enter("closing");
  if (auto closed = communicator_->close(); !closed) return closed;
  if (auto ended = plugin_.finalize(); !ended) return ended;
  print_counters();
  auto parts = member_->exchange("counters", part_of_report(counters_));
  if (!parts) return fail(parts.error());
  if (auto added = add_parts(*parts, member_->ranks(), &report_); !added) return added;
  report_.exit_code = wrong_values(report_.rows) > 0 ? kExitWrong : kExitOk;
  progress_.before_row();
  table_.end(report_, options_.collective);
  return {};
}

// A report on the same output has them: it is one JSON value.
void Rank::print_counters() const {
  if (!json_to_output_) counters_.print();
}

void Rank::write_json() {
  if (!json_file_) return;  // none is wanted, or it could not be opened, which ends the run
  const std::string text =
      to_json(report_, options_).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto written = json_file_.write(text + "\n");
  if (written) return;
  fprintf(stderr, "slime-perf: %s\n", written.error().what.c_str());
  if (report_.exit_code == kExitOk) report_.exit_code = kExitUsage;
}

int Rank::give_up(const Error& error) {
  const Error verdict = member_ != nullptr ? member_->fail_run(error) : error;
  // A signal that ends all ranks arrives at them one after the other; do not report its effects.
  usleep(200000);
  progress_.before_row();
  const bool usage = verdict.status == Status::kConfig;
  show_failure(identity_.rank, member_.get(), verdict, error);
  report_.error = verdict.what;
  report_.exit_code = usage ? kExitUsage : kExitFailure;
  write_json();
  fflush(nullptr);
  static volatile sig_atomic_t code = 0;
  code = report_.exit_code;
  (void)signal(SIGALRM, [](int) { _exit(code); });
  alarm(kCloseLimitS);
  communicator_.reset();
  (void)plugin_.finalize();
  print_counters();
  if (member_) member_->leave();
  return report_.exit_code;
}

}  // namespace

int run_rank(const Options& options, const Identity& identity, const std::string& command) {
  Rank rank(options, identity, command);
  return rank.run();
}

}  // namespace slime::perf
