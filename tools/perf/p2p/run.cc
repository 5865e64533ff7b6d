// One rank of slime-perf p2p. Rank 0 is the initiator, rank 1 the target.
#include <algorithm>
#include <cstdio>

#include "tools/common/bytes.h"
#include "tools/common/exit.h"
#include "tools/perf/options.h"
#include "tools/perf/p2p/row_run.h"

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
      : options_(options), partner_(identity) {}

  Result<void> run() {
    if (auto joined = partner_.join(options_); !joined) return joined;
    uint64_t bytes = 0;
    for (const uint64_t size : options_.sizes) {
      bytes = std::max(bytes, Layout(options_, size).bytes());
    }
    auto endpoint = Endpoint::open(bytes);
    if (!endpoint) return fail(std::move(endpoint.error()));
    endpoint_ = std::move(*endpoint);
    if (auto met = meet(bytes); !met) return met;
    const bool reports = partner_.is_initiator();
    FILE* const table = options_.json_path == "-" ? stderr : stdout;
    if (reports) print_head(table, options_);
    for (const uint64_t size : options_.sizes) {
      auto row = RowRun(options_, partner_, *endpoint_, plain_.get(), size).run();
      if (!row) return fail(std::move(row.error()));
      if (reports) print_row(table, options_, *row);
      wrong_ |= row->wrong > 0;
      rows_.push_back(std::move(*row));
    }
    return reports && !options_.json_path.empty() ? write_json(options_, rows_) : Result<void>{};
  }
  bool wrong() const { return wrong_; }
  rendezvous::Member* member() { return partner_.member(); }

 private:
  Result<void> meet(uint64_t bytes) {
    const bool initiator = partner_.is_initiator();
    auto address = endpoint_->address();
    auto region = endpoint_->region();
    if (!address) return fail(std::move(address.error()));
    if (!region) return fail(std::move(region.error()));
    json mine = {{"address", tools::to_hex(*address)}, {"region", tools::to_hex(*region)}};
    if (options_.raw) {
      auto opened = PlainLoop::open(options_, initiator, {endpoint_->memory(), bytes});
      if (!opened) return fail(std::move(opened.error()));
      plain_ = std::move(*opened);
      mine["plain"] = plain_->name();
    }
    auto other = partner_.exchange("engines", std::move(mine));
    if (!other) return fail(std::move(other.error()));
    if (options_.raw) {
      if (auto connected = plain_->connect(other->at("plain")); !connected) return connected;
    }
    if (initiator) {
      auto connected =
          endpoint_->connect(bytes_in(other->at("address")), bytes_in(other->at("region")));
      if (!connected) return connected;
    }
    return partner_.meet("connections");
  }

  const Options& options_;
  Partner partner_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<PlainLoop> plain_;
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
