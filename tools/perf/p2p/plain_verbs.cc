#include "tools/perf/p2p/plain_verbs.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "tools/common/bytes.h"
#include "transports/verbs/rail.h"

namespace slime::perf::p2p {
namespace {

using nlohmann::json;

constexpr uint64_t kWays[] = {1 << 30, 1 << 20, 64 << 10};  // bytes of a work, at most
constexpr uint32_t kMessage = 0, kEnd = 1;                  // immediates
constexpr uint32_t kTold = UINT32_MAX;                      // works of no slot

bool is_one_sided(Operation operation) {
  return operation == Operation::kRead || operation == Operation::kWrite;
}

ibv_wr_opcode opcode_of(Operation operation) {
  if (operation == Operation::kRead) return IBV_WR_RDMA_READ;
  return is_one_sided(operation) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
}

}  // namespace

Result<std::unique_ptr<PlainLoop>> PlainVerbs::open(bool, std::span<std::byte> memory,
                                                    std::unique_ptr<Devices> devices) {
  Rail* const rail = devices->device(0)->rails().front();
  auto port = static_cast<verbs::VerbsRail*>(rail)->port();
  if (!port) return fail(std::move(port.error()));
  auto end = BareEnd::open(std::move(*port), memory);
  if (!end) return fail(std::move(end.error()));
  const Settings settings = devices->settings();
  return std::unique_ptr<PlainLoop>(
      new PlainVerbs(std::move(devices), std::move(*end), settings, rail->caps().max_batch));
}

json PlainVerbs::name() const {
  const BareEnd::Name name = end_->name();
  return tools::to_hex(std::as_bytes(std::span(&name, 1)));
}

Result<void> PlainVerbs::connect(const json& other) {
  BareEnd::Name name;
  if (!tools::from_hex(other.get<std::string>(), std::as_writable_bytes(std::span(&name, 1)))) {
    return fail(Status::kRemote, "the other rank's plain loop is not one of verbs");
  }
  return end_->connect(name, settings_);
}

std::span<const uint64_t> PlainVerbs::ways() const { return kWays; }

Requests PlainVerbs::requests(const Layout& layout, Operation operation, uint64_t most_a_work) {
  posted_.assign(layout.slots, 0);
  answer_.assign(layout.slots, 0);
  const auto begin = [this, layout, operation, most_a_work](uint32_t slot) -> Result<void> {
    std::vector<Part> parts;
    for (uint32_t i = 0; i < layout.batch; ++i) {
      for (uint64_t done = 0; done < layout.piece; done += parts.back().bytes) {
        const uint64_t bytes = std::min(layout.piece - done, most_a_work);
        parts.push_back({layout.offset(slot, i) + done, static_cast<uint32_t>(bytes)});
      }
    }
    return this->begin(parts, opcode_of(operation), slot);
  };
  const auto wait = [this, operation](uint32_t slot) -> Result<void> {
    if (is_one_sided(operation)) return wait_until([&] { return posted_[slot] == 0; });
    return wait_until([&] { return heard_ >= answer_[slot]; });
  };
  return {begin, wait};
}

// The parts of a message but the last are plain writes.
Result<void> PlainVerbs::begin(const std::vector<Part>& parts, ibv_wr_opcode opcode,
                               uint32_t slot) {
  std::array<ibv_send_wr, BareEnd::kSends> works;
  std::array<ibv_sge, BareEnd::kSends> pieces;
  const bool is_message = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (is_message) answer_[slot] = ++told_;
  for (size_t next = 0; next < parts.size();) {
    const size_t most = std::min<size_t>(most_a_post_, parts.size() - next);
    const auto has_room = [&] { return end_->unfinished() + most <= BareEnd::kSends; };
    if (auto room = wait_until(has_room); !room) return room;
    for (size_t i = 0; i < most; ++i, ++next) {
      const bool is_last = next + 1 == parts.size();
      pieces[i] = end_->piece(parts[next].offset, parts[next].bytes);
      works[i] = end_->work(is_message && !is_last ? IBV_WR_RDMA_WRITE : opcode, &pieces[i]);
      works[i].imm_data = htonl(kMessage);
    }
    posted_[slot] += most;
    if (auto posted = end_->post(std::span(works).first(most), slot); !posted) return posted;
  }
  return {};
}

// Messages without bytes.
Result<void> PlainVerbs::tell(uint32_t immediate, uint32_t times) {
  std::array<ibv_send_wr, BareEnd::kSends> works;
  ibv_sge nothing = end_->piece(0, 0);
  while (times > 0) {
    const uint32_t most = std::min(times, most_a_post_);
    const auto has_room = [&] { return end_->unfinished() + most <= BareEnd::kSends; };
    if (auto room = wait_until(has_room); !room) return room;
    for (uint32_t i = 0; i < most; ++i) {
      works[i] = end_->work(IBV_WR_RDMA_WRITE_WITH_IMM, &nothing);
      works[i].imm_data = htonl(immediate);
    }
    if (auto posted = end_->post(std::span(works).first(most), kTold); !posted) return posted;
    times -= most;
  }
  return {};
}

Result<void> PlainVerbs::look() {
  std::array<BareEnd::Event, 32> events;
  const auto count = end_->poll(events);
  if (!count) return fail(count.error());
  for (const BareEnd::Event& event : std::span(events).first(*count)) {
    if (event.arrived) {
      ++(event.number == kEnd ? ends_ : heard_);
    } else if (event.number != kTold) {
      posted_[event.number] -= event.works;
    }
  }
  return {};
}

template <typename Condition>
Result<void> PlainVerbs::wait_until(Condition condition) {
  const uint64_t begin_ns = steady_now_ns();
  bool armed = false;
  while (true) {
    if (auto looked = look(); !looked) return looked;
    if (condition()) return {};
    const uint64_t waited_ns = steady_now_ns() - begin_ns;
    if (waited_ns < kSpinNs) continue;
    if (waited_ns > kSilenceMs * 1'000'000ull) {
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

Result<void> PlainVerbs::end(Operation operation) {
  const auto all_done = [this] { return end_->unfinished() == 0; };
  if (!is_one_sided(operation)) {
    if (auto told = tell(kEnd, 1); !told) return told;
  }
  return wait_until(all_done);
}

Result<void> PlainVerbs::serve(const Layout&, Operation operation) {
  if (is_one_sided(operation)) return {};
  const uint64_t ends = ends_ + 1;
  while (true) {
    if (auto waited = wait_until([&] { return heard_ > told_ || ends_ == ends; }); !waited) {
      return waited;
    }
    const uint64_t owed = heard_ - told_;
    if (owed == 0) return {};
    told_ = heard_;
    if (auto told = tell(kMessage, static_cast<uint32_t>(owed)); !told) return told;
  }
}

}  // namespace slime::perf::p2p
