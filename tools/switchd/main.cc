// slime-switchd: the software switch as a program.
#include <cstdio>

#include "tools/common/resources.h"
#include "tools/switchd/daemon.h"
#include "tools/switchd/exit_code.h"
#include "tools/switchd/keys.h"
#include "tools/switchd/options.h"

namespace slime::switchd {
namespace {

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
