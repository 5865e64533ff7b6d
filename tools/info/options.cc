#include "tools/info/options.h"

#include <slime_version.h>

#include <CLI/CLI.hpp>

#include "tools/info/exit_code.h"

namespace slime::info {
namespace {

constexpr const char* kFooter =
    "Without any of --devices, --loading, --settings, --topology and --transports the first three\n"
    "are shown. Plugins are loaded and asked in processes of their own. ~/.nccl.conf (or\n"
    "NCCL_CONF_FILE) and /etc/nccl.conf are read as NCCL reads them.\n"
    "Exit code: 0 NCCL can use the plugin, 2 usage, 3 something keeps it from doing so. When it "
    "is\n"
    "not known which NCCL, 3 means that no release can.";

}  // namespace

std::variant<Options, int> parse_options(int argc, char** argv) {
  CLI::App app(
      "Shows libnet-slime as NCCL sees it: which file NCCL loads and why, devices and "
      "rails, settings",
      "slime-info");
  app.footer(kFooter);
  Options options;
  app.add_flag("--devices", options.devices, "Devices, rails, and interfaces not used");
  app.add_flag("--loading", options.loading, "Which file NCCL loads, release by release");
  app.add_flag("--settings", options.settings, "All settings with range and meaning");
  app.add_flag("--topology", options.topology, "Where GPUs and rails are, and their distances");
  app.add_flag("--transports", options.transports,
               "Which transports there are, and why one finds no rails here");
  app.add_flag("--settings-markdown", options.markdown, "docs/configuration.md, and nothing else");
  app.add_option("--plugin", options.plugin, "A value for NCCL_NET_PLUGIN instead of the current");
  app.add_option("--nccl", options.nccl,
                 "The NCCL in question: a version (2.20.5), a file (/path/libnccl.so.2), or all. "
                 "Default: the libnccl.so.2 that the dynamic linker finds, else all");
  app.add_flag("--json", options.json, "Everything as one JSON object");
  app.set_version_flag("--version", "slime-info " SLIME_VERSION " (" SLIME_COMMIT ")");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 has no other way to say it
    return app.exit(error) == 0 ? static_cast<int>(kExitOk) : static_cast<int>(kExitUsage);
  }
  return options;
}

}  // namespace slime::info
