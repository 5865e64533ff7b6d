#include "test/contract/pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace slime::contract {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kQuiet{20};  // of settle(), on rails that live in real time
constexpr int kEndless = 20'000;                 // polls of settle() that find something
constexpr int kIdleRounds = 100;                 // of a world where nothing moves any more
constexpr int kIdleAlone = 2'000;                // of one end, while the other does nothing

std::unique_ptr<Channel> open_channel(Rail& rail, const ChannelOptions& options) {
  auto channel = rail.open_channel(options);
  EXPECT_TRUE(channel) << channel.error().what;
  return channel ? std::move(*channel) : nullptr;
}

}  // namespace

Pair::Pair(World& world, const PairOptions& options) : world_(world), options_(options) {
  left.rail = &world.left();
  right.rail = options.same_rail ? &world.left() : &world.right();
  const auto open = [&](End& end, bool active, bool first, Poller* poller) {
    end.channel = open_channel(*end.rail, {.active = active,
                                           .confirm_delivery = options.confirm_delivery,
                                           .first = first,
                                           .depth = options.depth,
                                           .poller = poller,
                                           .tag = options.tag});
  };
  open(left, options.left_active, options.left_first, options.left_poller);
  open(right, !options.left_active, !options.left_first, options.right_poller);
}

Pair::~Pair() {
  left.channel.reset();
  right.channel.reset();
}

// Calls `condition` until it is true; gives up when nothing moved for a while.
template <typename Condition>
bool Pair::until(Condition condition) {
  auto give_up = Clock::now() + kHangGuard;
  for (int idle = 0; idle < kIdleRounds; ++idle) {
    bool moved = false;
    if (condition(&moved)) return true;
    if (moved) give_up = Clock::now() + kHangGuard;
    if (world_.pump() || moved) idle = 0;
    if (Clock::now() > give_up) return false;
  }
  return false;
}

bool Pair::connect() {
  End& begins = first();
  bool failed = false;
  until([&](bool*) {
    for (End* end : {&begins, &other(begins)}) {
      end->status = end->channel->connect(other(*end).channel->address());
    }
    const auto wrong = [](Status s) { return s != Status::kOk && s != Status::kAgain; };
    failed = wrong(left.status) || wrong(right.status);
    return failed || (left.status == Status::kOk && right.status == Status::kOk);
  });
  return left.status == Status::kOk && right.status == Status::kOk;
}

Transfer& Pair::transfer(End& from, const std::vector<uint32_t>& lengths, Opcode opcode) {
  End& to = other(from);
  const TransferOptions options{options_.confirm_delivery,
                                static_cast<uint32_t>(transfers_.size()) + 1,
                                options_.some_unconfirmed, opcode};
  transfers_.push_back(std::make_unique<Transfer>(*from.rail, *to.rail, lengths, options));
  Transfer* transfer = transfers_.back().get();
  from.outgoing.push_back(transfer);
  to.incoming.push_back(transfer);
  return *transfer;
}

bool Pair::post(End& end, size_t batch) {
  if (end.status != Status::kOk) return false;
  for (Transfer* transfer : end.outgoing) {
    const auto works = transfer->unposted();
    if (works.empty()) continue;
    size_t taken = 0;
    end.status = end.channel->post(works.first(std::min(batch, works.size())), &taken);
    transfer->took(taken);
    if (taken > 0) return true;  // reads may find no place where writes do
  }
  return false;
}

bool Pair::poll(End& end, size_t room) {
  std::vector<Done> done(room);
  size_t count = 0;
  const Status status = end.channel->poll(done, &count);
  if (end.status == Status::kOk) end.status = status;
  EXPECT_LE(count, room);
  EXPECT_TRUE(status == Status::kOk || count == 0);
  for (size_t i = 0; i < std::min(count, room); ++i) dispatch(end, done[i]);
  return count > 0;
}

void Pair::dispatch(End& end, const Done& done) {
  const bool ours = done.kind != Done::Kind::kArrived;
  auto& transfers = ours ? end.outgoing : end.incoming;
  ASSERT_FALSE(transfers.empty()) << "a completion where there was no work";
  Transfer* found = transfers.front();
  for (Transfer* transfer : transfers) {
    const bool fits =
        ours ? transfer->knows_cookie(done.cookie) : transfer->knows_immediate(done.immediate);
    if (fits) found = transfer;
  }
  switch (done.kind) {
    case Done::Kind::kSent:
      return found->sent(done);
    case Done::Kind::kRefused:
      return found->refused(done);
    case Done::Kind::kArrived:
      return found->arrived(done);
  }
}

bool Pair::complete() const {
  return std::ranges::all_of(transfers_, [](const auto& t) { return t->complete(); });
}

bool Pair::run(const Pace& pace) {
  const bool ended = until([&](bool* moved) {
    for (End* end : {&left, &right}) {
      const bool posted = post(*end, pace.batch);
      *moved |= poll(*end, pace.done) || posted;
    }
    return complete() || left.status != Status::kOk || right.status != Status::kOk;
  });
  return ended && complete();
}

void Pair::run_alone(End& end) {
  for (int idle = 0; idle < kIdleAlone; ++idle) {
    const bool posted = post(end, 8);
    if (poll(end, 8) || posted) idle = 0;
    world_.pump();
  }
}

bool Pair::await_failure(End& end) {
  return until([&](bool* moved) {
    *moved = poll_both();
    return end.status != Status::kOk;
  });
}

bool Pair::poll_both() {
  bool moved = false;
  for (End* each : {&left, &right}) {
    if (each->channel != nullptr) moved |= poll(*each, 16);
  }
  return moved;
}

bool Pair::await(const std::function<bool()>& condition) {
  until([&](bool* moved) {
    *moved = poll_both();
    return condition() || left.status != Status::kOk || right.status != Status::kOk;
  });
  return condition();
}

// Who was held up for longer than that has to look once more before it may say that all is quiet.
void Pair::settle() {
  auto quiet = Clock::now() + kQuiet;
  int moves_left = kEndless, rounds_at_rest = 0;
  until([&](bool* moved) {
    const bool late = world_.properties().in_real_time && Clock::now() > quiet;
    *moved = poll_both();
    if (*moved) quiet = Clock::now() + kQuiet;
    rounds_at_rest = !*moved && world_.is_at_rest() ? rounds_at_rest + 1 : 0;
    const bool over = late || rounds_at_rest == kIdleRounds;
    return (over && !*moved) || (*moved && --moves_left == 0);
  });
}

std::vector<std::string> Pair::problems() const {
  std::vector<std::string> problems;
  for (const auto& transfer : transfers_) {
    for (std::string& problem : transfer->problems()) problems.push_back(std::move(problem));
  }
  if (world_.violations() != 0) problems.emplace_back("the backend counted violations");
  return problems;
}

}  // namespace slime::contract
