#include "test/tofino/fake_device.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace slime::tofino {
namespace {

using bfrt_proto::Update;
using nlohmann::json;

constexpr int kInvalidArgument = 3, kNotFound = 5, kAlreadyExists = 6, kUnimplemented = 12;

// Ends in a Verdict: what a real server would say.
struct Refusal : std::runtime_error {
  Refusal(int why, const std::string& text) : std::runtime_error(text), code(why) {}
  int code;
};

std::string last(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

json table_of(uint32_t id, const FakeState& state) {
  for (const std::string* text : {&state.program_json, &state.chip_json}) {
    const json all = json::parse(*text);  // lives as long as the loop
    for (const json& table : all.at("tables")) {
      if (table.at("id") == id) return table;
    }
  }
  throw Refusal(kNotFound, "Table not found for id " + std::to_string(id));
}

json field_of(const json& fields, uint32_t id, const std::string& table) {
  for (const json& one : fields) {
    const json& field = one.contains("singleton") ? one.at("singleton") : one;
    if (field.at("id") == id) return field;
  }
  throw Refusal(kInvalidArgument, table + " has no field " + std::to_string(id));
}

// As in `bytes`, of the width that the field has, and no bit beyond it.
std::string checked(const json& field, const std::string& bytes) {
  const std::string type = field.at("type").at("type");
  size_t bits = 0;
  if (type == "bytes") bits = field.at("type").at("width");
  if (type.starts_with("uint")) bits = std::stoul(type.substr(4));
  if (bits == 0 || bytes.size() != (bits + 7) / 8 ||
      (bits % 8 && static_cast<uint8_t>(bytes[0]) >> bits % 8)) {
    throw Refusal(kInvalidArgument, "bad width of field " + field.at("name").get<std::string>());
  }
  return hex(bytes);
}

std::string key_of(const json& table, const bfrt_proto::TableKey& key) {
  const std::string name = table.at("name");
  std::string text;
  for (const bfrt_proto::KeyField& given : key.fields()) {
    const json field = field_of(table.at("key"), given.field_id(), name);
    const bool is_ternary = field.at("match_type") == "Ternary";
    if (is_ternary ? !given.has_ternary() : !given.has_exact()) {
      throw Refusal(kInvalidArgument, "Invalid match type table:" + name);
    }
    text += (text.empty() ? "" : ", ") + last(field.at("name")) + "=";
    text += checked(field, is_ternary ? given.ternary().value() : given.exact().value());
    if (is_ternary) text += "/" + checked(field, given.ternary().mask());
  }
  return text;
}

template <typename List>
std::string in_brackets(const List& list) {
  std::string text;
  for (const auto one : list) text += (text.empty() ? "" : " ") + std::to_string(one);
  return "[" + text + "]";
}

std::string value_of(const json& field, const bfrt_proto::DataField& given) {
  const std::string type = field.at("type").at("type");
  const bool is_list = field.value("repeated", false);
  if (is_list && type == "bool" && given.has_bool_arr_val()) {
    return in_brackets(given.bool_arr_val().val());
  }
  if (is_list && given.has_int_arr_val()) return in_brackets(given.int_arr_val().val());
  if (!is_list && type == "bool" && given.has_bool_val())
    return given.bool_val() ? "true" : "false";
  if (!is_list && type == "string" && given.has_str_val()) return given.str_val();
  if (!is_list && given.has_stream()) return checked(field, given.stream());
  throw Refusal(kInvalidArgument, "bad type of field " + field.at("name").get<std::string>());
}

FakeEntry entry_of(const json& table, const bfrt_proto::TableData& data) {
  FakeEntry entry;
  json fields = table.at("data");
  if (table.contains("action_specs")) {
    json found;
    for (const json& action : table.at("action_specs")) {
      if (action.at("id") == data.action_id()) found = action;
    }
    if (found.is_null())
      throw Refusal(kInvalidArgument, "Table Data Allocate failed, no such action");
    entry.action = last(found.at("name"));
    for (const json& field : found.at("data")) fields.push_back(field);
    if (static_cast<size_t>(data.fields_size()) < found.at("data").size()) {
      throw Refusal(kInvalidArgument, "mandatory fields are missing");
    }
  }
  for (const bfrt_proto::DataField& given : data.fields()) {
    const json field = field_of(fields, given.field_id(), table.at("name"));
    if (!entry.data.emplace(last(field.at("name")), value_of(field, given)).second) {
      throw Refusal(kInvalidArgument, "a field is there twice");
    }
  }
  return entry;
}

std::string verb_of(const bfrt_proto::Update& update) {
  const bfrt_proto::TableEntry& entry = update.entity().table_entry();
  if (update.type() == Update::DELETE) {
    if (entry.is_default_entry()) return "reset default of ";
    return entry.has_key() ? "remove " : "clear ";
  }
  if (entry.is_default_entry()) return "default ";
  return update.type() == Update::INSERT ? "add " : "modify ";
}

void clear(const json& table, FakeEntries* entries) {
  const std::string type = table.at("table_type");
  if (type == "PreMgid" || type == "PreNode") {
    throw Refusal(kUnimplemented, "Table Entry delete all failed, not supported");
  }
  for (const json& attribute : table.value("attributes", json::array())) {
    if (attribute == "ConstTable") {
      throw Refusal(kInvalidArgument, "Table Entry delete all failed, const entries");
    }
  }
  entries->clear();
}

// Nodes of a group exist, and its three lists are equally long.
void check_group(const FakeEntry& group, const FakeState& state) {
  const auto words = [](const std::string& list) {
    std::vector<std::string> all(1);
    for (const char c : list.substr(1, list.size() - 2)) {
      if (c == ' ') {
        all.emplace_back();
      } else {
        all.back() += c;
      }
    }
    if (all.back().empty()) all.pop_back();
    return all;
  };
  const auto nodes = words(group.data.at("$MULTICAST_NODE_ID"));
  for (const char* list : {"$MULTICAST_NODE_L1_XID_VALID", "$MULTICAST_NODE_L1_XID"}) {
    if (words(group.data.at(list)).size() != nodes.size()) {
      throw Refusal(kInvalidArgument, "Table Add failed, sizes of lists");
    }
  }
  const auto known = state.tables.find("node");
  for (const std::string& node : nodes) {
    char key[64];
    std::snprintf(key, sizeof key, "$MULTICAST_NODE_ID=%08lx", std::stoul(node));
    if (known == state.tables.end() || !known->second.contains(key)) {
      throw Refusal(kNotFound, "Table Add failed, no node " + node);
    }
  }
}

void write(const json& table, const bfrt_proto::Update& update, FakeEntries* entries,
           FakeState* state) {
  const bfrt_proto::TableEntry& message = update.entity().table_entry();
  const std::string key = key_of(table, message.key());
  if (static_cast<size_t>(message.key().fields_size()) != table.at("key").size()) {
    throw Refusal(kInvalidArgument, "the key is not whole");
  }
  const std::string type = table.at("table_type");
  const bool is_there = entries->contains(key);
  if (update.type() == Update::DELETE) {
    if (entries->erase(key) == 0) throw Refusal(kNotFound, "Table Entry delete failed");
    return;
  }
  const FakeEntry entry = entry_of(table, message.data());
  const bool is_array = type == "Register" || type == "Counter" || type == "Meter";
  const bool is_mirror = type == "MirrorCfg";
  if (!is_array && update.type() == Update::INSERT && is_there) {
    throw Refusal(is_mirror ? kInvalidArgument : kAlreadyExists, "Table Add failed");
  }
  if (!is_array && update.type() == Update::MODIFY && !is_there) {
    throw Refusal(is_mirror ? kInvalidArgument : kNotFound, "Table Entry modify failed");
  }
  if (type == "PreMgid") check_group(entry, *state);
  (*entries)[key] = entry;
}

}  // namespace

Verdict apply(const bfrt_proto::Update& update, FakeState* state) {
  const bfrt_proto::TableEntry& message = update.entity().table_entry();
  try {
    const json table = table_of(message.table_id(), *state);
    const std::string name = last(table.at("name"));
    const std::string call = verb_of(update) + name;
    state->calls.push_back(call);
    if (call == state->fail_at) throw Refusal(8, "no room for " + name);
    FakeEntries& entries = state->tables[name];
    if (message.is_default_entry()) {
      if (update.type() == Update::INSERT) throw Refusal(kUnimplemented, "INSERT of default entry");
      state->defaults.erase(name);
      if (update.type() == Update::MODIFY) {
        state->defaults[name] = entry_of(table, message.data());
      }
    } else if (update.type() == Update::DELETE && !message.has_key()) {
      clear(table, &entries);
      state->defaults.erase(name);
    } else {
      write(table, update, &entries, state);
    }
    return {};
  } catch (const Refusal& refusal) {
    return {refusal.code, refusal.what()};
  } catch (const std::exception& error) {
    return {kInvalidArgument, error.what()};
  }
}

// Counters are 1000 and their index, twice, as of two pipes; other entries are their keys.
Verdict answer(const bfrt_proto::Entity& question, FakeState* state, bfrt_proto::ReadResponse* to) {
  const bfrt_proto::TableEntry& message = question.table_entry();
  try {
    const json table = table_of(message.table_id(), *state);
    const std::string name = last(table.at("name"));
    const std::string call = "read " + name;
    state->calls.push_back(call);
    if (call == state->fail_at) throw Refusal(8, "no room to read " + name);
    if (table.at("table_type") == "Counter") {
      if (!message.table_flags().from_hw()) throw Refusal(kInvalidArgument, "not of the chip");
      const uint64_t index = std::stoul(key_of(table, message.key()).substr(15), nullptr, 16);
      for (int pipe = 0; pipe < 2; ++pipe) {
        bfrt_proto::TableEntry* entry = to->add_entities()->mutable_table_entry();
        entry->set_table_id(message.table_id());
        bfrt_proto::DataField* field = entry->mutable_data()->add_fields();
        field->set_field_id(table.at("data").at(0).at("singleton").at("id"));
        std::string bytes(8, '\0');
        bytes[6] = static_cast<char>((1000 + index) >> 8);
        bytes[7] = static_cast<char>(1000 + index);
        field->set_stream(bytes);
      }
      return {};
    }
    if (message.has_key()) throw Refusal(kUnimplemented, "the fake reads whole tables only");
    const size_t bytes = table.at("key").at(0).at("type").at("type") == "uint16" ? 2 : 4;
    for (const auto& [key, entry] : state->tables[name]) {
      bfrt_proto::TableEntry* found = to->add_entities()->mutable_table_entry();
      found->set_table_id(message.table_id());
      bfrt_proto::KeyField* field = found->mutable_key()->add_fields();
      field->set_field_id(1);
      const uint64_t number = std::stoul(key.substr(key.find('=') + 1), nullptr, 16);
      std::string value(bytes, '\0');
      for (size_t i = 0; i < bytes; ++i) value[bytes - 1 - i] = static_cast<char>(number >> 8 * i);
      field->mutable_exact()->set_value(value);
    }
    return {};
  } catch (const Refusal& refusal) {
    return {refusal.code, refusal.what()};
  } catch (const std::exception& error) {
    return {kInvalidArgument, error.what()};
  }
}

}  // namespace slime::tofino
