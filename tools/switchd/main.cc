// slime-switchd: the software switch as a program.
#include "tools/common/command_line.h"
#include "tools/common/resources.h"
#include "tools/switchd/daemon.h"

namespace slime::switchd {
namespace {

using tools::complain;
using tools::kExitFailure;
using tools::kExitOk;
using tools::kExitUsage;

constexpr const char* kName = "slime-switchd";

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

// The exit code, if the program is to end now.
std::optional<int> parse_options(int argc, char** argv, Options* options) {
  CLI::App app("The software switch: adds up what workers send, and sends the sums to all of them",
               kName);
  app.footer(kFooter);
  app.add_option("--config", options->config, "Configuration file (YAML). Default: none, defaults");
  app.add_flag("--check-config", options->check, "Say whether the configuration is right, and end");
  app.add_flag(
      "--print-config", options->print,
      "Print a configuration file with every key, its meaning, default and value, and end");
  return tools::parse(&app, argc, argv);
}

int run(int argc, char** argv) {
  tools::end_on_exceptions(
      kName, kExitFailure,
      "lower data.slot_memory or data.shards, or raise ulimit -v and ulimit -u");
  Options options;
  if (const auto code = parse_options(argc, argv, &options)) return *code;
  Values values;
  auto config = options.config.empty() ? make_config(values) : read_config(options.config, &values);
  if (!config) return complain(kName, config.error(), kExitUsage);
  if (options.print) {
    fputs(print_config(values).c_str(), stdout);
    return tools::finish(kName);
  }
  if (auto key = load_keys(*config); !key) return complain(kName, key.error(), kExitUsage);
  if (auto key = load_parent_key(*config); !key) return complain(kName, key.error(), kExitUsage);
  if (options.check) {
    printf("slime-switchd: %s: fine: data %s, control %s\n",
           options.config.empty() ? "defaults" : options.config.c_str(),
           control::shard_range(config->data.address, config->data.shards).c_str(),
           config->control.listen.to_string().c_str());
    return tools::finish(kName);
  }
  log_to_stderr();
  const auto served = serve(*config, options.config);
  return served ? kExitOk : complain(kName, served.error(), kExitFailure);
}

}  // namespace
}  // namespace slime::switchd

int main(int argc, char** argv) { return slime::switchd::run(argc, argv); }
