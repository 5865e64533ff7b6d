#include "test/support/verbs/two_ports.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "transports/verbs/rail.h"

namespace slime::test {
namespace {

const char* real_rails() { return std::getenv("SLIME_VERBS_RAILS"); }

}  // namespace

bool TwoPorts::are_real() { return real_rails() != nullptr; }

TwoPorts::TwoPorts(Settings settings) {
  settings.hca = are_real() ? "=" + std::string(real_rails()) : "";
  settings.ifname = are_real() ? "" : "lo";
  std::vector<std::string> notes;
  if (!are_real()) fake.emplace();
  auto real = are_real() ? verbs::load_symbols() : &fake->symbols();
  if (!real) notes.push_back(real.error().what);
  if (real) {
    symbols = counting(**real);
    const std::string sysfs_root = are_real() ? "/sys" : fake->sysfs_root();
    auto opened = verbs::open_verbs_rails(symbols, sysfs_root, settings, &notes);
    if (!opened) notes.push_back(opened.error().what);
    if (opened) rails = std::move(*opened);
  }
  if (rails.size() == 2) return;
  for (const std::string& note : notes) std::fprintf(stderr, "%s\n", note.c_str());
  std::fprintf(stderr, "there are %zu verbs rails, not 2\n", rails.size());
  std::abort();
}

}  // namespace slime::test
