// Changes of tables as updates of a WriteRequest. Names become the numbers of the program that is
// on the device, and values become bytes of its widths. An error names what is different in the
// program from what the driver expects. A function that fails may leave a part of its update in the
// request. Otherwise these are pure functions.
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

// Inserts, modifies or deletes an entry. To delete one, only the key is sent.
Result<void> put_entry(const Table& table, Update::Type type, const TableEntry& entry,
                       WriteRequest* to);
Result<void> put_default(const Table& table, const TableAction& action, WriteRequest* to);
// Removes all entries of a match table and restores its default action; sets registers and counters
// to their declared values, and meters to no limit.
void put_clear(const Table& table, WriteRequest* to);

// Sets all fields of one register, counter or meter to the value.
Result<void> put_cell(const Table& table, uint32_t index, uint64_t value, WriteRequest* to);

// A node has one replica number and its ports.
Result<void> put_node(const Table& nodes, uint32_t node, uint16_t number,
                      const std::vector<uint16_t>& ports, WriteRequest* to);
Result<void> put_group(const Table& groups, uint16_t group, const std::vector<uint32_t>& nodes,
                       WriteRequest* to);
Result<void> put_mirror(const Table& mirrors, Update::Type type, const MirrorSession& session,
                        WriteRequest* to);
// Deletes an entry of a table whose key is one number.
Result<void> put_removal(const Table& table, uint64_t key, WriteRequest* to);
// Deletes all entries of this table among those that were found.
void put_removals(const Table& table, const bfrt_proto::ReadResponse& found, WriteRequest* to);

Result<void> put_question(const Table& table, uint64_t key, bfrt_proto::ReadRequest* to);
// The sum of a field over all entries of the answer: one for each pipe, or one for all.
Result<uint64_t> sum_of(const Table& table, const char* field,
                        const bfrt_proto::ReadResponse& answer);

}  // namespace slime::net::bfrt
