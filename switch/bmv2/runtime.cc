#include "switch/bmv2/runtime.h"

#include <sys/socket.h>
#include <thrift/TOutput.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TMultiplexedProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "bmv2/SimplePreLag.h"
#include "bmv2/SimpleSwitch.h"
#include "bmv2/Standard.h"

namespace slime::net {
namespace {

namespace protocol = apache::thrift::protocol;
namespace transport = apache::thrift::transport;

constexpr int32_t kContext = 0;  // simple_switch has one
constexpr size_t kMostPorts = 512;
constexpr int kMostAnswerBytes = 1 << 16;  // bmv2's have less than a hundred

std::vector<std::string> bytes_of(const std::vector<TableField>& fields) {
  std::vector<std::string> all;
  all.reserve(fields.size());
  for (const TableField& field : fields) all.push_back(net::bytes_of(field.value, field.bits));
  return all;
}

std::vector<bmv2::MatchParam> key_of(const TableEntry& entry) {
  std::vector<bmv2::MatchParam> key;
  for (const TableField& field : entry.key) {
    bmv2::ExactKey exact;
    exact.key = net::bytes_of(field.value, field.bits);
    bmv2::MatchParam param;
    param.type = bmv2::MatchType::EXACT;
    param.__set_exact(exact);
    key.push_back(param);
  }
  return key;
}

bool is_exact(const TableEntry& entry) {
  return std::ranges::all_of(
      entry.key, [](const TableField& field) { return field.mask == TableField::kExact; });
}

// The same for entries with the same table and key: keys of a table have the same lengths.
std::string name_of(const TableEntry& entry) {
  std::string name(entry.table);
  for (const TableField& field : entry.key) name += '\0' + net::bytes_of(field.value, field.bits);
  return name;
}

}  // namespace

// A socket whose limits are those of a call: Thrift limits each recv and each send only, so that an
// agent could make a call last for ever with a byte now and then.
class Bmv2Runtime::CallSocket final : public transport::TSocket {
 public:
  using TSocket::TSocket;

  // A call begins: until it ends, reading and writing take so long together.
  void begin(int limit_ms) {
    deadline_ = Clock::now() + std::chrono::milliseconds(limit_ms);
    bytes_left_ = kMostAnswerBytes;
  }
  uint32_t read(uint8_t* to, uint32_t bytes) override {
    setRecvTimeout(left_ms());
    const uint32_t got = TSocket::read(to, bytes);
    if (got > bytes_left_) too_long();
    bytes_left_ -= got;
    return got;
  }
  uint32_t write_partial(const uint8_t* from, uint32_t bytes) override {
    setSendTimeout(left_ms());
    return TSocket::write_partial(from, bytes);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Failure = transport::TTransportException;

  int left_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    if (left.count() <= 0) throw Failure(Failure::TIMED_OUT, "no whole answer in time");
    return static_cast<int>(left.count());
  }
  [[noreturn]] static void too_long() {
    throw Failure(Failure::CORRUPTED_DATA, "the answer is too long");
  }

  Clock::time_point deadline_;
  uint32_t bytes_left_ = 0;
};

// The services of simple_switch, each with a name of its own on one connection. A text or a list
// that says it is longer than an answer may be is refused before there is memory for it, and so is
// what does not begin as a message of Thrift (strict).
struct Bmv2Runtime::Clients {
  explicit Clients(const std::shared_ptr<CallSocket>& to)
      : socket(to),
        wire(std::make_shared<protocol::TBinaryProtocol>(
            std::make_shared<transport::TBufferedTransport>(to), kMostAnswerBytes, kMostAnswerBytes,
            true, true)),
        standard(service("standard")),
        multicast(service("simple_pre_lag")),
        simple_switch(service("simple_switch")) {}
  std::shared_ptr<protocol::TProtocol> service(const char* name) const {
    return std::make_shared<protocol::TMultiplexedProtocol>(wire, name);
  }

