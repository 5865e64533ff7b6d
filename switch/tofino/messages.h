// What BfRuntime asks of tables, as updates of a WriteRequest. Names become the numbers of the
// program that is on the device, and values bytes of the widths that it has: an error says what the
// program does not have as the driver expects it. A function that fails may leave a part of its
// update in the request. Pure functions otherwise.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "switch/p4driver/entry.h"
#include "switch/tofino/info.h"
#include "tofino/bfruntime.pb.h"

namespace slime::net::bfrt {

using Update = bfrt_proto::Update;
using WriteRequest = bfrt_proto::WriteRequest;

// To insert or modify an entry; of one to delete the key is enough, and nothing else is sent.
Result<void> put_entry(const Table& table, Update::Type type, const TableEntry& entry,
                       WriteRequest* to);
Result<void> put_default(const Table& table, const TableAction& action, WriteRequest* to);
// A match table without its entries and with the program's default action; registers and counters
// as the program declares them; meters without a limit.
void put_clear(const Table& table, WriteRequest* to);

// One register, counter or meter: each of its fields gets the value.
Result<void> put_cell(const Table& table, uint32_t index, uint64_t value, WriteRequest* to);

// A node has one replica number and its ports.
Result<void> put_node(const Table& nodes, uint32_t node, uint16_t number,
                      const std::vector<uint16_t>& ports, WriteRequest* to);
Result<void> put_group(const Table& groups, uint16_t group, const std::vector<uint32_t>& nodes,
                       WriteRequest* to);
Result<void> put_mirror(const Table& mirrors, Update::Type type, const MirrorSession& session,
                        WriteRequest* to);
// An entry of a table whose key is one number.
Result<void> put_removal(const Table& table, uint64_t key, WriteRequest* to);
// All entries that a device says it has; those of other tables are passed over.
void put_removals(const Table& table, const bfrt_proto::ReadResponse& found, WriteRequest* to);

Result<void> put_question(const Table& table, uint64_t key, bfrt_proto::ReadRequest* to);
// Of all entries with that key, which are one for each pipe or one for all.
Result<uint64_t> sum_of(const Table& table, const char* field,
                        const bfrt_proto::ReadResponse& answer);

}  // namespace slime::net::bfrt
