// slime-switchd: the software switch as a program.
#include <slime_version.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <variant>

#include "tools/common/resources.h"
#include "tools/switchd/daemon.h"

namespace slime::switchd {
namespace {

// How slime-switchd ends; documented in --help.
enum ExitCode : int {
  kExitOk = 0,       // asked to end
  kExitFailure = 1,  // an address, memory or the machine
  kExitUsage = 2,    // command line or configuration
};

struct Options {
  std::string config;  // a file; empty: defaults
  bool check = false;
  bool print = false;
};

constexpr const char* kFooter =
    "Runs in the foreground and logs to standard error. When workers can come it prints one line,\n"
    "'slime-switchd: ready: ...', to standard output. SIGTERM and SIGINT end it.\n"
    "Exit code: 0 ended as asked, 1 the switch could not start or go on, 2 command line or\n"
    "configuration.";

// Exit code, when the program is to end now (0 after --help; 2 for a bad command line).
std::variant<Options, int> parse_options(int argc, char** argv) {
  CLI::App app("The software switch: adds up what workers send, and sends the sums to all of them",
               "slime-switchd");
  app.footer(kFooter);
  Options options;
  app.add_option("--config", options.config, "Configuration file (YAML). Default: none, defaults");
  app.add_flag("--check-config", options.check, "Say whether the configuration is right, and end");
  app.add_flag(
      "--print-config", options.print,
      "Print a configuration file with every key, its meaning, default and value, and end");
  app.set_version_flag("--version", "slime-switchd " SLIME_VERSION " (" SLIME_COMMIT ")");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 has no other way to say it
    return app.exit(error) == 0 ? static_cast<int>(kExitOk) : static_cast<int>(kExitUsage);
  }
  return options;
}

int complain(const Error& error, ExitCode code) {
  fprintf(stderr, "slime-switchd: %s\n", error.what.c_str());
  return code;
}

int finish() {
  if (fflush(stdout) == 0 && ferror(stdout) == 0) return kExitOk;
  perror("slime-switchd: standard output");
  return kExitFailure;
}

int run(int argc, char** argv) {
  tools::end_on_exceptions(
      "slime-switchd", kExitFailure,
      "lower data.slot_memory or data.shards, or raise ulimit -v and ulimit -u");
  const auto parsed = parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& options = std::get<Options>(parsed);
  Values values;
  auto config = options.config.empty() ? make_config(values) : read_config(options.config, &values);
  if (!config) return complain(config.error(), kExitUsage);
  if (options.print) {
    fputs(print_config(values).c_str(), stdout);
    return finish();
  }
  if (auto key = load_keys(*config); !key) return complain(key.error(), kExitUsage);
  if (auto key = load_parent_key(*config); !key) return complain(key.error(), kExitUsage);
  if (options.check) {
    printf("slime-switchd: %s: fine: data %s, control %s\n",
           options.config.empty() ? "defaults" : options.config.c_str(),
           control::shard_range(config->data_listen, config->shards).c_str(),
           config->control_listen.to_string().c_str());
    return finish();
  }
  log_to_stderr();
  const auto served = serve(*config, options.config);
  return served ? kExitOk : complain(served.error(), kExitFailure);
}

}  // namespace
}  // namespace slime::switchd

int main(int argc, char** argv) { return slime::switchd::run(argc, argv); }
