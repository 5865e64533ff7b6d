#include "test/p4/fake_bmv2.h"

#include <thrift/processor/TMultiplexedProcessor.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TServerSocket.h>

#include <chrono>
#include <condition_variable>
#include <stdexcept>

#include "bmv2/SimplePreLag.h"
#include "bmv2/SimpleSwitch.h"
#include "bmv2/Standard.h"

namespace slime::p4 {
namespace {

// The last word of a name of the program.
std::string last(const std::string& name) { return name.substr(name.rfind('.') + 1); }

struct Shared {
  std::shared_ptr<std::mutex> mutex;
  std::shared_ptr<FakeState> state;

  // Notes the call and makes it, or throws what bmv2 would throw.
  template <typename Body>
  void call(const std::string& what, const Body& body) const {
    for (;;) {
      std::unique_lock lock(*mutex);
      const int delay_ms = state->delay_ms;
      const bool hangs = state->hang;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(hangs ? 5 : delay_ms));
      if (!hangs) break;
    }
    std::lock_guard lock(*mutex);
    if (state->broken) throw std::runtime_error("broken");
    state->calls.push_back(what);
    if (state->fail_at == what) {
      bmv2::Failure failure;
      failure.code = 100;
      throw failure;
    }
    body(*state);
  }
};

class Standard final : public bmv2::StandardIf {
 public:
  explicit Standard(Shared shared) : shared_(std::move(shared)) {}
  int32_t bm_mt_add_entry(int32_t, const std::string& table,
                          const std::vector<bmv2::MatchParam>& key, const std::string& action,
                          const std::vector<std::string>& data,
                          const bmv2::EntryOptions&) override {
    int32_t handle = 0;
    shared_.call("add " + last(table), [&](FakeState& state) {
      FakeState::Entry entry{{}, data, last(action)};
      for (const bmv2::MatchParam& param : key) entry.key.push_back(param.exact.key);
      for (const auto& [number, other] : state.tables[last(table)]) {
        if (other.key == entry.key) throw bmv2::Failure();  // DUPLICATE_ENTRY
      }
      handle = state.next_handle++;
      state.tables[last(table)][handle] = entry;
    });
    return handle;
  }
  void bm_mt_set_default_action(int32_t, const std::string& table, const std::string& action,
                                const std::vector<std::string>&) override {
    shared_.call("default " + last(table),
                 [&](FakeState& state) { state.default_actions[last(table)] = last(action); });
  }
  void bm_mt_delete_entry(int32_t, const std::string& table, int32_t handle) override {
    shared_.call("remove " + last(table), [&](FakeState& state) {
      if (state.tables[last(table)].erase(handle) == 0) throw bmv2::Failure();
    });
  }
  void bm_mt_modify_entry(int32_t, const std::string& table, int32_t handle,
                          const std::string& action,
                          const std::vector<std::string>& data) override {
    shared_.call("modify " + last(table), [&](FakeState& state) {
      auto& entry = state.tables[last(table)].at(handle);
      entry.action = last(action);
      entry.data = data;
    });
  }
  void bm_counter_read(bmv2::CounterValue& value, int32_t, const std::string& name,
                       int32_t index) override {
    shared_.call("read " + last(name), [&](FakeState&) { value.packets = 1000 + index; });
  }
  void bm_counter_write(int32_t, const std::string& name, int32_t,
                        const bmv2::CounterValue&) override {
    shared_.call("zero " + last(name), [](FakeState&) {});
  }
  void bm_meter_array_set_rates(int32_t, const std::string& name,
                                const std::vector<bmv2::MeterRate>&) override {
    shared_.call("limit " + last(name), [](FakeState&) {});
  }
  void bm_register_write_range(int32_t, const std::string& name, int32_t first, int32_t end,
                               int64_t) override {
    shared_.call("clear " + last(name) + " " + std::to_string(first) + " " + std::to_string(end),
                 [](FakeState&) {});
  }
  void bm_reset_state() override {
    shared_.call("reset", [](FakeState& state) {
      state.tables.clear();
      state.groups.clear();
      state.replicas.clear();
    });
  }

