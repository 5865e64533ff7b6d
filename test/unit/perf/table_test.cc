// The head of slime-perf's table.
#include "tools/perf/report/report.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace slime::perf {
namespace {

std::string head_of(const nlohmann::json& report) {
  char* text = nullptr;
  size_t bytes = 0;
  FILE* const out = open_memstream(&text, &bytes);
  Table(out).begin(Options{}, report);
  fclose(out);
  std::string head(text, bytes);
  free(text);
  return head;
}

TEST(PerfTable, ShowsEachRankItsOwnDevices) {
  nlohmann::json report = new_report(Options{}, "");
  report["plugin"]["devices"] = {{{"index", 0}, {"name", "eth0"}}};
  report["members"] = {{{"host", "a"}, {"pid", 1}, {"devices", {"eth0"}}},
                       {{"host", "b"}, {"pid", 2}, {"devices", {"eth1", "eth2"}}}};
  const std::string head = head_of(report);
  EXPECT_NE(head.find("Rank  0 Pid      1 on          a device eth0\n"), std::string::npos) << head;
  EXPECT_NE(head.find("Rank  1 Pid      2 on          b device eth1, eth2\n"), std::string::npos)
      << head;
}

}  // namespace
}  // namespace slime::perf
