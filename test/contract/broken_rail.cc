#include "test/contract/broken_rail.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace slime::contract {
namespace {

// What the two ends of a broken world know of each other.
struct Shared {
  Fault fault;
  std::map<uint32_t, Work> posted;  // by immediate
  uint64_t range_start = 0;         // of the latest registration of right
};

class BrokenChannel final : public Channel {
 public:
  BrokenChannel(std::unique_ptr<Channel> inner, Shared& shared, bool is_right)
      : inner_(std::move(inner)), shared_(shared), is_right_(is_right) {}

  ChannelAddress address() const override { return inner_->address(); }
  Status connect(const ChannelAddress& peer) override { return inner_->connect(peer); }
  Status post(std::span<const Work> works, size_t* taken) override;
  Status poll(std::span<Done> done, size_t* count) override;
  void fence() override {
    fenced_ = true;
    inner_->fence();
  }
  const Error& failure() const override {
    return failed_ || is(Fault::kNamesNobody) ? nameless_ : inner_->failure();
  }
  std::string peer_name() const override { return inner_->peer_name(); }

 private:
  bool is(Fault fault) const { return shared_.fault == fault; }
  Status post_swallowing(std::span<const Work> works, size_t* taken);
  void spoil(std::span<Done> done, size_t* count);
  void spoil_memory(const Done& done);
  void spoil_refusal(std::span<Done> done, size_t* count);
  void spoil_report(std::span<Done> done, size_t* count);

