#include "switch/tofino/open.h"

#include "switch/tofino/program.h"
#include "switch/tofino/runtime.h"

namespace slime::net {

Result<std::unique_ptr<P4Switch>> open_tofino(TofinoOptions options) {
  auto runtime = std::make_unique<BfRuntime>(options.runtime, options.program, options.device,
                                             options.call_ms);
  return P4Switch::open(std::move(runtime), std::make_unique<TofinoProgram>(std::move(options)));
}

}  // namespace slime::net
