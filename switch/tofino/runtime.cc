#include "switch/tofino/runtime.h"

#include <algorithm>
#include <set>

#include "switch/tofino/messages.h"
#include "switch/tofino/program.h"

namespace slime::net {

using bfrt::Table;
using bfrt::Update;
using bfrt_proto::WriteRequest;

namespace {

// Tables of the chip (bf_rt_pre_tf1.json and bf_rt_mirror_tf1.json in open-p4studio).
constexpr char kGroups[] = "$pre.mgid";
constexpr char kNodes[] = "$pre.node";
constexpr char kMirrors[] = "$mirror.cfg";

const char* name_of(Table::Type type) {
  switch (type) {
    case Table::Type::kMatch:
      return "match table";
    case Table::Type::kRegister:
      return "register";
    case Table::Type::kCounter:
      return "counter";
    case Table::Type::kMeter:
      return "meter";
    default:
      return "table of the chip";
  }
}

auto entry_update(Update::Type type, const TableEntry& entry) {
  return [type, &entry](const Table& table, WriteRequest* to) {
    return bfrt::put_entry(table, type, entry, to);
  };
}

}  // namespace

BfRuntime::BfRuntime(const SocketAddress& server, std::string program, uint32_t device, int call_ms)
    : server_(server),
      program_(std::move(program)),
      call_ms_(call_ms),
      client_(server, device, call_ms) {}

// The call has the time that is left of its operation. Without any it ends at once, late.
bool BfRuntime::may_call() const {
  client_.set_call_ms(limit_ms(call_ms_));
  return client_.is_open();
}

Error BfRuntime::refused(const Task& task, const Error& why) const {
  return make_error(why.status, why.code, "Tofino at %s %s %s %s: %s%s",
                    server_.to_string().c_str(), client_.is_open() ? "does not" : "did not",
                    task.verb, task.object.c_str(), why.what.c_str(),
                    client_.is_open() ? "" : "; is bf_switchd running, and reachable?");
}

// A new connection begins with the description of the device only. reset() comes next, so no group
// of the last connection is kept.
Result<void> BfRuntime::connect() {
  groups_.clear();
  info_ = {};
  client_.set_call_ms(limit_ms(call_ms_));
  auto opened = client_.open(program_);
  if (!opened) {
    return fail(make_error(Status::kRemote, opened.error().code,
                           "BFRuntime at %s: %s; does bf_switchd run there, with the P4 program %s "
                           "and no other client for it, and do device.runtime (its gRPC port, %u "
                           "unless told otherwise) and device.program name it?",
                           server_.to_string().c_str(), opened.error().what.c_str(),
                           program_.c_str(), kPort));
  }
  auto info = bfrt::Info::parse(opened->program, opened->chip);
  if (!info) {
    client_.close();
    return fail(Status::kRemote,
                "BFRuntime at %s describes the P4 program %s in a way that slime-switchd does not "
                "understand: %s; is it of open-p4studio's version of BFRuntime?",
                server_.to_string().c_str(), program_.c_str(), info.error().what.c_str());
  }
  info_ = std::move(*info);
  return {};
}

Error BfRuntime::no_connection(const Task& task) const {
  return make_error(Status::kRemote, 0,
                    "Tofino at %s cannot be asked to %s %s: there is no connection; is bf_switchd "
                    "running?",
                    server_.to_string().c_str(), task.verb, task.object.c_str());
}

// The description is of what the device runs, so a table may be missing.
Result<const Table*> BfRuntime::find(const Task& task, std::string_view name, Type type) const {
  if (!may_call()) return fail(no_connection(task));
  const Table* table = info_.find(name);
  if (table && table->type == type) return table;
  return fail(Status::kRemote,
              "Tofino at %s cannot %s %s: its P4 program %s has no %s %s; is it "
              "switch/p4/tna/switch.p4 of this version?",
              server_.to_string().c_str(), task.verb, task.object.c_str(), program_.c_str(),
              name_of(type), std::string(name).c_str());
}

Result<void> BfRuntime::send(const Task& task, WriteRequest* request, bool absent_is_fine) {
  auto written = client_.write(request, absent_is_fine);
  if (!written) return fail(refused(task, written.error()));
  return {};
}

// Makes one call, with the updates of one table that `fill` writes.
Result<void> BfRuntime::write(const Task& task, std::string_view name, Type type,
                              const Fill& fill) {
  const auto table = find(task, name, type);
  if (!table) return fail(table.error());
  WriteRequest request;
  if (auto filled = fill(**table, &request); !filled) {
    return fail(refused(task, filled.error()));
  }
  return send(task, &request);
}

// The order matters twice: without entries no packet is sent to a group, and without groups no node
// is used.
Result<void> BfRuntime::reset() {
  groups_.clear();
  if (auto done = clear_tables(); !done) return done;
  if (auto done = delete_all(kGroups, Type::kGroups); !done) return done;
  return delete_all(kNodes, Type::kNodes);
}

Result<void> BfRuntime::clear_tables() {
  const Task task{"clear", "its tables"};
  if (!may_call()) return fail(no_connection(task));
  WriteRequest request;
  for (const Table& table : info_.tables()) {
    const bool is_of_program = table.type == Type::kMatch || table.type == Type::kRegister ||
                               table.type == Type::kCounter || table.type == Type::kMeter;
    if (is_of_program) bfrt::put_clear(table, &request);
  }
  if (request.updates_size() == 0) {
    return fail(Status::kRemote, "Tofino at %s: its P4 program %s has no tables; %s",
                server_.to_string().c_str(), program_.c_str(),
                "does device.program name the right one?");
  }
  return send(task, &request);
}

// One by one: these tables cannot be cleared (BfRtTableObj::tableClear() in bf_rt_table_impl.cpp).
Result<void> BfRuntime::delete_all(std::string_view name, Type type) {
  const Task task{"delete all entries of", std::string(name)};
  const auto table = find(task, name, type);
  if (!table) return fail(table.error());
  bfrt_proto::ReadRequest question;
  question.add_entities()->mutable_table_entry()->set_table_id((*table)->id);
  const auto found = client_.read(&question);
  if (!found) return fail(refused(task, found.error()));
  WriteRequest request;
  bfrt::put_removals(**table, *found, &request);
  if (request.updates_size() == 0) return {};
  return send(task, &request);
}

Result<void> BfRuntime::add(const TableEntry& entry) {
  return write({"add an entry to", std::string(entry.table)}, entry.table, Type::kMatch,
               entry_update(Update::INSERT, entry));
}

Result<void> BfRuntime::modify(const TableEntry& entry) {
  return write({"change an entry of", std::string(entry.table)}, entry.table, Type::kMatch,
               entry_update(Update::MODIFY, entry));
}

Result<void> BfRuntime::remove(const TableEntry& entry) {
  return write({"remove an entry of", std::string(entry.table)}, entry.table, Type::kMatch,
               entry_update(Update::DELETE, entry));
}

Result<void> BfRuntime::set_default(std::string_view name, const TableAction& action) {
  return write(
      {"set the default action of", std::string(name)}, name, Type::kMatch,
      [&](const Table& table, WriteRequest* to) { return bfrt::put_default(table, action, to); });
}

// In calls of bounded size.
Result<void> BfRuntime::clear_registers(const RegisterRange& range) {
  const Task task{"clear registers of", std::string(range.array)};
  for (uint32_t first = range.first; first < range.end;) {
    const uint32_t end = first + std::min(range.end - first, kCellsOfACall);
    auto cleared = write(task, range.array, Type::kRegister,
                         [&](const Table& table, WriteRequest* to) -> Result<void> {
                           for (uint32_t i = first; i < end; ++i) {
                             if (auto put = bfrt::put_cell(table, i, 0, to); !put) return put;
                           }
                           return {};
                         });
    if (!cleared) return cleared;
    first = end;
  }
  return {};
}

Result<uint64_t> BfRuntime::read_counter(const CounterCell& cell) {
  const Task task{"read a counter of", std::string(cell.array)};
  const auto table = find(task, cell.array, Type::kCounter);
  if (!table) return fail(table.error());
  bfrt_proto::ReadRequest question;
  if (auto put = bfrt::put_question(**table, cell.index, &question); !put) {
    return fail(refused(task, put.error()));
  }
  const auto answer = client_.read(&question);
  if (!answer) return fail(refused(task, answer.error()));
  auto sum = bfrt::sum_of(**table, "$COUNTER_SPEC_PKTS", *answer);
  if (!sum) return fail(refused(task, sum.error()));
  return sum;
}

Result<void> BfRuntime::clear_counter(const CounterCell& cell) {
  return write({"clear a counter of", std::string(cell.array)}, cell.array, Type::kCounter,
               [&](const Table& table, WriteRequest* to) {
                 return bfrt::put_cell(table, cell.index, 0, to);
               });
}

// The fields of a meter of packets are two rates and two bursts (RFC 2698), of which the program
// needs one each: they are all the same number.
Result<void> BfRuntime::limit(std::string_view meters, uint32_t packets_per_second) {
  return write({"set the rates of", std::string(meters)}, meters, Type::kMeter,
               [&](const Table& table, WriteRequest* to) -> Result<void> {
                 if (!bfrt::find_in(table.data, "$METER_SPEC_CIR_PPS")) {
                   return fail(Status::kRemote, "it is not a meter of packets");
                 }
                 return bfrt::put_cell(table, 0, packets_per_second, to);
               });
}

// The lowest numbers that no group has.
std::vector<uint32_t> BfRuntime::free_nodes(size_t count) const {
  std::set<uint32_t> taken;
  for (const auto& [id, nodes] : groups_) taken.insert(nodes.begin(), nodes.end());
  std::vector<uint32_t> free;
  for (uint32_t node = 1; free.size() < count; ++node) {
    if (!taken.contains(node)) free.push_back(node);
  }
  return free;
}

// One call: the nodes, then the group that uses them.
Result<void> BfRuntime::add_group(const MulticastGroup& group) {
  const Task task{"make multicast group", std::to_string(group.id)};
  const auto ports = ports_by_number(group);
  const auto table = find(task, kNodes, Type::kNodes);
  if (!table) return fail(table.error());
  return write(
      task, kGroups, Type::kGroups, [&](const Table& groups, WriteRequest* to) -> Result<void> {
        const auto [place, is_new] = groups_.try_emplace(group.id, free_nodes(ports.size()));
        if (!is_new) return fail(Status::kInternal, "it is there already");
        size_t next = 0;
        for (const auto& [number, of_number] : ports) {
          auto put = bfrt::put_node(**table, place->second[next++], number, of_number, to);
          if (!put) return put;
        }
        return bfrt::put_group(groups, group.id, place->second, to);
      });
}

// The group first, then its nodes; what is not there is no failure, since an earlier call may have
// removed a part.
Result<void> BfRuntime::remove_group(uint16_t id) {
  const Task task{"remove multicast group", std::to_string(id)};
  const auto found = groups_.find(id);
  if (found == groups_.end()) return {};
  const auto groups = find(task, kGroups, Type::kGroups);
  if (!groups) return fail(groups.error());
  const auto nodes = find(task, kNodes, Type::kNodes);
  if (!nodes) return fail(nodes.error());
  WriteRequest request;
  auto put = bfrt::put_removal(**groups, id, &request);
  for (const uint32_t node : found->second) {
    if (put) put = bfrt::put_removal(**nodes, node, &request);
  }
  if (!put) return fail(refused(task, put.error()));
  auto removed = send(task, &request, true);
  if (removed) groups_.erase(found);
  return removed;
}

// The device may still have the session from before reset(). BFRuntime inserts only a session that
// it does not have, and modifies only one that it has, with the same error code for both refusals
// (bf_rt_mirror_table_impl.cpp). So a refused insertion is tried again as a modification.
Result<void> BfRuntime::mirror(const MirrorSession& session) {
  const auto put = [&](Update::Type type) {
    return write({"set mirroring session", std::to_string(session.number)}, kMirrors,
                 Type::kMirrors, [&](const Table& table, WriteRequest* to) {
                   return bfrt::put_mirror(table, type, session, to);
                 });
  };
  auto inserted = put(Update::INSERT);
  if (inserted || !client_.is_open()) return inserted;
  return put(Update::MODIFY);
}

Result<std::unique_ptr<P4Switch>> open_tofino(P4Options options) {
  auto runtime = std::make_unique<BfRuntime>(options.runtime, options.program, options.device,
                                             options.call_ms);
  return P4Switch::open(std::move(runtime), std::make_unique<TofinoProgram>(std::move(options)));
}

}  // namespace slime::net