  std::unique_ptr<Channel> inner_;
  Shared& shared_;
  const bool is_right_;
  bool fenced_ = false;
  bool failed_ = false;
  bool reported_ = false;  // a silent work
  size_t polls_ = 0;
  std::vector<Done> early_;      // kSent that were made up
  std::vector<Work> swallowed_;  // posted, and kept from the rail below
  const Error nameless_{Status::kRemote, 0, "somebody somewhere closed something"};
};

std::byte* memory_at(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

std::byte* target_of(const Work& work) {
  const bool reads = work.opcode == Opcode::kRead;
  return reads ? const_cast<std::byte*>(work.local) : memory_at(work.remote_address);
}

Status BrokenChannel::post(std::span<const Work> works, size_t* taken) {
  for (const Work& work : works) shared_.posted[work.immediate] = work;
  const bool swallows = is(Fault::kSendsLate) || is(Fault::kForgetsWhatItSent);
  if (swallows && !works.empty()) return post_swallowing(works, taken);
  std::vector<Work> changed(works.begin(), works.end());
  if (is(Fault::kIgnoresKeys)) {
    for (Work& work : changed) {
      const bool reads = work.opcode == Opcode::kRead;
      std::memcpy(target_of(work), reads ? memory_at(work.remote_address) : work.local,
                  work.length);
    }
  }
  const Status status = inner_->post(changed, taken);
  if (is(Fault::kHidesFailure)) return Status::kOk;
  if (is(Fault::kConfirmsItself)) {
    for (size_t i = 0; i < *taken; ++i) {
      early_.push_back({Done::Kind::kSent, 0, 0, works[i].cookie});
    }
  }
  return status;
}

Status BrokenChannel::post_swallowing(std::span<const Work> works, size_t* taken) {
  *taken = works.size();
  for (const Work& work : works) {
    early_.push_back({Done::Kind::kSent, 0, 0, work.cookie});
    swallowed_.push_back(work);
  }
  return Status::kOk;
}

Status BrokenChannel::poll(std::span<Done> done, size_t* count) {
  ++polls_;
  if (!early_.empty() && !done.empty()) {
    done[0] = early_.back();
    early_.pop_back();
    *count = 1;
    return Status::kOk;
  }
  if (is(Fault::kSendsLate) && !swallowed_.empty()) {
    size_t taken = 0;
    const Status status = inner_->post(swallowed_, &taken);
    if (status != Status::kOk) return status;
    swallowed_.erase(swallowed_.begin(), swallowed_.begin() + static_cast<ptrdiff_t>(taken));
  }
  if (failed_) {
    *count = 0;
    return Status::kRemote;
  }
  const Status status = inner_->poll(done, count);
  if (fenced_ && is(Fault::kForgetsAtFence)) *count = 0;
  if (is(Fault::kHidesFailure) && status != Status::kOk) return Status::kOk;
  if (status == Status::kOk) spoil(done, count);
  return status;
}

void BrokenChannel::spoil(std::span<Done> done, size_t* count) {
  const size_t real = *count;
  for (size_t i = 0; i < real; ++i) spoil_memory(done[i]);
  if (is(Fault::kReportsSilentWrites) && is_right_ && real == 0 && !shared_.posted.empty() &&
      !std::exchange(reported_, true)) {
    const Work& work = shared_.posted.begin()->second;
    done[(*count)++] = {Done::Kind::kArrived, work.immediate, work.length, 0};
  }
  if (fenced_ && is(Fault::kWritesThroughFence)) {
    for (auto& [immediate, work] : shared_.posted) *memory_at(work.remote_address) ^= std::byte{1};
  }
  if (fenced_ && is(Fault::kReportsAfterFence) && real == 0 && !shared_.posted.empty()) {
    const Work& work = shared_.posted.begin()->second;
    done[(*count)++] = {Done::Kind::kArrived, work.immediate, work.length, 0};
  }
  if (real > 0) spoil_report(done, count);
  if (*count > 0) spoil_refusal(done, count);
}

void BrokenChannel::spoil_refusal(std::span<Done> done, size_t* count) {
  const auto end = done.begin() + static_cast<ptrdiff_t>(*count);
  const auto refused = std::find_if(
      done.begin(), end, [](const Done& each) { return each.kind == Done::Kind::kRefused; });
  if (refused == end) return;
  if (is(Fault::kHidesRefusal)) refused->kind = Done::Kind::kSent;
  failed_ = is(Fault::kFailsAfterRefusal);
  if (!is(Fault::kLosesRefusal)) return;
  std::move(refused + 1, end, refused);
  --*count;
}

// Of a work that is in memory now.
void BrokenChannel::spoil_memory(const Done& done) {
  const auto is_it = [&](const auto& posted) {
    const Work& work = posted.second;
    const bool silent = work.opcode != Opcode::kWriteWithImmediate;
    return done.kind == Done::Kind::kArrived ? work.immediate == done.immediate
                                             : silent && work.cookie == done.cookie;
  };
  const auto found = std::ranges::find_if(shared_.posted, is_it);
  if (found == shared_.posted.end() || found->second.length == 0) return;
  const Work& work = found->second;
  std::byte* target = target_of(work);
  if (is(Fault::kSpoilsAByte)) target[work.length - 1] ^= std::byte{1};
  if (is(Fault::kWritesBeyond)) target[work.length] ^= std::byte{1};
  if (is(Fault::kWritesOutside)) *memory_at(shared_.range_start - 1) = std::byte{0x77};
  if (is(Fault::kSpoilsLater) && polls_ > 6) {
    *target_of(shared_.posted.begin()->second) = std::byte{0x77};
  }
}

void BrokenChannel::spoil_report(std::span<Done> done, size_t* count) {
  const bool sent = done[0].kind == Done::Kind::kSent;
  const bool room = *count < done.size();
  if (room && is(sent ? Fault::kRepeatsSent : Fault::kRepeatsArrived)) done[(*count)++] = done[0];
  if (is(sent ? Fault::kLosesSent : Fault::kLosesArrived)) --*count;
  if (!sent && is(Fault::kMakesUpImmediate)) done[0].immediate ^= 0x8000;
  if (sent && is(Fault::kMakesUpCookie)) done[0].cookie ^= uint64_t{1} << 63;
  if (!sent && is(Fault::kMiscountsBytes)) ++done[0].bytes;
  if (is(Fault::kSwapsArrivals)) std::reverse(done.begin(), done.begin() + *count);
}

class BrokenRail final : public Rail {
 public:
  BrokenRail(Rail& inner, Shared& shared, bool is_right)
      : inner_(inner), shared_(shared), is_right_(is_right) {}
  const RailCaps& caps() const override { return inner_.caps(); }
  Result<MemoryKeys> register_memory(const MemoryRange& range) override {
    if (is_right_) shared_.range_start = reinterpret_cast<uint64_t>(range.address);
    return inner_.register_memory(range);
  }
  void deregister_memory(const MemoryKeys& keys) override { inner_.deregister_memory(keys); }
  Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions& options) override {
    auto channel = inner_.open_channel(options);
    if (!channel) return channel;
    return std::make_unique<BrokenChannel>(std::move(*channel), shared_, is_right_);
  }

 private:
  Rail& inner_;
  Shared& shared_;
  const bool is_right_;
};

class BrokenWorld final : public World {
 public:
  BrokenWorld(std::unique_ptr<World> inner, Fault fault)
      : inner_(std::move(inner)),
        shared_{fault, {}, 0},
        left_(inner_->left(), shared_, false),
        right_(inner_->right(), shared_, true) {}
  Rail& left() override { return left_; }
  Rail& right() override { return right_; }
  bool pump() override { return inner_->pump(); }
  bool is_at_rest() const override { return inner_->is_at_rest(); }
  WorldProperties properties() const override { return inner_->properties(); }
  std::vector<ChannelAddress> alien_addresses(const ChannelAddress& real) override {
    return inner_->alien_addresses(real);
  }

 private:
  std::unique_ptr<World> inner_;
  Shared shared_;
  BrokenRail left_, right_;
};

}  // namespace

std::unique_ptr<World> make_broken_world(std::unique_ptr<World> inner, Fault fault) {
  return std::make_unique<BrokenWorld>(std::move(inner), fault);
}

}  // namespace slime::contract
