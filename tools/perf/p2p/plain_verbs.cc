#include "tools/perf/p2p/plain_verbs.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "tools/common/bytes.h"
#include "transports/verbs/rail.h"

namespace slime::perf::p2p {
namespace {

using nlohmann::json;

constexpr uint32_t kMessage = 0, kEnd = 1;  // immediates
constexpr uint64_t kOfNoSlot = UINT32_MAX;  // number of works
// More would leave the queue empty before each further doorbell.
constexpr uint32_t kMostAPost = BareEnd::kSends / 2;

// Bytes of a work, at most.
std::vector<uint64_t> ways_within(uint64_t most) {
  return {most, std::min<uint64_t>(most, 1 << 20), std::min<uint64_t>(most, 64 << 10)};
}

}  // namespace

Result<std::unique_ptr<PlainLoop>> PlainVerbs::open(const Options& options,
                                                    std::span<std::byte> memory,
                                                    std::unique_ptr<Devices> devices) {
  auto& rail = static_cast<verbs::VerbsRail&>(*devices->device(0)->rails().front());
  auto end = BareEnd::open(rail, memory);
  if (!end) return fail(std::move(end.error()));
  return std::unique_ptr<PlainLoop>(
      new PlainVerbs(options, std::move(devices), std::move(*end), rail.caps()));
}

PlainVerbs::PlainVerbs(const Options& options, std::unique_ptr<Devices> devices,
                       std::unique_ptr<BareEnd> end, const RailCaps& caps)
    : opcode_(options.operation == Operation::kRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE),
      tells_(options.immediate ||
             (options.operation != Operation::kRead && options.operation != Operation::kWrite)),
      most_a_post_(std::min(caps.max_batch, kMostAPost)),
      ways_(ways_within(caps.max_message_bytes)),
      devices_(std::move(devices)),
      end_(std::move(end)) {}

json PlainVerbs::name() const {
  const BareEnd::Name name = end_->name();
  return {{"transport", "verbs"}, {"end", tools::to_hex(std::as_bytes(std::span(&name, 1)))}};
}

Result<void> PlainVerbs::connect_to(const json& other) {
  BareEnd::Name name;
  const auto hex = other.at("end").get<std::string>();
  if (tools::from_hex(hex, std::as_writable_bytes(std::span(&name, 1)))) return end_->connect(name);
  return fail(Status::kRemote, "the other rank's plain loop has no end");
}

std::span<const uint64_t> PlainVerbs::ways() const { return ways_; }

Requests PlainVerbs::requests(const Layout& layout, uint64_t most_a_work) {
  posted_.resize(layout.slots);
  answer_.resize(layout.slots);
  const auto begin = [this, layout, most_a_work](uint32_t slot) {
    return this->begin(layout, most_a_work, slot);
  };
  const auto wait = [this](uint32_t slot) -> Result<void> {
    return wait_until([&] { return posted_[slot] == 0 && heard_ >= answer_[slot]; });
  };
  return {begin, wait};
}

Result<void> PlainVerbs::begin(const Layout& layout, uint64_t most_a_work, uint32_t slot) {
  std::array<ibv_send_wr, kMostAPost> works;
  std::array<ibv_sge, kMostAPost> pieces;
  size_t count = 0;
  const auto post = [&]() -> Result<void> {
    if (auto room = make_room(count); !room) return room;
    posted_[slot] += count;
    return end_->post(std::span(works).first(std::exchange(count, 0)), slot);
  };
  for (uint32_t i = 0; i < layout.batch; ++i) {
    for (uint64_t done = 0; done < layout.piece; ++count) {
      if (count == most_a_post_) {
        if (auto posted = post(); !posted) return posted;
      }
      const uint64_t bytes = std::min(layout.piece - done, most_a_work);
      pieces[count] = end_->piece(layout.offset(slot, i) + done, static_cast<uint32_t>(bytes));
      works[count] = end_->work(opcode_, &pieces[count]);
      done += bytes;
    }
  }
  if (tells_) {
    answer_[slot] = ++told_;
    works[count - 1].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    works[count - 1].imm_data = htonl(kMessage);
  }
  return post();
}

// Messages without bytes.
Result<void> PlainVerbs::tell(uint32_t immediate, uint64_t times) {
  std::array<ibv_send_wr, kMostAPost> works;
  ibv_sge nothing = end_->piece(0, 0);
  works.fill(end_->work(IBV_WR_RDMA_WRITE_WITH_IMM, &nothing));
  for (ibv_send_wr& work : works) work.imm_data = htonl(immediate);
  while (times > 0) {
    const uint64_t count = std::min<uint64_t>(times, most_a_post_);
    if (auto room = make_room(count); !room) return room;
    if (auto posted = end_->post(std::span(works).first(count), kOfNoSlot); !posted) return posted;
    times -= count;
  }
  return {};
}

Result<void> PlainVerbs::make_room(size_t works) {
  return wait_until([&] { return end_->unfinished() + works <= BareEnd::kSends; });
}

// How much has happened.
Result<size_t> PlainVerbs::look() {
  std::array<BareEnd::Event, 32> events;
  auto count = end_->poll(events);
  if (!count) return count;
  for (const BareEnd::Event& event : std::span(events).first(*count)) {
    if (event.arrived) {
      ++(event.number == kEnd ? ends_ : heard_);
    } else if (event.number != kOfNoSlot) {
      posted_[event.number] -= event.works;
    }
  }
  return count;
}

template <typename Condition>
Result<void> PlainVerbs::wait_until(Condition condition) {
  uint64_t since_ns = steady_now_ns();
  for (bool armed = false;;) {
    const auto happened = look();
    if (!happened) return fail(happened.error());
    if (condition()) return {};
    const uint64_t now_ns = steady_now_ns();
    if (*happened > 0) {
      since_ns = now_ns;
      armed = false;
    }
    if (now_ns - since_ns < kSpinNs) continue;
    if (now_ns - since_ns >= kSilenceMs * uint64_t{1'000'000}) {
      return fail(Status::kTimeout, "the plain loop is silent for 60 s");
    }
    if (armed) {
      end_->sleep(kSilenceMs);
    } else if (auto asked = end_->arm(); !asked) {
      return asked;
    }
    armed = !armed;
  }
}

Result<void> PlainVerbs::end() {
  if (tells_) {
    if (auto told = tell(kEnd, 1); !told) return told;
  }
  return wait_until([this] { return end_->unfinished() == 0; });
}

Result<void> PlainVerbs::serve() {
  if (!tells_) return {};
  for (const uint64_t ends = ends_ + 1;;) {
    auto waited = wait_until([&] { return heard_ > told_ || ends_ == ends; });
    if (!waited || heard_ == told_) return waited;
    const uint64_t owed = heard_ - std::exchange(told_, heard_);
    if (auto told = tell(kMessage, owed); !told) return told;
  }
}

}  // namespace slime::perf::p2p
