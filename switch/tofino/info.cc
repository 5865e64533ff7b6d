#include "switch/tofino/info.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"

namespace slime::net::bfrt {
namespace {

using nlohmann::json;

constexpr size_t kAmbiguous = std::numeric_limits<size_t>::max();
constexpr uint32_t kMostBits = 4096;  // of a field; Tofino's header vector has that many

constexpr size_t kMostInfoBytes = 8 << 20;  // of a description

tl::unexpected<Error> malformed(const std::string& where, const char* what) {
  return fail(Status::kRemote, "%s: %s", where.c_str(), what);
}

// nullptr: `from` has no such member. json's operators would throw, or assert.
const json* member(const json& from, const char* name) {
  if (!from.is_object()) return nullptr;
  const auto found = from.find(name);
  return found == from.end() ? nullptr : &*found;
}

std::optional<uint64_t> number(const json& from, const char* name, uint64_t most) {
  const json* value = member(from, name);
  if (!value || !value->is_number_unsigned()) return std::nullopt;
  const auto found = value->get<uint64_t>();
  return found <= most ? std::optional(found) : std::nullopt;
}

std::string text(const json& from, const char* name) {
  const json* value = member(from, name);
  return value && value->is_string() ? value->get_ref<const std::string&>() : std::string();
}

bool flag(const json& from, const char* name) {
  const json* value = member(from, name);
  return value && value->is_boolean() && value->get<bool>();
}

// The members of an array; empty if it is absent or no array.
const json& list(const json& from, const char* name) {
  static const json nothing = json::array();
  const json* value = member(from, name);
  return value && value->is_array() ? *value : nothing;
}

struct TypeName {
  const char* name;
  Table::Type type;
};
constexpr TypeName kTypes[] = {
    {"MatchAction_Direct", Table::Type::kMatch}, {"Register", Table::Type::kRegister},
    {"Counter", Table::Type::kCounter},          {"Meter", Table::Type::kMeter},
    {"PreMgid", Table::Type::kGroups},           {"PreNode", Table::Type::kNodes},
    {"MirrorCfg", Table::Type::kMirrors}};

std::optional<Table::Type> type_of(const json& table) {
  const std::string name = text(table, "table_type");
  for (const TypeName& known : kTypes) {
    if (name == known.name) return known.type;
  }
  return std::nullopt;
}

// False: the width of bytes is missing or 0.
bool read_type(const json& from, Field* field) {
  const json* type = member(from, "type");
  const std::string name = type ? text(*type, "type") : "";
  if (name == "bytes") {
    field->bits = static_cast<uint32_t>(number(*type, "width", kMostBits).value_or(0));
    field->kind = Field::Kind::kBits;
    return field->bits != 0;
  }
  for (const uint32_t bits : {8u, 16u, 32u, 64u}) {
    if (name != "uint" + std::to_string(bits)) continue;
    field->bits = bits;
    field->kind = Field::Kind::kBits;
  }
  if (name == "bool") field->kind = Field::Kind::kBool;
  if (name == "string") field->kind = Field::Kind::kText;
  return true;
}

// Name and number, of whatever has them.
template <typename Named>
bool read_name(const json& from, Named* named) {
  named->name = text(from, "name");
  const auto id = number(from, "id", std::numeric_limits<uint32_t>::max());
  named->id = static_cast<uint32_t>(id.value_or(0));
  return id && !named->name.empty();
}

Result<Field> read_field(const std::string& table, const json& from) {
  Field field;
  if (!read_name(from, &field)) return malformed(table, "a field has no name or no number");
  if (!read_type(from, &field)) {
    return malformed(table + ", field " + field.name, "its width is missing or beyond 4096 bits");
  }
  field.is_list = flag(from, "repeated");
  const std::string match = text(from, "match_type");
  if (match == "Exact") field.match = Field::Match::kExact;
  if (match == "Ternary") field.match = Field::Match::kTernary;
  return field;
}

// Fields that exclude each other have no "singleton"; no table that we use has such.
Result<std::vector<Field>> read_data(const std::string& table, const json& owner) {
  std::vector<Field> data;
  for (const json& one : list(owner, "data")) {
    const json* from = member(one, "singleton");
    if (!from) from = &one;  // parameters of some actions
    if (member(one, "choices")) continue;
    auto field = read_field(table, *from);
    if (!field) return fail(std::move(field.error()));
    data.push_back(std::move(*field));
  }
  return data;
}

Result<void> read_actions(const json& from, Table* table) {
  for (const json& one : list(from, "action_specs")) {
    Action action;
    if (!read_name(one, &action)) return malformed(table->name, "an action has no name or number");
    auto data = read_data(table->name, one);
    if (!data) return fail(std::move(data.error()));
    action.data = std::move(*data);
    table->actions.push_back(std::move(action));
  }
  return {};
}

Result<Table> read_table(const json& from, Table::Type type) {
  Table table;
  table.type = type;
  if (!read_name(from, &table)) return malformed("a table", "it has no name or no number");
  table.has_const_default = flag(from, "has_const_default_action");
  for (const json& attribute : list(from, "attributes")) {
    if (attribute == "ConstTable") table.has_const_entries = true;
  }
  for (const json& one : list(from, "key")) {
    auto field = read_field(table.name, one);
    if (!field) return fail(std::move(field.error()));
    table.key.push_back(std::move(*field));
  }
  if (table.key.empty() && type != Table::Type::kMatch) return malformed(table.name, "no key");
  auto data = read_data(table.name, from);
  if (!data) return fail(std::move(data.error()));
  table.data = std::move(*data);
  if (auto read = read_actions(from, &table); !read) return fail(std::move(read.error()));
  return table;
}

}  // namespace

// Tables of one description. A name that is there twice would make find() a guess: it is an error.
Result<void> Info::add_tables(const char* whose, std::string_view json_text) {
  const auto all = parse_json<json>(json_text, whose, {.bytes = kMostInfoBytes});
  if (!all) return fail(all.error());
  const json* tables = member(*all, "tables");
  if (!tables || !tables->is_array()) return malformed(whose, "it is not JSON with tables");
  for (const json& one : *tables) {
    const auto type = type_of(one);
    if (!type) continue;
    auto table = read_table(one, *type);
    if (!table) return malformed(whose, table.error().what.c_str());
    const std::string name = table->name;
    if (!by_name_.emplace(name, tables_.size()).second) {
      return malformed(whose, ("two tables are called " + name).c_str());
    }
    tables_.push_back(std::move(*table));
  }
  return {};
}

// A table of the program is also found without the name of its pipeline, unless two pipelines have
// one of that name.
Result<Info> Info::parse(std::string_view program, std::string_view chip) {
  Info info;
  if (auto added = info.add_tables("the description of the program", program); !added) {
    return fail(std::move(added.error()));
  }
  const size_t of_program = info.tables_.size();
  if (auto added = info.add_tables("the description of the chip", chip); !added) {
    return fail(std::move(added.error()));
  }
  for (size_t i = 0; i < of_program; ++i) {
    const std::string& name = info.tables_[i].name;
    const size_t dot = name.find('.');
    if (dot == std::string::npos) continue;
    const auto [place, is_new] = info.by_name_.emplace(name.substr(dot + 1), i);
    if (!is_new) place->second = kAmbiguous;
  }
  return info;
}

const Table* Info::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() || found->second == kAmbiguous ? nullptr : &tables_[found->second];
}

}  // namespace slime::net::bfrt