  std::shared_ptr<CallSocket> socket;
  std::shared_ptr<protocol::TProtocol> wire;
  bmv2::StandardClient standard;
  bmv2::SimplePreLagClient multicast;
  bmv2::SimpleSwitchClient simple_switch;
};

// Thrift prints errors that it also throws. This class returns them, so nothing is printed.
Bmv2Runtime::Bmv2Runtime(const SocketAddress& server, int call_ms)
    : server_(server), call_ms_(call_ms) {
  apache::thrift::GlobalOutput.setOutputFunction([](const char*) {});
}

Bmv2Runtime::~Bmv2Runtime() = default;

// No call is under way, so nothing should arrive: end of file means that simple_switch has closed
// the connection, and a byte would be taken for a part of the next answer.
bool Bmv2Runtime::is_connected() const {
  if (!clients_) return false;
  char byte;
  const ssize_t got =
      recv(clients_->socket->getSocketFD(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EINTR);
}

Result<void> Bmv2Runtime::connect() {
  clients_ = nullptr;
  forget();
  auto socket = std::make_shared<CallSocket>(server_.host(), server_.port());
  socket->setConnTimeout(std::max(limit_ms(kConnectMs), 1));  // 0 would be none
  try {
    socket->open();
    clients_ = std::make_unique<Clients>(socket);
  } catch (const std::exception& error) {
    return fail(Status::kRemote,
                "bmv2's runtime interface at %s: %s; is simple_switch running there "
                "(--thrift-port), and does device.runtime name it?",
                server_.to_string().c_str(), error.what());
  }
  return {};
}

// Makes a call, and turns exceptions into an error: `what` the call does, and to which `name`.
Result<void> Bmv2Runtime::call(const char* what, const std::string& name,
                               const std::function<void(Clients&)>& body) {
  if (!clients_) {
    return fail(
        Status::kRemote,
        "bmv2 at %s cannot be asked to %s %s: there is no connection; is simple_switch running?",
        server_.to_string().c_str(), what, name.c_str());
  }
  try {
    clients_->socket->begin(limit_ms(call_ms_));
    body(*clients_);
    return {};
  } catch (const bmv2::Failure& error) {
    return fail(Status::kRemote,
                "bmv2 at %s does not %s %s: error %d; does it run switch/p4/v1model/switch.p4 of "
                "this version?",
                server_.to_string().c_str(), what, name.c_str(), error.code);
  } catch (const std::exception& error) {
    clients_ = nullptr;  // a late answer would be taken for that of the next call
    return fail(Status::kRemote, "bmv2 at %s did not %s %s: %s", server_.to_string().c_str(), what,
                name.c_str(), error.what());
  }
}

void Bmv2Runtime::forget() {
  entries_.clear();
  groups_.clear();
}

Result<void> Bmv2Runtime::reset() {
  forget();
  return call("reset", "its state", [](Clients& to) { to.standard.bm_reset_state(); });
}

// The handle that bmv2 returns is kept: it is needed to change or remove the entry.
Result<void> Bmv2Runtime::add(const TableEntry& entry) {
  const std::string table(entry.table), action(entry.action.name);
  if (!is_exact(entry)) {
    return fail(Status::kUnsupported, "bmv2 at %s: an entry of %s is not exact",
                server_.to_string().c_str(), table.c_str());
  }
  return call("add an entry to", table, [&](Clients& to) {
    entries_[name_of(entry)] = to.standard.bm_mt_add_entry(
        kContext, table, key_of(entry), action, bytes_of(entry.action.data), bmv2::EntryOptions());
  });
}

Result<Bmv2Runtime::Handles::iterator> Bmv2Runtime::find(const char* what,
                                                         const TableEntry& entry) {
  const auto found = entries_.find(name_of(entry));
  if (found != entries_.end()) return found;
  return fail(Status::kInternal, "bmv2 at %s was not asked to %s %s: it has none",
              server_.to_string().c_str(), what, std::string(entry.table).c_str());
}

Result<void> Bmv2Runtime::modify(const TableEntry& entry) {
  constexpr char kWhat[] = "change an entry of";
  const auto found = find(kWhat, entry);
  if (!found) return fail(found.error());
  const std::string table(entry.table), action(entry.action.name);
  return call(kWhat, table, [&](Clients& to) {
    to.standard.bm_mt_modify_entry(kContext, table, (*found)->second, action,
                                   bytes_of(entry.action.data));
  });
}

Result<void> Bmv2Runtime::remove(const TableEntry& entry) {
  constexpr char kWhat[] = "remove an entry of";
  const auto found = find(kWhat, entry);
  if (!found) return fail(found.error());
  const std::string table(entry.table);
  return call(kWhat, table, [&](Clients& to) {
    to.standard.bm_mt_delete_entry(kContext, table, (*found)->second);
    entries_.erase(*found);
  });
}

Result<void> Bmv2Runtime::set_default(std::string_view name, const TableAction& action) {
  const std::string table(name);
  return call("set the default action of", table, [&](Clients& to) {
    to.standard.bm_mt_set_default_action(kContext, table, std::string(action.name),
                                         bytes_of(action.data));
  });
}

Result<void> Bmv2Runtime::clear_registers(const RegisterRange& range) {
  const std::string array(range.array);
  return call("clear registers of", array, [&](Clients& to) {
    to.standard.bm_register_write_range(kContext, array, static_cast<int32_t>(range.first),
                                        static_cast<int32_t>(range.end), 0);
  });
}

Result<uint64_t> Bmv2Runtime::read_counter(const CounterCell& cell) {
  const std::string array(cell.array);
  bmv2::CounterValue value;
  auto read = call("read a counter of", array, [&](Clients& to) {
    to.standard.bm_counter_read(value, kContext, array, static_cast<int32_t>(cell.index));
  });
  if (!read) return fail(std::move(read.error()));
  return static_cast<uint64_t>(value.packets);
}

Result<void> Bmv2Runtime::clear_counter(const CounterCell& cell) {
  const std::string array(cell.array);
  return call("clear a counter of", array, [&](Clients& to) {
    to.standard.bm_counter_write(kContext, array, static_cast<int32_t>(cell.index),
                                 bmv2::CounterValue());
  });
}

// A meter has two rates and two bursts (RFC 2698). The program needs one of each, so both are the
// same.
Result<void> Bmv2Runtime::limit(std::string_view meters, uint32_t packets_per_second) {
  const std::string array(meters);
  bmv2::MeterRate rate;
  rate.units_per_micros = packets_per_second / 1e6;
  rate.burst_size = static_cast<int32_t>(packets_per_second);
  return call("set the rates of", array, [&](Clients& to) {
    to.standard.bm_meter_array_set_rates(kContext, array, {rate, rate});
  });
}

// A group whose nodes are only partly there stays in groups_, so that remove_group() finds it.
Result<void> Bmv2Runtime::add_group(const MulticastGroup& group) {
  auto added = call("make multicast group", std::to_string(group.id), [&](Clients& to) {
    groups_[group.id].handle = to.multicast.bm_mc_mgrp_create(kContext, group.id);
  });
  if (!added) return added;
  for (const auto& [number, ports] : ports_by_number(group)) {
    if (auto done = add_node(groups_[group.id], number, ports); !done) return done;
  }
  return {};
}

// One node for all ports of a replica number. bmv2 takes the ports as a text of zeros and ones,
// port 0 last.
Result<void> Bmv2Runtime::add_node(Group& group, uint16_t number,
                                   const std::vector<uint16_t>& ports) {
  std::string map(kMostPorts, '0');
  for (const uint16_t port : ports) map[kMostPorts - 1 - port] = '1';
  return call("add to a multicast group replica", std::to_string(number), [&](Clients& to) {
    group.nodes.push_back(to.multicast.bm_mc_node_create(kContext, number, map, ""));
    to.multicast.bm_mc_node_associate(kContext, group.handle, group.nodes.back());
  });
}

// Node by node, so that after a failure the call can be repeated.
Result<void> Bmv2Runtime::remove_group(uint16_t id) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) return {};
  Group& group = found->second;
  while (!group.nodes.empty()) {
    auto removed = call("remove", "a replica of a multicast group", [&](Clients& to) {
      to.multicast.bm_mc_node_destroy(kContext, group.nodes.back());
      group.nodes.pop_back();
    });
    if (!removed) return removed;
  }
  return call("remove", "a multicast group", [&](Clients& to) {
    to.multicast.bm_mc_mgrp_destroy(kContext, group.handle);
    groups_.erase(found);
  });
}

Result<void> Bmv2Runtime::mirror(const MirrorSession& session) {
  return call("set mirroring session", std::to_string(session.number), [&](Clients& to) {
    bmv2::MirrorConfig config;
    config.__set_port(session.port);
    to.simple_switch.mirroring_session_add(session.number, config);
  });
}

}  // namespace slime::net
