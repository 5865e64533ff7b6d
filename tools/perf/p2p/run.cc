// One rank of slime-perf p2p. Rank 0 is the initiator, rank 1 the target.
#include <slime_version.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "rendezvous/launcher.h"
#include "rendezvous/member.h"
#include "tools/common/bytes.h"
#include "tools/common/exit.h"
#include "tools/perf/options.h"
#include "tools/perf/p2p/endpoint.h"
#include "tools/perf/p2p/pattern.h"
#include "tools/perf/p2p/plain.h"
#include "tools/perf/p2p/report.h"

namespace slime::perf::p2p {
namespace {

using nlohmann::json;

std::vector<std::byte> bytes_in(const json& hex) {
  const std::string text = hex.get<std::string>();
  std::vector<std::byte> bytes(text.size() / 2);
  if (!tools::from_hex(text, bytes)) bytes.clear();
  return bytes;
}

class Rank {
 public:
  Rank(const Options& options, const rendezvous::Identity& identity)
      : options_(options), identity_(identity), initiator_(identity.rank == 0) {}

  Result<void> run() {
    if (auto joined = join(); !joined) return joined;
    uint64_t bytes = 0;
    for (const uint64_t size : options_.sizes) {
      bytes = std::max(bytes, Layout(options_, size).bytes());
    }
    auto endpoint = Endpoint::open(bytes);
    if (!endpoint) return fail(std::move(endpoint.error()));
    endpoint_ = std::move(*endpoint);
    if (auto met = meet(bytes); !met) return met;
    FILE* const table = options_.json_path == "-" ? stderr : stdout;
    if (initiator_) print_head(table, options_);
    for (const uint64_t size : options_.sizes) {
      Row row;
      row.size = size;
      if (initiator_) row.rails = endpoint_->peer().rails;
      if (auto done = measure_row(Layout(options_, size), &row); !done) return done;
      row.prepare_ns = endpoint_->prepare_ns();
      if (initiator_) print_row(table, options_, row);
      wrong_ |= row.wrong > 0;
      rows_.push_back(std::move(row));
    }
    return initiator_ && !options_.json_path.empty() ? write_json(options_, rows_) : Result<void>{};
  }
  bool wrong() const { return wrong_; }
  rendezvous::Member* member() { return member_.get(); }

 private:
  Result<void> join() {
    const rendezvous::Agreement agreement{identity_.token, identity_.size,
                                          std::string(SLIME_VERSION) + " " + SLIME_COMMIT,
                                          common_arguments(options_)};
    if (identity_.size != 2) {
      return fail(Status::kConfig, "p2p is for 2 ranks, not %d", identity_.size);
    }
    if (initiator_) {
      auto coordinator = rendezvous::Coordinator::start(identity_, agreement, options_.timeout_s);
      if (!coordinator) return fail(std::move(coordinator.error()));
      coordinator_ = std::move(*coordinator);
    }
    auto member =
        rendezvous::Member::join(identity_, agreement, options_.timeout_s, &heartbeat_, [] {});
    if (!member) return fail(std::move(member.error()));
    member_ = std::move(*member);
    return {};
  }

  // The part of the other rank.
  Result<json> exchange(const char* label, json part) {
    heartbeat_.enter(label);
    auto all = member_->exchange(label, std::move(part));
    if (!all) return fail(std::move(all.error()));
    return (*all)[initiator_ ? 1 : 0];
  }

  Result<void> meet(uint64_t bytes) {
    auto address = endpoint_->address();
    auto region = endpoint_->region();
    if (!address) return fail(std::move(address.error()));
    if (!region) return fail(std::move(region.error()));
    json mine = {{"address", tools::to_hex(*address)}, {"region", tools::to_hex(*region)}};
    if (options_.raw) {
      auto opened = PlainLoop::open(options_, initiator_, {endpoint_->memory(), bytes});
      if (!opened) return fail(std::move(opened.error()));
      plain_ = std::move(*opened);
      mine["plain"] = plain_->name();
    }
    auto other = exchange("engines", std::move(mine));
    if (!other) return fail(std::move(other.error()));
    if (options_.raw) {
      if (auto connected = plain_->connect(other->at("plain")); !connected) return connected;
    }
    if (!initiator_) return {};
    return endpoint_->connect(bytes_in(other->at("address")), bytes_in(other->at("region")));
  }

  Result<void> measure_row(const Layout& layout, Row* row) {
    if (options_.check) {
      if (auto checked = check(layout, row); !checked) return checked;
    }
    const double seconds = options_.seconds / options_.turns;
    if (options_.raw) {
      row->raw.emplace();
      Sample trials;
      const auto tried = part_of(&trials, [&] { return choose_way(layout, seconds); });
      if (!tried) return tried;
    }
    for (uint32_t turn = 0; turn < options_.turns; ++turn) {
      if (auto done = engine_turn(layout, seconds, &row->engine); !done) return done;
      if (!options_.raw) continue;
      auto done = part_of(&*row->raw, [&] { return raw_turn(layout, seconds, &*row->raw); });
      if (!done) return done;
    }
    return {};
  }

  // Both ranks do their part of a turn, and the initiator gets to know what that cost the target.
  template <typename Part>
  Result<void> part_of(Sample* sample, Part part) {
    const uint64_t cpu_ns = process_cpu_ns();
    if (auto done = part(); !done) return done;
    if (auto met = exchange("a turn", {}); !met) return fail(std::move(met.error()));
    auto other = exchange("its cost", {{"cpu_ns", process_cpu_ns() - cpu_ns}});
    if (!other) return fail(std::move(other.error()));
    sample->target_cpu_ns += other->at("cpu_ns").get<uint64_t>();
    return {};
  }

