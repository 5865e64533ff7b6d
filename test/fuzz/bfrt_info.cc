// What a switch says of its P4 program and its chip: any text is an Info or one sentence.
#include "switch/tofino/info.h"
#include "test/fuzz/support/target.h"

namespace slime::net::bfrt {

static void check(const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    FUZZ_CHECK(!field.name.empty());
    if (field.kind == Field::Kind::kBits) FUZZ_CHECK(field.bits > 0 && field.bits <= 4096);
  }
}

SLIME_FUZZ_TARGET(bfrt_info, input) {
  const std::string text = fuzz::text_of(input.rest());
  const auto info = Info::parse(text, R"({"tables": []})");
  if (!info) {
    FUZZ_CHECK(info.error().what.starts_with("the description of the program: "));
    return;
  }
  for (const Table& table : info->tables()) {
    const Table* found = info->find(table.name);
    FUZZ_CHECK(found == nullptr || found == &table);
    FUZZ_CHECK(table.type == Table::Type::kMatch || !table.key.empty());
    check(table.key);
    check(table.data);
    for (const Action& action : table.actions) check(action.data);
  }
}

}  // namespace slime::net::bfrt
