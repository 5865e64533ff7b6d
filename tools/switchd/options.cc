#include "tools/switchd/options.h"

#include <slime_version.h>

#include <CLI/CLI.hpp>

#include "tools/switchd/exit_code.h"

namespace slime::switchd {
namespace {

constexpr const char* kFooter =
    "Runs in the foreground and logs to standard error. When workers can come it prints one line,\n"
    "'slime-switchd: ready: ...', to standard output. SIGTERM and SIGINT end it.\n"
    "Exit code: 0 ended as asked, 1 the switch could not start or go on, 2 command line or\n"
    "configuration.";

}  // namespace

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

}  // namespace slime::switchd
