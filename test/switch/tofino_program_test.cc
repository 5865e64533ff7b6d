// What the driver writes into the tables of the switch for Tofino, and which jobs it refuses.
#include "switch/tofino/program.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "test/support/tofino_job.h"

namespace slime::net {
namespace {

using slime::test::address_of;
using slime::test::tofino_job;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

P4Options options() { return slime::test::tofino_options({8, 127, 128}); }

constexpr Placement kPlace{.index = 2, .first_slot = 40};

std::string last_name(std::string_view name) {
  return std::string(name.substr(name.rfind('.') + 1));
}

uint64_t value_of(const std::vector<TableField>& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &TableField::name);
  return found == fields.end() ? ~uint64_t{0} : found->value;
}

TEST(TofinoProgram, AJobIsOpenedByItsTokenLast) {
  const TofinoProgram program(options());
  std::vector<std::string> tables;
  for (const TableEntry& entry : program.job_entries(tofino_job(), kPlace)) {
    tables.push_back(last_name(entry.table));
  }
  EXPECT_THAT(tables, ElementsAre("sources", "ends", "sources", "ends", "jobs", "generations",
                                  "members", "members"));
  EXPECT_THAT(program.job_registers(tofino_job(), kPlace), IsEmpty())
      << "a new token makes halves fresh";
}

TEST(TofinoProgram, HalvesOfOddRoundsAreApart) {
  const TofinoProgram program(options());
  const std::vector<TableEntry> entries = program.job_entries(tofino_job(), kPlace);
  const TableEntry& even = entries[entries.size() - 2];
  const TableEntry& odd = entries.back();
  EXPECT_EQ(value_of(even.key, "odd"), 0u);
  EXPECT_EQ(value_of(even.action.data, "first_half"), 40u);
  EXPECT_EQ(value_of(even.action.data, "last_slot"), 4u);
  EXPECT_EQ(value_of(odd.key, "odd"), 1u);
  EXPECT_EQ(value_of(odd.action.data, "first_half"), 8192u + 40);
}

TEST(TofinoProgram, AFenceLeavesWhatDoesNotNameTheGeneration) {
  const TofinoProgram program(options());
  JobSpec next = tofino_job();
  next.generation = 4;
  next.token = 5;
  const std::vector<TableEntry> before = program.job_entries(tofino_job(), kPlace);
  const std::vector<TableEntry> after = program.job_entries(next, kPlace);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(same_key(before[i], after[i]), i < 5) << before[i].table;
    EXPECT_EQ(before[i].action, after[i].action) << before[i].table;
  }
}

TEST(TofinoProgram, EachChildHasABit) {
  JobSpec spec = tofino_job();
  spec.children.assign(32, address_of("10.0.0.1:4000"));
  const TofinoProgram program(options());
  const std::vector<TableEntry> entries = program.job_entries(spec, kPlace);
  const std::vector<TableField>& last = entries[2 * 31].action.data;
  EXPECT_EQ(value_of(last, "own_bit"), 0x80000000u);
  EXPECT_EQ(value_of(last, "others"), 0x7fffffffu);
  EXPECT_EQ(value_of(last, "all"), 0xffffffffu);
  EXPECT_EQ(value_of(entries[2 * 31].key, "hdr.udp.destination"), 28880u);
}

TEST(TofinoProgram, RoundsAreCountedApart) {
  const TofinoProgram program(options());
  const std::vector<CounterCell> cells = program.job_counters(kPlace);
  EXPECT_EQ(last_name(cells[0].array), "job_counts");
  EXPECT_EQ(cells[0].index, 32u);
  EXPECT_EQ(last_name(cells[1].array), "round_counts");
  EXPECT_EQ(cells[1].index, 2u);
  EXPECT_EQ(cells[12].index, 44u);
  EXPECT_EQ(last_name(program.device_counter(3).array), "device_counts");
  EXPECT_EQ(last_name(program.device_counter(4).array), "reject_counts");
  EXPECT_EQ(program.device_counter(5).index, 1u);
}

TEST(TofinoProgram, RefusesWhatTheChipCannot) {
  const TofinoProgram program(options());
  EXPECT_EQ(program.refusal_of(tofino_job()), "");
  JobSpec spec = tofino_job();
  spec.children_are_switches = true;
  EXPECT_EQ(program.refusal_of(spec), "");
  spec = tofino_job();
  spec.rails = 2;
  EXPECT_THAT(program.refusal_of(spec), HasSubstr("NCCL_SLIME_SWITCH_RAILS=1"));
  spec = tofino_job();
  spec.parent = Parent{address_of("10.0.0.2:28880"), 0};
  EXPECT_THAT(program.refusal_of(spec), HasSubstr("no leaf"));
  spec = tofino_job();
  spec.children[1] = address_of("10.0.0.3:4000");
  EXPECT_THAT(program.refusal_of(spec), HasSubstr("several pipes"));
}

}  // namespace
}  // namespace slime::net
