// bmv2's runtime interface (runtime.thrift) as a P4Runtime. Thrift throws; this class returns
// Results.
//
// States: those of P4Runtime, connected or not.
// Invariants: entries_ and groups_ have the handles of everything that was added since connect()
// and not removed. Keys are exact, as those of switch/p4/v1model; others are refused. Replicas of
// one number are one node of bmv2, with all their ports. Thread rules: one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "switch/p4driver/runtime.h"

namespace slime::net {

class Bmv2Runtime final : public P4Runtime {
 public:
  static constexpr int kConnectMs = 500;

  // call_ms: the deadline of each call, from its first byte to the last of the answer.
  Bmv2Runtime(const SocketAddress& server, int call_ms);
  ~Bmv2Runtime() override;

  const SocketAddress& server() const override { return server_; }
  Result<void> connect() override;
  bool is_connected() const override;
  Result<void> reset() override;
  Result<void> add(const TableEntry& entry) override;
  Result<void> modify(const TableEntry& entry) override;
  Result<void> remove(const TableEntry& entry) override;
  Result<void> set_default(std::string_view table, const TableAction& action) override;
  Result<void> clear_registers(const RegisterRange& range) override;
  Result<uint64_t> read_counter(const CounterCell& cell) override;
  Result<void> clear_counter(const CounterCell& cell) override;
  Result<void> limit(std::string_view meters, uint32_t packets_per_second) override;
  Result<void> add_group(const MulticastGroup& group) override;
  Result<void> remove_group(uint16_t id) override;
  Result<void> mirror(const MirrorSession& session) override;

 private:
  class CallSocket;
  struct Clients;
  struct Group {
    int32_t handle = 0;
    std::vector<int32_t> nodes;  // in the order in which they were added
  };
  using Handles = std::map<std::string, int32_t>;  // by table and key

  Result<void> call(const char* what, const std::string& name,
                    const std::function<void(Clients&)>& body);
  Result<Handles::iterator> find(const char* what, const TableEntry& entry);
  Result<void> add_node(Group& group, uint16_t number, const std::vector<uint16_t>& ports);
  void forget();

  const SocketAddress server_;
  const int call_ms_;
  std::unique_ptr<Clients> clients_;  // absent: not connected
  Handles entries_;
  std::map<uint16_t, Group> groups_;
};

}  // namespace slime::net
