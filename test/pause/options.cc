#include "test/pause/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>

namespace slime::pauser {
namespace {

constexpr const char* kFooter =
    "Usage: pause [OPTIONS] -- COMMAND [ARGUMENT...]\n"
    "Threads are chosen at random from all of the command and of the processes that it starts.\n"
    "SIGINT or SIGTERM is passed on to the command, which has 5 seconds to end; another one a\n"
    "second later kills it. What the command leaves running is killed when it ends.\n"
    "Exit code: the command's; 128 + N: killed by signal N; 2 usage; 77 tracing is not permitted;\n"
    "126, 127 the command cannot be run.";

uint64_t random_seed() {
  std::random_device device;
  return device();
}

}  // namespace

std::variant<Options, int> parse_options(int argc, char** argv) {
  CLI::App app("Runs a command and stops random threads of it for random times", "pause");
  app.footer(kFooter);
  Options options;
  app.add_option("--rate", options.rate, "Stops a second. Default: 30")
      ->check(CLI::Range(0.01, 10000.0));
  app.add_option("--longest", options.longest_s,
                 "Seconds: a stop lasts between 0 and this long. Default: 1")
      ->check(CLI::Range(0.0, 3600.0));
  auto* seed = app.add_option("--seed", options.seed,
                              "Of the random numbers. Default: another one in each run");
  // What follows is the command's, dashes and brackets included.
  char** const dashes =
      std::find_if(argv + 1, argv + argc, [](const char* one) { return strcmp(one, "--") == 0; });
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::ParseError& error) {  // CLI11 has no other way to say it
    return app.exit(error) == 0 ? 0 : static_cast<int>(kExitUsage);
  }
  if (argc - (dashes - argv) < 2) {
    fprintf(stderr, "pause: no command; write it behind --: pause --rate 10 -- ./program\n");
    return static_cast<int>(kExitUsage);
  }
  options.command.assign(dashes + 1, argv + argc);
  options.command.push_back(nullptr);
  if (seed->empty()) options.seed = random_seed();
  return options;
}

}  // namespace slime::pauser
