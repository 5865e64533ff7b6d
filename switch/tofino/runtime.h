// BFRuntime as a P4Runtime: a Tofino that bf_switchd drives, with a P4 program that it has loaded.
//
// No other client may use the device: reset() empties all tables, registers, counters and meters of
// the program, and deletes all multicast groups and nodes. Mirroring sessions stay; the program
// uses only those that mirror() has set.
//
// States: those of P4Runtime, connected or not.
// Invariants: every change is made in all pipes. groups_ has all groups that were added since
// reset() and not removed, each with the nodes that it may have on the device; no two groups share
// a node. info_ describes the device that the client is connected to. Thread rules: one thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "switch/p4driver/p4_switch.h"
#include "switch/tofino/client.h"
#include "switch/tofino/info.h"

namespace slime::net {

class BfRuntime final : public P4Runtime {
 public:
  static constexpr uint16_t kPort = 50052;  // bf_rt_grpc_server_run() in bf_rt_server_mgr.cpp
  static constexpr uint32_t kCellsOfACall = 1000;  // that clear_registers() asks for at once

  // program: as bf_switchd calls it. call_ms: the deadline of each call; connect() is one.
  BfRuntime(const SocketAddress& server, std::string program, uint32_t device, int call_ms);

  const SocketAddress& server() const override { return server_; }
  Result<void> connect() override;
  bool is_connected() const override { return client_.is_alive(); }
  Result<void> reset() override;
  Result<void> add(const TableEntry& entry) override;
  Result<void> modify(const TableEntry& entry) override;
  Result<void> remove(const TableEntry& entry) override;
  Result<void> set_default(std::string_view table, const TableAction& action) override;
  Result<void> clear_registers(const RegisterRange& range) override;
  Result<uint64_t> read_counter(const CounterCell& cell) override;
  Result<void> clear_counter(const CounterCell& cell) override;
  // On Tofino a meter counts the packets of one pipe: each pipe has that limit.
  Result<void> limit(std::string_view meters, uint32_t packets_per_second) override;
  Result<void> add_group(const MulticastGroup& group) override;
  Result<void> remove_group(uint16_t id) override;
  Result<void> mirror(const MirrorSession& session) override;

 private:
  using Type = bfrt::Table::Type;
  // What a call does, for errors: "does not add an entry to hosts".
  struct Task {
    const char* verb = "";
    std::string object;
  };
  using Fill = std::function<Result<void>(const bfrt::Table&, bfrt_proto::WriteRequest*)>;

  bool may_call() const;
  Error no_connection(const Task& task) const;
  Error refused(const Task& task, const Error& why) const;
  Result<const bfrt::Table*> find(const Task& task, std::string_view name, Type type) const;
  Result<void> send(const Task& task, bfrt_proto::WriteRequest* request,
                    bool absent_is_fine = false);
  Result<void> write(const Task& task, std::string_view table, Type type, const Fill& fill);
  Result<void> delete_all(std::string_view table, Type type);
  Result<void> clear_tables();
  std::vector<uint32_t> free_nodes(size_t count) const;

  const SocketAddress server_;
  const std::string program_;
  const int call_ms_;
  // mutable: is_alive() reads messages that have arrived, and may_call() sets a deadline.
  mutable bfrt::Client client_;
  bfrt::Info info_;
  std::map<uint16_t, std::vector<uint32_t>> groups_;
};

// A Tofino 2 that runs switch/p4/tna/switch.p4, as a SwitchDriver. options.runtime: BFRuntime's
// gRPC server, which bf_switchd has on port kPort.
Result<std::unique_ptr<P4Switch>> open_tofino(P4Options options);

}  // namespace slime::net
