// A connection to bmv2's runtime interface (runtime.thrift), in this project's types. Thrift
// throws; nothing leaves this class but a Result.
//
// States: connected, or not. A call that fails because of the connection closes it, and connect()
// opens another. Every call has a deadline. Thread rules: one thread.
#pragma once

#include <slime/result.h>
#include <slime/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace slime::net {

// A part of a table's key, or a parameter of an action, as the P4 program declares it.
struct Bmv2Field {
  const char* name;
  uint32_t bits;
  uint64_t value;
};

struct Bmv2Action {
  const char* name;
  std::vector<Bmv2Field> data;
};

// Names are those of the compiled program: controls and tables from the outermost on.
struct Bmv2Entry {
  const char* table;
  std::vector<Bmv2Field> key;
  Bmv2Action action;
};

class Bmv2Runtime {
 public:
  static constexpr int kConnectMs = 500;

  Bmv2Runtime(const SocketAddress& server, int call_ms);
  ~Bmv2Runtime();

  Result<void> connect();
  // False: the other end has closed the connection. Sends nothing.
  bool looks_alive() const;

  Result<void> reset();  // tables, registers, counters and multicast groups
  Result<int32_t> add(const Bmv2Entry& entry);
  Result<void> modify(const char* table, int32_t handle, const Bmv2Action& action);
  Result<void> remove(const char* table, int32_t handle);
  Result<void> set_default(const char* table, const Bmv2Action& action);
  // Elements first to end - 1.
  Result<void> clear_registers(const char* array, uint32_t first, uint32_t end);
  Result<uint64_t> read_counter(const char* array, uint32_t index);
  Result<void> clear_counter(const char* array, uint32_t index);
  // No more packets in a second than that, after as many at once.
  Result<void> limit(const char* meters, uint32_t packets_per_second);
  Result<int32_t> add_group(uint16_t group);
  Result<void> remove_group(int32_t handle);
  // A replica with this number for each of the ports.
  Result<int32_t> add_replica(int32_t group_handle, uint16_t number,
                              const std::vector<uint16_t>& ports);
  Result<void> remove_replica(int32_t handle);
  Result<void> mirror(uint16_t session, uint16_t port);

 private:
  struct Clients;
  Result<void> call(const char* what, const std::string& name,
                    const std::function<void(Clients&)>& body);

  const SocketAddress server_;
  const int call_ms_;
  std::unique_ptr<Clients> clients_;  // absent: not connected
};

}  // namespace slime::net
