// One rank of a run, from joining the others to its exit code.
#include <slime_version.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "settings/times.h"
#include "tools/common/bytes.h"
#include "tools/common/exit.h"
#include "tools/common/machine.h"
#include "tools/perf/benchmark.h"
#include "tools/perf/report/progress.h"
#include "tools/perf/report/report.h"

namespace slime::perf {
namespace {

using nlohmann::json;

// The verdict without the plugin's warning in it, if that is on stderr already.
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
  fprintf(stderr, "slime-perf: rank %d: %s%s%s\n", rank,
          displayed(text, rendezvous::kMostVerdict, Lines::kMany).c_str(),
          told ? "" : "\n  seen here as: ", told ? "" : displayed(error.what).c_str());
}

// States: new -> joined -> prepared (plugin, buffers) -> measured -> finished; from each of them
// give_up() ends the rank with an error. Members stand in the order in which they must outlive each
// other: the buffers outlive the connections that have registered them, and the plugin outlives the
// communicator. Thread: the main thread; tick() of the progress line is called by Member's thread.
class Rank {
 public:
  Rank(const Options& options, const Identity& identity, const std::string& command)
      : options_(options),
        identity_(identity),
        progress_(&heartbeat_, identity.rank == 0 && !options.quiet),
        json_to_output_(options.json_path == "-" || names_own_output(options.json_path)),
        table_(table_file()),
        report_(new_report(options, command)) {
    setup_.options = &options_;
    setup_.heartbeat = &heartbeat_;
    setup_.net = plugin_.net();
    setup_.coll = collnet() ? plugin_.coll() : nullptr;
    setup_.rank = identity.rank;
    setup_.ranks = identity.size;
  }

  int run() {
    set_log_rank(identity_.rank);
    Result<void> done = join();
    // Opened even where join() has failed: the report then says which ranks did not come.
    const Result<void> opened = identity_.rank == 0 && !options_.json_path.empty()
                                    ? json_file_.open(options_.json_path)
                                    : Result<void>();
    if (done) done = opened;
    if (done) done = prepare();
    if (done) done = measure();
    if (done) done = finish();
    if (!done) return give_up(done.error());
    // Before the report, which has the exit code.
    exit_code_ = tools::finish("slime-perf", exit_code_, std::max<int>(exit_code_, kExitFailure));
    write_json();
    member_->leave();
    return exit_code_;
  }

 private:
  FILE* table_file() const {
    if (identity_.rank != 0 || options_.quiet) return nullptr;
    return json_to_output_ || counters_.for_output() ? stderr : stdout;
  }

  Result<void> join() {
    const rendezvous::Agreement agreement{identity_.token, identity_.size,
                                          std::string(SLIME_VERSION) + " " + SLIME_COMMIT,
                                          common_arguments(options_)};
    if (identity_.rank == 0) {
      auto coordinator = Coordinator::start(identity_, agreement, options_.timeout_s);
      if (!coordinator) return fail(coordinator.error());
      coordinator_ = std::move(*coordinator);
    }
    auto member = Member::join(identity_, agreement, options_.timeout_s, &heartbeat_,
                               [this] { progress_.tick(); });
    if (!member) return fail(member.error());
    member_ = std::move(*member);
    setup_.member = member_.get();
    return {};
  }

  Result<void> prepare() {
    heartbeat_.enter("starting the plugin");
    if (options_.rails > 0) {
      setenv("NCCL_SLIME_RAILS_PER_IF", std::to_string(options_.rails).c_str(), 0);
    }
    auto sizes = buffer_sizes_from_environment();
    if (!sizes) return fail(sizes.error());
    setup_.sizes = *sizes;
    if (options_.root >= identity_.size) {
      return fail(make_error(Status::kConfig, 0, "-r %d: there are ranks 0 to %d", options_.root,
                             identity_.size - 1));
    }
    Result<void> done = start_plugin();
    if (done) done = choose_devices();
    if (done) done = check_protocol();
    if (done) done = allocate_buffers();
    return done;
  }

