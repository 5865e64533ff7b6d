// slime-perf: what nccl-tests does, over a network plugin alone.
#include <cstdio>
#include <string>

#include "rendezvous/launcher.h"
#include "tools/common/exit.h"
#include "tools/common/nccl_conf.h"
#include "tools/common/resources.h"
#include "tools/perf/options.h"
#include "tools/perf/p2p/options.h"
#include "tools/perf/words.h"

namespace {

constexpr int kDefaultRanks = 2;
constexpr const char* kMemoryAdvice = "lower -e or --channels, or raise ulimit -v and ulimit -u";

std::string command_line(int argc, char** argv) {
  std::string text = "slime-perf";
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace slime;
  using namespace slime::perf;
  tools::end_on_exceptions("slime-perf", kExitFailure, kMemoryAdvice);
  tools::apply_nccl_conf();
  tools::raise_descriptor_limit();
  if (argc > 1 && std::string(argv[1]) == "p2p") return p2p::run(argc, argv);
  const auto parsed = parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const Options& options = std::get<Options>(parsed);
  const rendezvous::Variables variables = rendezvous::all_variables();
  const bool child = variables.count("SLIME_PERF_RANK") != 0;
  const bool local = options.ranks > 0 && !child;
  const auto identity = local ? Result<std::optional<Identity>>(std::nullopt)
                              : rendezvous::find_identity(variables, options.rendezvous);
  if (!identity) return tools::complain("slime-perf", identity.error(), kExitUsage);
  if (!identity->has_value()) {
    if (options.rendezvous.empty()) {
      return rendezvous::launch({.program = "slime-perf",
                                 .ranks = options.ranks > 0 ? options.ranks : kDefaultRanks,
                                 .ends_on_request = options.duration_s > 0,
                                 .last_good_code = kExitWrong,
                                 .failed_code = kExitFailure,
                                 .interrupted_code = kExitInterrupted},
                                argv);
    }
    fprintf(stderr, "slime-perf: --rendezvous is for ranks that mpirun, srun or torchrun start%s\n",
            local ? "; --ranks starts them here" : ", and none of them started this one");
    return kExitUsage;
  }
  tools::end_on_exceptions("slime-perf: rank " + std::to_string((*identity)->rank), kExitFailure,
                           kMemoryAdvice);
  return run_rank(options, **identity, command_line(argc, argv));
}
