// slime-switchctl: a switch's control channel for operators. The command line first, then what each
// command asks of the switch; print.cc shows reports.
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/net/socket.h"
#include "base/text.h"
#include "switch/protocol/client.h"
#include "tools/common/command_line.h"
#include "tools/common/resources.h"
#include "tools/switchctl/print.h"

namespace slime::switchctl {
namespace {

using nlohmann::ordered_json;

using tools::complain;
using tools::kExitFailure;
using tools::kExitUsage;

constexpr const char* kName = "slime-switchctl";

struct Options {
  std::string command;
  std::string address = "127.0.0.1";  // the port may be left out
  std::string key_file;
  double timeout_s = 5;
  bool json = false;
  uint16_t job = 0;   // of fence
  std::string state;  // of drain: on or off
};

constexpr const char* kFooter =
    "Without --key-file no key is used; a switch that has one wants the same.\n"
    "Exit code: 0 done, 1 the switch did not answer or refused, 2 command line or key file.";

void add_commands(CLI::App* app, Options* options) {
  const auto command = [&](const char* name, const char* help) {
    return app->add_subcommand(name, help)->fallthrough();  // --json and the others may follow
  };
  command("show", "The switch and its jobs");
  command("stats", "Counters of every job, of the control channel and of the data path");
  command("fence", "End a job's generation: what its workers still send counts no more")
      ->add_option("JOB", options->job, "Number of the job")
      ->required();
  command("drain", "on: take no new jobs; off: take them again")
      ->add_option("STATE", options->state, "on or off")
      ->required()
      ->check(CLI::IsMember({"on", "off"}));
  app->require_subcommand(1);
}

// Names the nearest command for an unknown one. CLI11 by itself reports only that a command is
// missing.
bool complain_of_unknown_command(const CLI::App& app, int argc, char** argv) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--switch" || word == "--key-file" || word == "--timeout") ++i;
    if (word.starts_with('-')) continue;
    std::string nearest;
    for (const CLI::App* command : commands) {
      const std::string& name = command->get_name();
      if (name == word) return false;
      if (nearest.empty() || edit_distance(word, name) < edit_distance(word, nearest)) {
        nearest = name;
      }
    }
    fprintf(stderr, "slime-switchctl: %s is no command; the nearest is %s (--help lists them)\n",
            displayed(word).c_str(), nearest.c_str());
    return true;
  }
  return false;
}

// The exit code, if the program is to end now.
std::optional<int> parse_options(int argc, char** argv, Options* options) {
  CLI::App app("Asks a switch what it does, and tells it what to do", kName);
  app.footer(kFooter);
  app.add_option("--switch", options->address,
                 "HOST[:PORT] of its control channel. Default: 127.0.0.1:28900");
  app.add_option("--key-file", options->key_file, "The switch's key (control.key_file)");
  app.add_option("--timeout", options->timeout_s, "Seconds to wait for the switch. Default: 5")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_flag("--json", options->json, "JSON instead of tables");
  add_commands(&app, options);
  const auto explain = [&] { return complain_of_unknown_command(app, argc, argv); };
  const auto code = tools::parse(&app, argc, argv, kExitFailure, explain);
  if (!code) options->command = app.get_subcommands().front()->get_name();
  return code;
}

Result<void> print_report(SwitchClient& client, const Options& options, uint64_t timeout_ns) {
  const bool counters = options.command == "stats";
  const auto text = client.report(counters, timeout_ns);
  if (!text) return fail(text.error());
  const auto parsed = parse_json<ordered_json>(
      text->text, "the report of switch " + options.address, {.bytes = control::kMaxAnswerBytes});
  if (!parsed) return fail(parsed.error());
  const ordered_json& report = *parsed;
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
  if (options.command == "drain") {
    const bool on = options.state == "on";
    if (auto drained = client.drain(on, timeout_ns); !drained) return fail(drained.error());
    const char* format = options.json ? "{\"draining\": %s}\n" : "draining: %s\n";
    printf(format, options.json ? (on ? "true" : "false") : (on ? "yes" : "no"));
    return {};
  }
  if (options.command != "fence") return print_report(client, options, timeout_ns);
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
  tools::end_on_exceptions(kName, kExitFailure, "raise ulimit -v");
  Options options;
  if (const auto code = parse_options(argc, argv, &options)) return *code;
  SecretKey key;
  if (!options.key_file.empty()) {
    auto read = SecretKey::read_file(options.key_file);
    if (!read) return complain(kName, read.error(), kExitUsage);
    key = *read;
  }
  const auto timeout_ns = static_cast<uint64_t>(options.timeout_s * 1e9);
  const Deadline limit(SteadyClock::instance(), timeout_ns);
  const auto where = split_host_port(options.address, control::kDefaultPort, "--switch");
  const auto addresses = where ? resolve(*where, "--switch", limit) : fail(where.error());
  if (!addresses) return complain(kName, addresses.error(), kExitUsage);
  const uint64_t now_ns = SteadyClock::instance().now_ns();
  const uint64_t left_ns = limit.end_ns() > now_ns ? limit.end_ns() - now_ns : 0;
  auto client = SwitchClient::open(*addresses, {key}, left_ns);
  if (!client) return complain(kName, client.error(), kExitFailure);
  if (auto done = carry_out(**client, options, timeout_ns); !done) {
    return complain(kName, done.error(), kExitFailure);
  }
  return tools::finish(kName);
}

}  // namespace
}  // namespace slime::switchctl

int main(int argc, char** argv) { return slime::switchctl::run(argc, argv); }