 private:
  const Shared shared_;
};

class Multicast final : public bmv2::SimplePreLagIf {
 public:
  explicit Multicast(Shared shared) : shared_(std::move(shared)) {}
  int32_t bm_mc_mgrp_create(int32_t, int32_t group) override {
    int32_t handle = 0;
    shared_.call("group", [&](FakeState& state) {
      handle = state.next_handle++;
      state.groups[handle] = group;
    });
    return handle;
  }
  void bm_mc_mgrp_destroy(int32_t, int32_t handle) override {
    shared_.call("remove group", [&](FakeState& state) {
      if (state.groups.erase(handle) == 0) throw bmv2::Failure();
    });
  }
  int32_t bm_mc_node_create(int32_t, int32_t, const std::string&, const std::string&) override {
    int32_t handle = 0;
    shared_.call("replica", [&](FakeState& state) {
      handle = state.next_handle++;
      state.replicas[handle] = 0;
    });
    return handle;
  }
  void bm_mc_node_associate(int32_t, int32_t group, int32_t handle) override {
    shared_.call("associate", [&](FakeState& state) { state.replicas.at(handle) = group; });
  }
  void bm_mc_node_destroy(int32_t, int32_t handle) override {
    shared_.call("remove replica", [&](FakeState& state) {
      if (state.replicas.erase(handle) == 0) throw bmv2::Failure();
    });
  }

 private:
  const Shared shared_;
};

class Mirrors final : public bmv2::SimpleSwitchIf {
 public:
  explicit Mirrors(Shared shared) : shared_(std::move(shared)) {}
  void mirroring_session_add(int32_t session, const bmv2::MirrorConfig&) override {
    shared_.call("mirror", [&](FakeState& state) { state.mirrors.insert(session); });
  }

 private:
  const Shared shared_;
};

// Says when the server listens.
class Listening final : public apache::thrift::server::TServerEventHandler {
 public:
  void preServe() override {
    std::lock_guard lock(mutex_);
    listens_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return listens_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool listens_ = false;
};

}  // namespace

FakeBmv2::FakeBmv2() {
  using apache::thrift::TMultiplexedProcessor;
  const Shared shared{mutex_, state_};
  auto processor = std::make_shared<TMultiplexedProcessor>();
  processor->registerProcessor(
      "standard", std::make_shared<bmv2::StandardProcessor>(std::make_shared<Standard>(shared)));
  processor->registerProcessor("simple_pre_lag", std::make_shared<bmv2::SimplePreLagProcessor>(
                                                     std::make_shared<Multicast>(shared)));
  processor->registerProcessor("simple_switch", std::make_shared<bmv2::SimpleSwitchProcessor>(
                                                    std::make_shared<Mirrors>(shared)));
  auto socket = std::make_shared<apache::thrift::transport::TServerSocket>("127.0.0.1", 0);
  server_ = std::make_shared<apache::thrift::server::TThreadedServer>(
      processor, socket, std::make_shared<apache::thrift::transport::TBufferedTransportFactory>(),
      std::make_shared<apache::thrift::protocol::TBinaryProtocolFactory>());
  auto listening = std::make_shared<Listening>();
  server_->setServerEventHandler(listening);
  thread_ = std::thread([server = server_] { server->serve(); });
  listening->wait();
  address_ = *SocketAddress::parse("127.0.0.1:" + std::to_string(socket->getPort()));
}

FakeBmv2::~FakeBmv2() {
  change([](FakeState& state) { state.hang = false; });
  server_->stop();
  thread_.join();
}

FakeState FakeBmv2::state() const {
  std::lock_guard lock(*mutex_);
  return *state_;
}

}  // namespace slime::p4
