// slime-info: libnet-slime as NCCL sees it, without NCCL.
#include <cstdlib>
#include <new>

#include "base/text.h"
#include "tools/common/command_line.h"
#include "tools/common/resources.h"
#include "tools/info/peers.h"
#include "tools/info/report.h"

namespace slime::info {
namespace {

constexpr const char* kFooter =
    "Without any of --devices, --loading, --settings, --topology and --transports the first three\n"
    "are shown. Plugins are loaded and asked in processes of their own. ~/.nccl.conf (or\n"
    "NCCL_CONF_FILE) and /etc/nccl.conf are read as NCCL reads them.\n"
    "Exit code: 0 NCCL can use the plugin, 2 usage, 3 something keeps it from doing so. When it "
    "is\n"
    "not known which NCCL, 3 means that no release can.";

constexpr const char* kName = "slime-info";
constexpr int kExitUnusable = 3;  // something keeps NCCL from using the plugin

// The exit code, if the program is to end now.
std::optional<int> parse_options(int argc, char** argv, Options* parsed) {
  CLI::App app(
      "Shows libnet-slime as NCCL sees it: which file NCCL loads and why, devices and "
      "rails, settings",
      kName);
  app.footer(kFooter);
  Options& options = *parsed;
  app.add_flag("--devices", options.devices, "Devices, rails, and interfaces not used");
  app.add_flag("--loading", options.loading, "Which file NCCL loads, release by release");
  app.add_flag("--settings", options.settings, "All settings with range and meaning");
  app.add_flag("--topology", options.topology, "Where GPUs and rails are, and their distances");
  app.add_flag("--transports", options.transports,
               "Which transports there are, and why one finds no rails here");
  app.add_flag("--peers", options.peers,
               "Open engines of libslime and their peers, and nothing else");
  app.add_flag("--settings-markdown", options.markdown, "docs/configuration.md, and nothing else");
  app.add_option("--plugin", options.plugin, "A value for NCCL_NET_PLUGIN instead of the current");
  app.add_option("--nccl", options.nccl,
                 "The NCCL in question: a version (2.20.5), a file (/path/libnccl.so.2), or all. "
                 "Default: the libnccl.so.2 that the dynamic linker finds, else all");
  app.add_flag("--json", options.json, "Everything as one JSON object");
  return tools::parse(&app, argc, argv, tools::kExitUsage);
}

// The report has texts of plugins, files, the environment and devices.
void print_clean(const Report& report, bool long_settings) {
  char* text = nullptr;
  size_t bytes = 0;
  FILE* const memory = open_memstream(&text, &bytes);
  if (memory == nullptr) throw std::bad_alloc();  // ends the program (resources.h)
  print_text(report, long_settings, memory);
  fclose(memory);
  blank_controls({text, bytes}, Lines::kMany);
  fwrite(text, 1, bytes, stdout);
  free(text);
}

int finish(int code) { return tools::finish(kName, code, tools::kExitUsage); }

int show_engines(const Options& options) {
  const auto engines = ask_engines();
  if (!engines) return tools::complain(kName, engines.error(), kExitUnusable);
  if (options.json) {
    const nlohmann::json whole = {{"engines", *engines}};
    printf("%s\n", whole.dump(2, ' ', true, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    print_engines(*engines, stdout);
  }
  return finish(tools::kExitOk);
}

int run(int argc, char** argv) {
  tools::end_on_exceptions(kName, tools::kExitUsage, "raise ulimit -v");
  Options options;
  if (const auto code = parse_options(argc, argv, &options)) return *code;
  if (options.markdown) {
    fputs(render_settings_markdown().c_str(), stdout);
    return finish(tools::kExitOk);
  }
  if (options.peers) return show_engines(options);
  const auto report = collect(options, tools::apply_nccl_conf());
  if (!report) return tools::complain(kName, report.error(), tools::kExitUsage);
  if (options.json) {
    const auto replace = nlohmann::json::error_handler_t::replace;
    printf("%s\n", to_json(*report).dump(2, ' ', true, replace).c_str());
  } else {
    print_clean(*report, options.settings);
  }
  return finish(report->usable() ? tools::kExitOk : kExitUnusable);
}

}  // namespace
}  // namespace slime::info

int main(int argc, char** argv) { return slime::info::run(argc, argv); }
