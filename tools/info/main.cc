// slime-info: libnet-slime as NCCL sees it, without NCCL.
#include <cstdio>

#include "tools/common/resources.h"
#include "tools/info/exit_code.h"
#include "tools/info/nccl_conf.h"
#include "tools/info/options.h"
#include "tools/info/print.h"
#include "tools/info/report.h"

namespace slime::info {
namespace {

int finish(int code) {
  if (fflush(stdout) == 0 && ferror(stdout) == 0) return code;
  perror("slime-info: standard output");
  return kExitUsage;
}

int run(int argc, char** argv) {
  tools::end_on_exceptions("slime-info", kExitUsage, "raise ulimit -v");
  const auto parsed = parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& options = std::get<Options>(parsed);
  if (options.markdown) {
    fputs(render_settings_markdown().c_str(), stdout);
    return finish(kExitOk);
  }
  const auto conf = apply_nccl_conf();
  const auto report = collect(options, conf);
  if (!report) {
    fprintf(stderr, "slime-info: %s\n", report.error().what.c_str());
    return kExitUsage;
  }
  if (options.json) {
    const auto replace = nlohmann::json::error_handler_t::replace;
    printf("%s\n", to_json(*report).dump(2, ' ', false, replace).c_str());
  } else {
    print_text(*report, options.settings, stdout);
  }
  return finish(report->usable() ? kExitOk : kExitUnusable);
}

}  // namespace

}  // namespace slime::info

int main(int argc, char** argv) { return slime::info::run(argc, argv); }
