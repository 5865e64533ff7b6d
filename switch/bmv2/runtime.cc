#include "switch/bmv2/runtime.h"

#include <sys/socket.h>
#include <thrift/TOutput.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TMultiplexedProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include <cerrno>

#include "bmv2/SimplePreLag.h"
#include "bmv2/SimpleSwitch.h"
#include "bmv2/Standard.h"

namespace slime::net {
namespace {

namespace protocol = apache::thrift::protocol;
namespace transport = apache::thrift::transport;

constexpr int32_t kContext = 0;  // simple_switch has one
constexpr size_t kMostPorts = 512;

// Big-endian, in as many bytes as the field's bits need.
std::string bytes_of(const Bmv2Field& field) {
  std::string bytes((field.bits + 7) / 8, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[bytes.size() - 1 - i] = static_cast<char>(field.value >> (8 * i));
  }
  return bytes;
}

std::vector<std::string> bytes_of(const std::vector<Bmv2Field>& fields) {
  std::vector<std::string> all;
  for (const Bmv2Field& field : fields) all.push_back(bytes_of(field));
  return all;
}

std::vector<bmv2::MatchParam> key_of(const Bmv2Entry& entry) {
  std::vector<bmv2::MatchParam> key;
  for (const Bmv2Field& field : entry.key) {
    bmv2::ExactKey exact;
    exact.key = bytes_of(field);
    bmv2::MatchParam param;
    param.type = bmv2::MatchType::EXACT;
    param.__set_exact(exact);
    key.push_back(param);
  }
  return key;
}

}  // namespace

struct Bmv2Runtime::Clients {
  explicit Clients(const std::shared_ptr<transport::TSocket>& to)
      : socket(to),
        wire(std::make_shared<protocol::TBinaryProtocol>(
            std::make_shared<transport::TBufferedTransport>(to))),
        standard(service("standard")),
        multicast(service("simple_pre_lag")),
        simple_switch(service("simple_switch")) {}
  std::shared_ptr<protocol::TProtocol> service(const char* name) const {
    return std::make_shared<protocol::TMultiplexedProtocol>(wire, name);
  }

