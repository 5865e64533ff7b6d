// slime-switchctl: a switch's control channel for operators.
#include <netdb.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/net/resolve.h"
#include "switch/protocol/client.h"
#include "tools/common/resources.h"
#include "tools/switchctl/options.h"
#include "tools/switchctl/print.h"

namespace slime::switchctl {
namespace {

using nlohmann::ordered_json;

int complain(const Error& error, ExitCode code) {
  fprintf(stderr, "slime-switchctl: %s\n", error.what.c_str());
  return code;
}

Result<SocketAddress> address_of(const std::string& text) {
  auto address = resolve(text, control::kDefaultPort, "--switch");
  if (address) return address;
  return fail(make_error(Status::kConfig, address.error().code,
                         "--switch %s: %s; write HOST:PORT, 10.0.0.1:28900 or [fd00::1]:28900",
                         text.c_str(), gai_strerror(address.error().code)));
}

Result<void> print_report(SwitchClient& client, const Options& options, uint64_t timeout_ns) {
  const bool counters = options.command == Command::kStats;
  const auto text = client.report(counters, timeout_ns);
  if (!text) return fail(text.error());
  const auto report = ordered_json::parse(*text, nullptr, false);
  if (report.is_discarded()) {
    return fail(make_error(Status::kRemote, 0, "the report of switch %s is no JSON",
                           options.address.c_str()));
  }
  if (options.json) {
    printf("%s\n", report.dump(2, ' ', true, ordered_json::error_handler_t::replace).c_str());
  } else if (counters) {
    print_stats(report, stdout);
  } else {
    print_show(report, stdout);
  }
  return {};
}

Result<void> carry_out(SwitchClient& client, const Options& options, uint64_t timeout_ns) {
  if (options.command == Command::kDrain) {
    if (auto drained = client.drain(options.on, timeout_ns); !drained) return drained;
    const char* format = options.json ? "{\"draining\": %s}\n" : "draining: %s\n";
    printf(format, options.json ? (options.on ? "true" : "false") : (options.on ? "yes" : "no"));
    return {};
  }
  if (options.command != Command::kFence) return print_report(client, options, timeout_ns);
  const auto state = client.fence_number(options.job, timeout_ns);
  if (!state) return fail(state.error());
  if (state->state == control::State::kGone) {
    printf(options.json ? "{\"job\": %u, \"ended\": true}\n" : "job %u: ended, at the whole tree\n",
           options.job);
    return {};
  }
  printf(options.json ? "{\"job\": %u, \"generation\": %u}\n" : "job %u: now generation %u\n",
         options.job, state->generation);
  return {};
}

int run(int argc, char** argv) {
  tools::end_on_exceptions("slime-switchctl", kExitFailure, "raise ulimit -v");
  const auto parsed = parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& options = std::get<Options>(parsed);
  SecretKey key;
  if (!options.key_file.empty()) {
    auto read = SecretKey::read_file(options.key_file);
    if (!read) return complain(read.error(), kExitUsage);
    key = *read;
  }
  const auto address = address_of(options.address);
  if (!address) return complain(address.error(), kExitUsage);
  const auto timeout_ns = static_cast<uint64_t>(options.timeout_s * 1e9);
  auto client = SwitchClient::open(*address, {key}, timeout_ns);
  if (!client) return complain(client.error(), kExitFailure);
  if (auto done = carry_out(**client, options, timeout_ns); !done) {
    return complain(done.error(), kExitFailure);
  }
  if (fflush(stdout) == 0 && ferror(stdout) == 0) return kExitOk;
  perror("slime-switchctl: standard output");
  return kExitFailure;
}

}  // namespace
}  // namespace slime::switchctl

int main(int argc, char** argv) { return slime::switchctl::run(argc, argv); }
