#include "switch/tofino/messages.h"

namespace slime::net::bfrt {
namespace {

using bfrt_proto::DataField;
using bfrt_proto::KeyField;
using bfrt_proto::TableData;

constexpr char kPriority[] = "$MATCH_PRIORITY";
constexpr char kOfThisVersion[] = "does bf_switchd run the P4 program of this version?";

tl::unexpected<Error> mismatch(const Table& table, const std::string& name, const char* what) {
  return fail(Status::kRemote, "%s of %s %s; %s", name.c_str(), table.name.c_str(), what,
              kOfThisVersion);
}

uint64_t all_ones(uint32_t bits) { return bits < 64 ? (uint64_t{1} << bits) - 1 : ~uint64_t{0}; }

bfrt_proto::TableEntry* new_entry(const Table& table, Update::Type type, WriteRequest* to) {
  Update* update = to->add_updates();
  update->set_type(type);
  bfrt_proto::TableEntry* entry = update->mutable_entity()->mutable_table_entry();
  entry->set_table_id(table.id);
  return entry;
}

Result<void> put_key_field(const Table& table, const Field& known, const TableField& given,
                           bfrt_proto::TableKey* key) {
  if (known.kind != Field::Kind::kBits || known.bits != given.bits ||
      given.value > all_ones(given.bits)) {
    return mismatch(table, "key " + known.name, "has another width than the driver's entry");
  }
  KeyField* field = key->add_fields();
  field->set_field_id(known.id);
  if (known.match == Field::Match::kExact && given.mask == TableField::kExact) {
    field->mutable_exact()->set_value(bytes_of(given.value, given.bits));
    return {};
  }
  if (known.match != Field::Match::kTernary) {
    return mismatch(table, "key " + known.name,
                    "is matched in another way than the driver's entry");
  }
  const uint64_t mask = given.mask & all_ones(given.bits);
  field->mutable_ternary()->set_value(bytes_of(given.value & mask, given.bits));
  field->mutable_ternary()->set_mask(bytes_of(mask, given.bits));
  return {};
}

// Entries with a mask have a priority; all have the same, because no two match the same packet.
Result<void> put_key(const Table& table, const std::vector<TableField>& given,
                     bfrt_proto::TableKey* key) {
  size_t found = 0;
  for (const Field& known : table.key) {
    if (known.name == kPriority) {
      KeyField* field = key->add_fields();
      field->set_field_id(known.id);
      field->mutable_exact()->set_value(bytes_of(0, known.bits));
      continue;
    }
    const TableField* value = find_in(given, known.name);
    if (!value) return mismatch(table, "key " + known.name, "is not one of the driver's entry");
    if (auto done = put_key_field(table, known, *value, key); !done) return done;
    ++found;
  }
  if (found != given.size()) return mismatch(table, "a key", "is missing");
  return {};
}

// Sets one value. False: the field is of another kind.
bool put_number(const Field& field, uint64_t value, TableData* data) {
  if (field.is_list || field.kind == Field::Kind::kText || field.kind == Field::Kind::kOther) {
    return false;
  }
  DataField* to = data->add_fields();
  to->set_field_id(field.id);
  if (field.kind == Field::Kind::kBool) {
    to->set_bool_val(value != 0);
  } else {
    to->set_stream(bytes_of(value, field.bits));
  }
  return true;
}

Result<void> put_action(const Table& table, const TableAction& action, TableData* data) {
  const std::string name = "action " + std::string(action.name);
  const Action* known = find_in(table.actions, action.name);
  if (!known) return mismatch(table, name, "is missing");
  if (known->data.size() != action.data.size()) {
    return mismatch(table, name, "has another number of parameters");
  }
  data->set_action_id(known->id);
  for (const TableField& given : action.data) {
    const Field* field = find_in(known->data, given.name);
    if (!field || (field->kind == Field::Kind::kBits && field->bits != given.bits) ||
        given.value > all_ones(given.bits) || !put_number(*field, given.value, data)) {
      return mismatch(table, name + ", parameter " + std::string(given.name),
                      "is missing, or has another width");
    }
  }
  return {};
}

// The key of a table that has one number as its key.
Result<void> put_number_key(const Table& table, uint64_t value, bfrt_proto::TableKey* key) {
  const Field& known = table.key.front();  // Info has found that there is one
  if (table.key.size() != 1 || known.kind != Field::Kind::kBits || value > all_ones(known.bits)) {
    return mismatch(table, "key " + known.name, "is not a number, or not the only one");
  }
  KeyField* field = key->add_fields();
  field->set_field_id(known.id);
  field->mutable_exact()->set_value(bytes_of(value, known.bits));
  return {};
}

// Adds the field of that name. nullptr: the table has no such field of that kind.
DataField* named(const Table& table, const char* name, Field::Kind kind, bool is_list,
                 TableData* data) {
  const Field* known = find_in(table.data, name);
  if (!known || known->kind != kind || known->is_list != is_list) return nullptr;
  DataField* field = data->add_fields();
  field->set_field_id(known->id);
  return field;
}

uint64_t number_of(const std::string& bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

Result<void> put_entry(const Table& table, Update::Type type, const TableEntry& entry,
                       WriteRequest* to) {
  if (table.type != Table::Type::kMatch)
    return mismatch(table, "the type", "is not that of a match table");
  bfrt_proto::TableEntry* message = new_entry(table, type, to);
  if (auto done = put_key(table, entry.key, message->mutable_key()); !done) return done;
  if (type == Update::DELETE) return {};
  return put_action(table, entry.action, message->mutable_data());
}

Result<void> put_default(const Table& table, const TableAction& action, WriteRequest* to) {
  bfrt_proto::TableEntry* message = new_entry(table, Update::MODIFY, to);
  message->set_is_default_entry(true);
  return put_action(table, action, message->mutable_data());
}

// A deletion without a key is one of all entries, and resets the default action
// (write_entry() in bf_rt_server_impl.cpp, tableClearMatCommon() in bf_rt_p4_table_impl.cpp); it is
// refused where the program has the entries.
void put_clear(const Table& table, WriteRequest* to) {
  if (!table.has_const_entries) {
    new_entry(table, Update::DELETE, to);
  } else if (!table.has_const_default) {
    new_entry(table, Update::DELETE, to)->set_is_default_entry(true);
  }
}

Result<void> put_cell(const Table& table, uint32_t index, uint64_t value, WriteRequest* to) {
  bfrt_proto::TableEntry* message = new_entry(table, Update::MODIFY, to);
  if (auto done = put_number_key(table, index, message->mutable_key()); !done) return done;
  for (const Field& field : table.data) {
    if (!put_number(field, value, message->mutable_data())) {
      return mismatch(table, "field " + field.name, "is not a number");
    }
  }
  return {};
}

Result<void> put_node(const Table& nodes, uint32_t node, uint16_t number,
                      const std::vector<uint16_t>& ports, WriteRequest* to) {
  bfrt_proto::TableEntry* message = new_entry(nodes, Update::INSERT, to);
  if (auto done = put_number_key(nodes, node, message->mutable_key()); !done) return done;
  TableData* data = message->mutable_data();
  DataField* rid = named(nodes, "$MULTICAST_RID", Field::Kind::kBits, false, data);
  DataField* lags = named(nodes, "$MULTICAST_LAG_ID", Field::Kind::kBits, true, data);
  DataField* list = named(nodes, "$DEV_PORT", Field::Kind::kBits, true, data);
  if (!rid || !lags || !list) return mismatch(nodes, "a field", "is missing");
  rid->set_stream(bytes_of(number, 16));
  lags->mutable_int_arr_val();  // none
  for (const uint16_t port : ports) list->mutable_int_arr_val()->add_val(port);
  return {};
}

// The lists about levels of exclusion must be as long as that of nodes
// (BfRtPREMGIDTable::mcMGIDValidateDataMbrsSize() in bf_rt_pre_table_impl.cpp). Nothing is
// excluded.
Result<void> put_group(const Table& groups, uint16_t group, const std::vector<uint32_t>& nodes,
                       WriteRequest* to) {
  bfrt_proto::TableEntry* message = new_entry(groups, Update::INSERT, to);
  if (auto done = put_number_key(groups, group, message->mutable_key()); !done) return done;
  TableData* data = message->mutable_data();
  DataField* list = named(groups, "$MULTICAST_NODE_ID", Field::Kind::kBits, true, data);
  DataField* valid = named(groups, "$MULTICAST_NODE_L1_XID_VALID", Field::Kind::kBool, true, data);
  DataField* xids = named(groups, "$MULTICAST_NODE_L1_XID", Field::Kind::kBits, true, data);
  if (!list || !valid || !xids) return mismatch(groups, "a field", "is missing");
  list->mutable_int_arr_val();
  valid->mutable_bool_arr_val();
  xids->mutable_int_arr_val();
  for (const uint32_t node : nodes) {
    list->mutable_int_arr_val()->add_val(node);
    valid->mutable_bool_arr_val()->add_val(false);
    xids->mutable_int_arr_val()->add_val(0);
  }
  return {};
}

// Copies are whole: BFRuntime cuts none where $max_pkt_len is not given
// (BfRtMirrorCfgTable::tableEntryModInternal() in bf_rt_mirror_table_impl.cpp).
Result<void> put_mirror(const Table& mirrors, Update::Type type, const MirrorSession& session,
                        WriteRequest* to) {
  bfrt_proto::TableEntry* message = new_entry(mirrors, type, to);
  if (auto done = put_number_key(mirrors, session.number, message->mutable_key()); !done) {
    return done;
  }
  TableData* data = message->mutable_data();
  const Action* action = find_in(mirrors.actions, "$normal");
  DataField* enable = named(mirrors, "$session_enable", Field::Kind::kBool, false, data);
  DataField* direction = named(mirrors, "$direction", Field::Kind::kText, false, data);
  DataField* valid = named(mirrors, "$ucast_egress_port_valid", Field::Kind::kBool, false, data);
  DataField* port = named(mirrors, "$ucast_egress_port", Field::Kind::kBits, false, data);
  if (!action || !enable || !direction || !valid || !port) {
    return mismatch(mirrors, "a field", "is missing");
  }
  data->set_action_id(action->id);
  enable->set_bool_val(true);
  direction->set_str_val("BOTH");
  valid->set_bool_val(true);
  port->set_stream(bytes_of(session.port, find_in(mirrors.data, "$ucast_egress_port")->bits));
  return {};
}

Result<void> put_removal(const Table& table, uint64_t key, WriteRequest* to) {
  return put_number_key(table, key, new_entry(table, Update::DELETE, to)->mutable_key());
}

// Without a key an update would delete all.
void put_removals(const Table& table, const bfrt_proto::ReadResponse& found, WriteRequest* to) {
  for (const bfrt_proto::Entity& entity : found.entities()) {
    const bfrt_proto::TableEntry& entry = entity.table_entry();
    if (entry.table_id() != table.id || entry.key().fields().empty()) continue;
    *new_entry(table, Update::DELETE, to)->mutable_key() = entry.key();
  }
}

// From the chip, not what the server has kept of it.
Result<void> put_question(const Table& table, uint64_t key, bfrt_proto::ReadRequest* to) {
  bfrt_proto::TableEntry* message = to->add_entities()->mutable_table_entry();
  message->set_table_id(table.id);
  message->mutable_table_flags()->set_from_hw(true);
  return put_number_key(table, key, message->mutable_key());
}

Result<uint64_t> sum_of(const Table& table, const char* name,
                        const bfrt_proto::ReadResponse& answer) {
  const Field* known = find_in(table.data, name);
  if (!known) return mismatch(table, std::string("field ") + name, "is missing");
  uint64_t sum = 0;
  bool found = false;
  for (const bfrt_proto::Entity& entity : answer.entities()) {
    if (entity.table_entry().table_id() != table.id) continue;
    for (const DataField& field : entity.table_entry().data().fields()) {
      if (field.field_id() != known->id) continue;
      sum += number_of(field.stream());
      found = true;
    }
  }
  if (!found) return mismatch(table, std::string("field ") + name, "is not in the answer");
  return sum;
}

}  // namespace slime::net::bfrt
