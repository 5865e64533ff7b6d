// Simulated connections beside the rails of a link, in virtual time: they take a while to connect,
// delay their frames, and break when the test says so, or at random (lost_ppm).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "link/lifeline/stream.h"
#include "test/support/sim/network.h"
#include "test/support/sim/writes.h"

namespace slime::sim {

struct LifelineModel {
  uint64_t connect_ns = 50'000;
  uint64_t latency_ns = 5'000;
  uint32_t lost_ppm = 0;  // of the frames: the connection breaks there
};

// Both ends of one connection.
class LifelineWire {
 public:
  LifelineWire(Network& network, Random& random, const LifelineModel& model)
      : network_(network), random_(random), model_(model) {}
  bool cut() { return !std::exchange(broken_, true); }  // false: it was broken before

 private:
  friend class LifelineEnd;
  struct Frame {
    uint64_t due_ns;
    LifelineHeader header;
    std::vector<std::byte> payload;
  };

  Network& network_;
  Random& random_;
  const LifelineModel model_;
  bool broken_ = false;
  std::deque<Frame> to_[2];  // on the way to each end
};

class LifelineEnd final : public LifelineStream {
 public:
  LifelineEnd(std::shared_ptr<LifelineWire> wire, size_t end) : wire_(std::move(wire)), end_(end) {}
  ~LifelineEnd() override { (void)wire_->cut(); }
  void send(const LifelineHeader& header, std::span<const std::byte> payload) override {
    if (wire_->broken_) return;
    if (wire_->random_.up_to(999'999) < wire_->model_.lost_ppm) {
      (void)wire_->cut();
      return;
    }
    wire_->to_[1 - end_].push_back({wire_->network_.now_ns() + wire_->model_.latency_ns,
                                    header,
                                    {payload.begin(), payload.end()}});
  }
  // What was on its way when the connection broke is lost, or not.
  Status receive(LifelineHeader* header, std::span<const std::byte>* payload,
                 Error* error) override {
    auto& mine = wire_->to_[end_];
    const bool any = !mine.empty() && mine.front().due_ns <= wire_->network_.now_ns();
    if (any && (!wire_->broken_ || wire_->random_.up_to(1) == 0)) {
      last_ = std::move(mine.front());
      mine.pop_front();
      *header = last_.header;
      *payload = last_.payload;
      return Status::kOk;
    }
    if (!wire_->broken_) return Status::kAgain;
    *error = make_error(Status::kRemote, 0, "the simulated connection broke");
    return error->status;
  }

 private:
  const std::shared_ptr<LifelineWire> wire_;
  const size_t end_;
  LifelineWire::Frame last_;
};

// The active end's dialer. `answer` gives the other end of a connection to the passive one.
class LifelineCaller final : public LifelineDialer {
 public:
  using Answer = std::function<void(std::unique_ptr<LifelineStream>)>;
  LifelineCaller(Network& network, Random& random, const LifelineModel& model, Answer answer)
      : network_(network), random_(random), model_(model), answer_(std::move(answer)) {}

  Status dial(std::unique_ptr<LifelineStream>* stream, Error*) override {
    if (due_ns_ == 0) due_ns_ = network_.now_ns() + model_.connect_ns;
    if (network_.now_ns() < due_ns_) return Status::kAgain;
    due_ns_ = 0;
    auto wire = std::make_shared<LifelineWire>(network_, random_, model_);
    *stream = std::make_unique<LifelineEnd>(wire, 0);
    answer_(std::make_unique<LifelineEnd>(wire, 1));
    last_ = wire;
    return Status::kOk;
  }
  void stop() override { due_ns_ = 0; }
  std::string last_failure() const override { return ""; }
  // False: no connection was there.
  bool cut() {
    const auto wire = last_.lock();
    return wire != nullptr && wire->cut();
  }

 private:
  Network& network_;
  Random& random_;
  const LifelineModel model_;
  const Answer answer_;
  uint64_t due_ns_ = 0;
  std::weak_ptr<LifelineWire> last_;
};

}  // namespace slime::sim