  Result<void> engine_turn(const Layout& layout, double seconds, Sample* sample) {
    const slime_peer_info before = endpoint_->peer();
    auto done = part_of(sample, [&] {
      return move(layout, [&](const Requests& requests) {
        return measure(requests, layout.slots, layout.bytes_of_request(), seconds, sample);
      });
    });
    const slime_peer_info after = endpoint_->peer();
    sample->works += after.works - before.works;
    sample->doorbells += after.doorbells - before.doorbells;
    return done;
  }

  // Messages need a target that takes them.
  template <typename Load>
  Result<void> move(const Layout& layout, Load load) {
    const bool two = takes_two(options_.operation);
    if (!initiator_) return two ? endpoint_->take(layout, options_.operation) : Result<void>{};
    auto requests = endpoint_->requests(layout, options_);
    if (!requests) return fail(std::move(requests.error()));
    auto done = load(*requests);
    if (!two) return done;
    auto ended = endpoint_->say_last(options_.operation);  // in any case: the target waits for it
    return done ? ended : done;
  }

  Result<void> raw_turn(const Layout& layout, double seconds, Sample* sample) {
    if (!initiator_) return plain_->serve();
    auto done = measure_way(layout, way_, seconds, sample);
    return done ? plain_->end() : done;
  }

  Result<void> measure_way(const Layout& layout, uint64_t way, double seconds, Sample* sample) {
    const Requests requests = plain_->requests(layout, way);
    return measure(requests, layout.slots, layout.bytes_of_request(), seconds, sample);
  }

  // The one that is compared: each gets a part of a turn first.
  Result<void> choose_way(const Layout& layout, double seconds) {
    if (!initiator_) return plain_->serve();
    const auto ways = plain_->ways();
    way_ = ways.front();
    double most = 0;
    for (const uint64_t way : ways) {
      if (way != ways.front() && way >= layout.piece) continue;
      Sample trial;
      const double part = seconds / static_cast<double>(ways.size());
      if (auto done = measure_way(layout, way, part, &trial); !done) return done;
      if (trial.megabytes_per_second() <= most) continue;
      most = trial.megabytes_per_second();
      way_ = way;
    }
    return plain_->end();
  }

  // Each slot once, with other bytes at both ends before; those between the pieces must stay.
  Result<void> check(const Layout& layout, Row* row) {
    const uint32_t salt = initiator_ ? 1 : 2;
    fill_pattern(endpoint_->memory(), layout.bytes(), salt);
    if (auto met = exchange("patterns", {}); !met) return fail(std::move(met.error()));
    auto moved = move(layout, [&](const Requests& requests) {
      Result<void> done;
      for (uint32_t slot = 0; done && slot < layout.slots; ++slot) {
        done = requests.begin(slot);
        if (done) done = requests.wait(slot);
      }
      return done;
    });
    if (!moved) return moved;
    if (auto met = exchange("all moved", {}); !met) return fail(std::move(met.error()));
    const bool counts = options_.operation == Operation::kSignal;
    if (counts && !initiator_) count_back(layout);
    const bool changed = !counts && initiator_ == (options_.operation == Operation::kRead);
    const uint64_t wrong =
        count_wrong(endpoint_->memory(), layout, changed ? 3 - salt : salt, salt);
    auto other = exchange("checked", {{"wrong", wrong}});
    if (!other) return fail(std::move(other.error()));
    row->wrong = wrong + other->at("wrong").get<uint64_t>();
    return {};
  }

  // Each signal has added 1.
  void count_back(const Layout& layout) {
    for (uint32_t slot = 0; slot < layout.slots; ++slot) {
      uint64_t counter = 0;
      std::byte* const at = endpoint_->memory() + layout.offset(slot, 0);
      std::memcpy(&counter, at, sizeof counter);
      --counter;
      std::memcpy(at, &counter, sizeof counter);
    }
  }

  const Options& options_;
  const rendezvous::Identity& identity_;
  const bool initiator_;
  rendezvous::Heartbeat heartbeat_;
  std::unique_ptr<rendezvous::Coordinator> coordinator_;
  std::unique_ptr<rendezvous::Member> member_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<PlainLoop> plain_;
  uint64_t way_ = 0;  // of PlainLoop::ways()
  std::vector<Row> rows_;
  bool wrong_ = false;
};

int run_rank(const Options& options, const rendezvous::Identity& identity) {
  Rank rank(options, identity);
  const auto done = rank.run();
  if (!done) {
    Error verdict = done.error();
    if (rank.member() != nullptr) verdict = rank.member()->fail_run(done.error());
    const std::string program = "slime-perf: rank " + std::to_string(identity.rank);
    return tools::complain(program.c_str(), verdict, kExitFailure);
  }
  const int code = tools::finish("slime-perf", rank.wrong() ? kExitWrong : kExitOk, kExitFailure);
  rank.member()->leave();
  return code;
}

}  // namespace

int run(int argc, char** argv) {
  const auto parsed = parse_options(argc - 1, argv + 1);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const Options& options = std::get<Options>(parsed);
  const rendezvous::Variables variables = rendezvous::all_variables();
  const auto identity = rendezvous::find_identity(variables, options.rendezvous);
  if (!identity) return tools::complain("slime-perf", identity.error(), kExitUsage);
  if (identity->has_value()) return run_rank(options, **identity);
  return rendezvous::launch({.program = "slime-perf",
                             .ranks = 2,
                             .ends_on_request = false,
                             .last_good_code = kExitWrong,
                             .failed_code = kExitFailure,
                             .interrupted_code = kExitInterrupted},
                            argv);
}

}  // namespace slime::perf::p2p
