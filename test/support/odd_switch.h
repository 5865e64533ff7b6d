// The control channel of a switch that grants a job of the test's choice, whatever was asked for.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "switch/protocol/frames.h"

namespace slime::test {

class OddSwitch {
 public:
  explicit OddSwitch(const control::JobGrant& grant)
      : grant_(grant), thread_([this] { serve(); }) {}
  ~OddSwitch() {
    ending_ = true;
    thread_.join();
  }
  std::string address() const { return local_address(listener_).value().to_string(); }
  int granted() const { return granted_; }        // how often
  int heartbeats() const { return heartbeats_; }  // that were answered: alive

 private:
  void serve() {
    Error error;
    while (!ending_) {
      Accepted accepted;
      if (accept_one(listener_, &accepted, &error) == Status::kOk) answer(accepted.fd);
      pause();
    }
  }
  // Until the peer leaves.
  void answer(const Fd& peer) {
    control::FrameReader reader(control::kMaxRequestBytes);
    Error error;
    while (!ending_) {
      const Status status = reader.read(peer, &error);
      if (status == Status::kAgain) {
        pause();
        continue;
      }
      if (status != Status::kOk) return;
      size_t sent = 0;
      const auto frame = control::encode(answer_to(reader.header().type), reader.header().sequence);
      if (send_message(peer, frame, &sent, &error) != Status::kOk) return;
      reader.next();
    }
  }
  control::Message answer_to(control::Type request) {
    if (request == control::Type::kHello) return control::Challenge{};
    if (request == control::Type::kHeartbeat) {
      ++heartbeats_;
      return control::JobState{};
    }
    if (request != control::Type::kCreateJob) return control::Done{};
    ++granted_;
    return grant_;
  }
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

  const control::JobGrant grant_;
  const Fd listener_ = listen_on(SocketAddress::parse("127.0.0.1:0").value()).value();
  std::atomic<bool> ending_{false};
  std::atomic<int> granted_{0}, heartbeats_{0};
  std::thread thread_;
};

}  // namespace slime::test
