// The debugging modes by name.
#pragma once

#include <slime/aggregation.h>

#include <memory>
#include <string>
#include <vector>

#include "aggregation/path.h"
#include "base/error.h"
#include "settings/settings.h"
#include "switch/core/shard.h"

namespace slime::aggregation {

const char* name_of(Mode mode);
// Of NCCL_SLIME_DEBUG_MODE; kNormal for a name that the settings do not accept.
Mode mode_of(const std::string& name);
// A line for the log: what results are worth now.
const char* warning_of(Mode mode);

// A switch in this process: the worker and the slot machine, without a network between them. Each
// contribution of the worker is folded once for every rank.
//
// States: open; a worker that fails does so for good. Answers of the switch wait in `waiting_`, a
// ring of `places_` packets from first_ to last_ (counted without end), until test() gives them to
// the worker. Thread rules: one call at a time.
class DummyPath final : public Path, private Datagrams, private net::Outbox {
 public:
  static Result<std::unique_ptr<Path>> open(const Settings& settings, uint32_t rank,
                                            uint32_t ranks);
  ~DummyPath() override;

  Status start(const Operation& operation, uint64_t* ticket) override;
  Status test(uint64_t ticket, bool* done) override;
  const Error& failure() const override { return worker_->failure(); }
  uint64_t results() override { return worker_->counters().results; }
  WorkerReport report() override;

 private:
  DummyPath() = default;
  void send(const Destination& to, std::span<const std::byte> datagram) override;
  void send(const net::Outgoing& packet, std::span<const SocketAddress> to) override;
  std::span<std::byte> place(size_t index) {
    return std::span(waiting_).subspan(index % places_ * sap::kMaxPacketBytes,
                                       sap::kMaxPacketBytes);
  }

  std::string name_;
  uint64_t now_ns_ = 0;  // of the call under way
  std::vector<SocketAddress> children_;
  std::unique_ptr<net::Shard> shard_;
  std::unique_ptr<Worker> worker_;
  // Answers on their way to the worker, oldest first.
  size_t places_ = 0, first_ = 0, last_ = 0;
  std::vector<std::byte> waiting_;
  std::vector<size_t> sizes_;
};

// Operations that are complete as soon as they start. It has no state but the number of operations.
class InstantPath final : public Path {
 public:
  InstantPath(uint32_t rank, uint32_t ranks) {
    report_.name = "instant, rank " + std::to_string(rank) + " of " + std::to_string(ranks);
  }
  Status start(const Operation& operation, uint64_t* ticket) override {
    if (!Payload::supports(operation.type, operation.op)) return Status::kUnsupported;
    *ticket = report_.worker.operations++;
    return Status::kOk;
  }
  Status test(uint64_t /*ticket*/, bool* done) override {
    *done = true;
    return Status::kOk;
  }
  const Error& failure() const override { return failure_; }
  uint64_t results() override { return 0; }
  WorkerReport report() override { return report_; }

 private:
  WorkerReport report_;
  const Error failure_;
};

}  // namespace slime::aggregation