  std::shared_ptr<transport::TSocket> socket;
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

bool Bmv2Runtime::looks_alive() const {
  if (!clients_) return false;
  char byte;
  const ssize_t got =
      recv(clients_->socket->getSocketFD(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

Result<void> Bmv2Runtime::connect() {
  clients_ = nullptr;
  auto socket = std::make_shared<transport::TSocket>(server_.host(), server_.port());
  socket->setConnTimeout(kConnectMs);
  socket->setSendTimeout(call_ms_);
  socket->setRecvTimeout(call_ms_);
  try {
    socket->open();
    clients_ = std::make_unique<Clients>(socket);
  } catch (const std::exception& error) {
    return fail(make_error(Status::kRemote, 0,
                           "bmv2's runtime interface at %s: %s; is simple_switch running there "
                           "(--thrift-port), and does device.runtime name it?",
                           server_.to_string().c_str(), error.what()));
  }
  return {};
}

// Makes a call, and turns exceptions into an error: `what` the call does, and to which `name`.
Result<void> Bmv2Runtime::call(const char* what, const std::string& name,
                               const std::function<void(Clients&)>& body) {
  if (!clients_) {
    return fail(make_error(Status::kRemote, 0,
                           "bmv2 at %s cannot be asked to %s %s: there is no connection; is "
                           "simple_switch running?",
                           server_.to_string().c_str(), what, name.c_str()));
  }
  try {
    body(*clients_);
    return {};
  } catch (const bmv2::Failure& error) {
    return fail(make_error(Status::kRemote, 0,
                           "bmv2 at %s does not %s %s: error %d; does it run "
                           "switch/p4/v1model/switch.p4 of this version?",
                           server_.to_string().c_str(), what, name.c_str(), error.code));
  } catch (const std::exception& error) {
    clients_ = nullptr;  // a late answer would be taken for that of the next call
    return fail(make_error(Status::kRemote, 0, "bmv2 at %s did not %s %s: %s",
                           server_.to_string().c_str(), what, name.c_str(), error.what()));
  }
}

Result<void> Bmv2Runtime::reset() {
  return call("reset", "its state", [](Clients& to) { to.standard.bm_reset_state(); });
}

Result<int32_t> Bmv2Runtime::add(const Bmv2Entry& entry) {
  int32_t handle = 0;
  auto added = call("add an entry to", entry.table, [&](Clients& to) {
    handle = to.standard.bm_mt_add_entry(kContext, entry.table, key_of(entry), entry.action.name,
                                         bytes_of(entry.action.data), bmv2::EntryOptions());
  });
  if (!added) return fail(std::move(added.error()));
  return handle;
}

Result<void> Bmv2Runtime::modify(const char* table, int32_t handle, const Bmv2Action& action) {
  return call("change an entry of", table, [&](Clients& to) {
    to.standard.bm_mt_modify_entry(kContext, table, handle, action.name, bytes_of(action.data));
  });
}

Result<void> Bmv2Runtime::remove(const char* table, int32_t handle) {
  return call("remove an entry of", table,
              [&](Clients& to) { to.standard.bm_mt_delete_entry(kContext, table, handle); });
}

Result<void> Bmv2Runtime::set_default(const char* table, const Bmv2Action& action) {
  return call("set the default action of", table, [&](Clients& to) {
    to.standard.bm_mt_set_default_action(kContext, table, action.name, bytes_of(action.data));
  });
}

Result<void> Bmv2Runtime::clear_registers(const char* array, uint32_t first, uint32_t end) {
  return call("clear registers of", array, [&](Clients& to) {
    to.standard.bm_register_write_range(kContext, array, static_cast<int32_t>(first),
                                        static_cast<int32_t>(end), 0);
  });
}

Result<uint64_t> Bmv2Runtime::read_counter(const char* array, uint32_t index) {
  bmv2::CounterValue value;
  auto read = call("read a counter of", array, [&](Clients& to) {
    to.standard.bm_counter_read(value, kContext, array, static_cast<int32_t>(index));
  });
  if (!read) return fail(std::move(read.error()));
  return static_cast<uint64_t>(value.packets);
}

Result<void> Bmv2Runtime::clear_counter(const char* array, uint32_t index) {
  return call("clear a counter of", array, [&](Clients& to) {
    to.standard.bm_counter_write(kContext, array, static_cast<int32_t>(index),
                                 bmv2::CounterValue());
  });
}

// Two rates and bursts (RFC 2698), of which the program needs one: they are the same.
Result<void> Bmv2Runtime::limit(const char* meters, uint32_t packets_per_second) {
  bmv2::MeterRate rate;
  rate.units_per_micros = packets_per_second / 1e6;
  rate.burst_size = static_cast<int32_t>(packets_per_second);
  return call("set the rates of", meters, [&](Clients& to) {
    to.standard.bm_meter_array_set_rates(kContext, meters, {rate, rate});
  });
}

Result<int32_t> Bmv2Runtime::add_group(uint16_t group) {
  int32_t handle = 0;
  auto added = call("make multicast group", std::to_string(group),
                    [&](Clients& to) { handle = to.multicast.bm_mc_mgrp_create(kContext, group); });
  if (!added) return fail(std::move(added.error()));
  return handle;
}

Result<void> Bmv2Runtime::remove_group(int32_t handle) {
  return call("remove", "a multicast group",
              [&](Clients& to) { to.multicast.bm_mc_mgrp_destroy(kContext, handle); });
}

Result<int32_t> Bmv2Runtime::add_replica(int32_t group_handle, uint16_t number,
                                         const std::vector<uint16_t>& ports) {
  std::string map(kMostPorts, '0');
  for (const uint16_t port : ports) map[kMostPorts - 1 - port] = '1';
  int32_t handle = 0;
  auto added = call("add to a multicast group replica", std::to_string(number), [&](Clients& to) {
    handle = to.multicast.bm_mc_node_create(kContext, number, map, "");
  });
  if (!added) return fail(std::move(added.error()));
  auto joined = call("add to a multicast group replica", std::to_string(number), [&](Clients& to) {
    to.multicast.bm_mc_node_associate(kContext, group_handle, handle);
  });
  if (joined) return handle;
  (void)remove_replica(handle);  // no other code has its handle
  return fail(std::move(joined.error()));
}

Result<void> Bmv2Runtime::remove_replica(int32_t handle) {
  return call("remove", "a replica of a multicast group",
              [&](Clients& to) { to.multicast.bm_mc_node_destroy(kContext, handle); });
}

Result<void> Bmv2Runtime::mirror(uint16_t session, uint16_t port) {
  return call("set mirroring session", std::to_string(session), [&](Clients& to) {
    bmv2::MirrorConfig config;
    config.__set_port(port);
    to.simple_switch.mirroring_session_add(session, config);
  });
}

}  // namespace slime::net
