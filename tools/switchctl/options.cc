#include "tools/switchctl/options.h"

#include <slime_version.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/edit_distance.h"

namespace slime::switchctl {
namespace {

constexpr const char* kFooter =
    "Without --key-file no key is used; a switch that has one wants the same.\n"
    "Exit code: 0 done, 1 the switch did not answer or refused, 2 command line or key file.";

void add_commands(CLI::App* app, Options* options, std::string* state) {
  const auto command = [&](const char* name, const char* help, Command which) {
    CLI::App* added = app->add_subcommand(name, help);
    added->callback([options, which] { options->command = which; });
    added->fallthrough();  // --json and the others may follow
    return added;
  };
  command("show", "The switch and its jobs", Command::kShow);
  command("stats", "Counters of every job, of the control channel and of the data path",
          Command::kStats);
  command("fence", "End a job's generation: what its workers still send counts no more",
          Command::kFence)
      ->add_option("JOB", options->job, "Number of the job")
      ->required();
  command("drain", "on: take no new jobs; off: take them again", Command::kDrain)
      ->add_option("STATE", *state, "on or off")
      ->required()
      ->check(CLI::IsMember({"on", "off"}));
  app->require_subcommand(1);
}

// CLI11 says that a command is missing, and not that this word is none.
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
            word.c_str(), nearest.c_str());
    return true;
  }
  return false;
}

}  // namespace

std::variant<Options, int> parse_options(int argc, char** argv) {
  CLI::App app("Asks a switch what it does, and tells it what to do", "slime-switchctl");
  app.footer(kFooter);
  Options options;
  std::string state;
  app.add_option("--switch", options.address,
                 "HOST[:PORT] of its control channel. Default: 127.0.0.1:28900");
  app.add_option("--key-file", options.key_file, "The switch's key (control.key_file)");
  app.add_option("--timeout", options.timeout_s, "Seconds to wait for the switch. Default: 5")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_flag("--json", options.json, "JSON instead of tables");
  app.set_version_flag("--version", "slime-switchctl " SLIME_VERSION " (" SLIME_COMMIT ")");
  add_commands(&app, &options, &state);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 has no other way to say it
    if (error.get_exit_code() != 0 && complain_of_unknown_command(app, argc, argv)) {
      return static_cast<int>(kExitUsage);
    }
    return app.exit(error) == 0 ? static_cast<int>(kExitOk) : static_cast<int>(kExitUsage);
  }
  options.on = state == "on";
  return options;
}

}  // namespace slime::switchctl