  Result<void> start_plugin() {
    if (auto loaded = plugin_.load(options_.plugin, options_.max_api); !loaded) return loaded;
    // NCCL's commId is a hash of the communicator's id: the same at all ranks.
    const uint64_t comm_id = std::hash<std::string>{}(identity_.token);
    if (auto ready = plugin_.init(options_.algorithm, comm_id); !ready) return ready;
    json& plugin = report_["plugin"];
    plugin["path"] = plugin_.path();
    plugin["name"] = plugin_.net()->name();
    plugin["api_version"] =  // of the table that carries the data
        collnet() ? plugin_.coll()->version() : plugin_.net()->version();
    return {};
  }

  Result<void> choose_devices() {
    auto chosen = plugin_.choose_devices(options_.devices);
    if (!chosen) return fail(chosen.error());
    auto& [indices, described] = *chosen;
    if (collnet()) {  // NCCL opens one collComm on one device, the same as the net's of that number
      indices.resize(1);
      described = json::array({described[0]});
      auto properties = plugin_.coll_device(indices[0]);
      if (!properties) return fail(properties.error());
      setup_.max_call_bytes = properties->max_collective_bytes.value_or(kMaxCollBytes);
    }
    report_["plugin"]["devices"] = described;
    setup_.channels = options_.channels > 0 ? options_.channels : static_cast<int>(indices.size());
    setup_.devices = std::move(indices);
    return {};
  }

  // After init: a plugin may forbid LL128 there.
  Result<void> check_protocol() {
    const char* const set = std::getenv("NCCL_PROTO");
    auto allowed = allowed_protocols(set);
    if (!allowed) return fail(allowed.error());
    setup_.protocols = *allowed;
    const auto is_allowed = [&](Protocol protocol) {
      return setup_.protocols[static_cast<size_t>(protocol)];
    };
    if (collnet() && !is_allowed(Protocol::kSimple)) {
      return fail(make_error(
          Status::kConfig, 0,
          "NCCL_PROTO=%s forbids Simple, the only protocol that NCCL has for CollNet", set));
    }
    if (!options_.protocol || is_allowed(*options_.protocol)) return {};
    return fail(make_error(Status::kConfig, 0,
                           "--proto %s: NCCL_PROTO=%s forbids it (set by you, or by the plugin "
                           "because its rails do not keep the order that LL128 needs)",
                           name_of(*options_.protocol), set));
  }

  Result<void> allocate_buffers() {
    const size_t bytes = buffer_bytes(options_, identity_.size);
    const uint64_t available = tools::describe_machine().available_bytes;
    const std::vector<RankInfo>& ranks = member_->ranks();
    const std::string& own_host = ranks[static_cast<size_t>(identity_.rank)].host;
    const auto here = static_cast<uint64_t>(std::count_if(
        ranks.begin(), ranks.end(), [&](const RankInfo& rank) { return rank.host == own_host; }));
    if (available > 0 && 2 * bytes * here > available) {
      return fail(make_error(
          Status::kConfig, 0,
          "%lu ranks on this host need %s for their buffers and %s are free; choose a smaller -e",
          here, tools::format_bytes(2 * bytes * here).c_str(),
          tools::format_bytes(available).c_str()));
    }
    auto done = setup_.send_buffer.allocate(bytes, "the send buffer");
    if (done) done = setup_.receive_buffer.allocate(bytes, "the receive buffer");
    return done;
  }

  Result<void> describe_run() {
    report_["ranks"] = identity_.size;
    report_["launcher"] = identity_.launcher;
    report_["buffers"] = options_.direct ? "direct" : "staged";
    report_["channels"] = setup_.channels;
    report_["protocol"] = options_.protocol ? name_of(*options_.protocol) : "by size";
    json names = json::array();
    for (const json& device : report_["plugin"]["devices"]) names.push_back(device["name"]);
    auto parts = member_->exchange("devices", std::move(names));
    if (!parts) return fail(parts.error());
    for (size_t rank = 0; rank < parts->size(); ++rank) {
      const RankInfo& from = member_->ranks()[rank];
      report_["members"].push_back({{"host", from.host},
                                    {"pid", from.pid},
                                    {"devices", rendezvous::texts_of((*parts)[rank])}});
    }
    return {};
  }

