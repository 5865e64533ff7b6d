// The parts of a link without a link: rails that only record what is asked of them, and a test that
// says what completes and what the peer sends.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "link/rejoin.h"
#include "test/support/fake_rail.h"
#include "test/support/manual_clock.h"

namespace slime::test {

class LinkPartsTest : public ::testing::Test, private LinkEnd, private CompletionSink {
 protected:
  explicit LinkPartsTest(size_t rails = 2, uint32_t most_reads = 0)
      : devices_(make_devices(rails, most_reads)) {
    context_.set_user(*this);
    for (size_t i = 0; i < rails; ++i) {
      rails_.add({std::make_unique<FakeChannel>(), i, 10'000});
    }
  }

  FakeChannel& channel(size_t rail) { return static_cast<FakeChannel&>(*rails_[rail].channel); }
  void pass(double seconds) {
    clock_.pass(seconds_to_ns(seconds));
    rails_.read_clock();
  }
  // What waits on a rail is posted and done.
  std::vector<ControlOp> deliver(size_t rail) {
    rails_.flush(rail, false);
    std::vector<ControlOp> posted;
    for (const Work& work : channel(rail).in_flight) {
      posted.push_back(control_op(work.immediate));
      const OpenWork* const ended = rails_[rail].works.end(work.cookie);
      rails_.completed(rail, rails_[rail], *ended);
      if (ended->owner != nullptr) ended->owner->on_done(ended->part);
    }
    channel(rail).in_flight.clear();
    rails_.update_load(rail);
    return posted;
  }
  void write_join_record(const JoinRecord& record) {
    std::memcpy(memory_.inbox() + join_offset(0, record.rail), &record, sizeof record);
  }
  Status die(size_t rail) {
    return failover_.fail_rail(rail, make_error(Status::kRemote, 0, "the test ended it"));
  }
  Status peer_says(ControlOp op, size_t rail, uint32_t epoch) {
    return rejoin_.on_message(op, {static_cast<uint32_t>(rail), epoch});
  }

  ManualClock clock_;
  std::unique_ptr<Devices> devices_;
  LinkContext context_{*devices_, *devices_->device(0), "peer", true, kNoTrafficClass, 0};
  LinkMemory memory_{records(), records(), {}, {}};
  LinkRails rails_{context_, memory_};
  RailLiveness liveness_{rails_};
  Lifeline lifeline_{context_, memory_, nullptr, 0};
  ControlPath path_{rails_, lifeline_};
  Failover failover_{rails_, path_, *this};
  Rejoin rejoin_{rails_, path_, failover_, liveness_};
  std::vector<size_t> fenced_;  // rails whose works the user was told to repeat

 private:
  RegisteredBuffer records() {
    return std::move(
        *RegisteredBuffer::make(*devices_->device(0), link_memory_bytes(0, kMaxRails)));
  }
  std::unique_ptr<Devices> make_devices(size_t count, uint32_t most_reads) {
    std::vector<std::unique_ptr<Rail>> rails;
    for (size_t i = 0; i < count; ++i) {
      RailCaps caps = fake_caps("fake." + std::to_string(i));
      caps.max_outstanding_reads = most_reads;
      if (most_reads > 0) caps.opcodes |= opcode_bit(Opcode::kRead) | opcode_bit(Opcode::kWrite);
      rails.push_back(std::make_unique<FakeRail>(caps));
    }
    return Devices::of_rails(std::move(rails), Settings(), clock_);
  }

  Status on_arrived(size_t, uint32_t, uint64_t) override { return Status::kOk; }
  OutboxPiece fence_record(const RailLife&) override { return {}; }
  Status on_both_fenced(const RailLife& life) override {
    fenced_.push_back(life.rail);
    rails_.hand_back_works(life.rail);
    return Status::kOk;
  }
  Status handle_completion(size_t, const Done&) override { return Status::kOk; }
};

}  // namespace slime::test
