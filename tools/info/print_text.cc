#include <slime_version.h>

#include "tools/info/print.h"

namespace slime::info {

void print_text(const Report& report, bool long_settings, FILE* out) {
  fprintf(out, "slime-info %s (commit %s)\n", SLIME_VERSION, SLIME_COMMIT);
  if (report.loading) {
    fputc('\n', out);
    print_loading(*report.loading, out);
  }
  if (report.devices) {
    fputc('\n', out);
    print_devices(*report.devices, out);
  }
  if (report.transports) {
    fputc('\n', out);
    print_transports(*report.transports, out);
  }
  if (report.topology) {
    fputc('\n', out);
    print_topology(*report.topology, out);
  }
  if (report.settings) {
    fputc('\n', out);
    print_settings(*report.settings, long_settings, out);
  }
}

}  // namespace slime::info