  Result<void> measure() {
    if (auto described = describe_run(); !described) return described;
    if (options_.duration_s > 0) catch_end_requests();
    auto communicator = Communicator::create(setup_);
    if (!communicator) return fail(communicator.error());
    communicator_ = std::move(*communicator);
    table_.begin(options_, report_);
    progress_.set_total(cases_of(options_, identity_.size).size(), options_.duration_s);
    bool ended_early = false;
    const auto show = [this](const json& row) {
      progress_.before_row();
      table_.row(row);
      progress_.after_row();
      report_["rows"].push_back(row);
    };
    auto done = run_benchmark(setup_, communicator_.get(), show, &ended_early);
    report_["ended_early"] = ended_early;
    return done;
  }

  Result<void> finish() {
    heartbeat_.enter("closing");
    if (auto closed = communicator_->close(); !closed) return closed;
    if (auto ended = plugin_.finalize(); !ended) return ended;
    print_counters();
    auto parts = member_->exchange("counters", counters_.part_of_report());
    if (!parts) return fail(parts.error());
    std::string note;
    if (auto added = add_parts(*parts, member_->ranks(), &report_, &note); !added) return added;
    complete(&report_);
    if (report_["out_of_bounds"] > 0) exit_code_ = std::max<int>(exit_code_, kExitWrong);
    progress_.before_row();
    table_.end(report_, note);
    return {};
  }

  int give_up(const Error& error) {
    const Error verdict = member_ != nullptr ? member_->fail_run(error) : error;
    // A signal that ends all ranks arrives at them one after the other; do not report its effects.
    usleep(200000);
    progress_.before_row();
    show_failure(identity_.rank, member_.get(), verdict, error);
    complete(&report_);
    report_["error"] = verdict.what;
    exit_code_ = verdict.status == Status::kConfig ? kExitUsage : kExitFailure;
    write_json();
    fflush(nullptr);
    static volatile sig_atomic_t code = 0;
    code = exit_code_;
    (void)signal(SIGALRM, [](int) { _exit(code); });
    alarm(times::kPluginClose / times::kSecond);
    communicator_.reset();
    (void)plugin_.finalize();
    print_counters();
    if (member_) member_->leave();
    return exit_code_;
  }

  // A report on the same output has them: it is one JSON value.
  void print_counters() {
    if (json_to_output_) return;
    const auto printed = counters_.print();
    if (printed) return;
    exit_code_ = std::max(exit_code_, tools::complain("slime-perf", printed.error(), kExitFailure));
  }

  void write_json() {
    if (!json_file_) return;  // none is wanted, or it could not be opened, which ends the run
    report_["exit_code"] = exit_code_;
    const std::string text = report_.dump(2, ' ', true, json::error_handler_t::replace);
    const auto written = json_file_.write(text + "\n");
    if (written) return;
    (void)tools::complain("slime-perf", written.error(), kExitUsage);
    if (exit_code_ == kExitOk) exit_code_ = kExitUsage;
  }

  bool collnet() const { return options_.algorithm == Algorithm::kCollNet; }

  const Options& options_;
  const Identity& identity_;
  Heartbeat heartbeat_;
  ProgressLine progress_;
  CounterFile counters_;
  const bool json_to_output_;
  Table table_;
  json report_;
  int exit_code_ = kExitOk;
  JsonFile json_file_;
  RunSetup setup_;
  Plugin plugin_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Member> member_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace

int run_rank(const Options& options, const Identity& identity, const std::string& command) {
  return Rank(options, identity, command).run();
}

}  // namespace slime::perf
