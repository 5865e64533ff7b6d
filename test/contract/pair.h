// The two ends of one channel, moved and watched together.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "test/contract/transfer.h"
#include "test/contract/world.h"
#include "transports/rail.h"

namespace slime::contract {

// Long: for hangs only. Nothing in a test depends on how fast the machine is.
inline constexpr std::chrono::seconds kHangGuard{60};

struct End {
  Rail* rail = nullptr;
  std::unique_ptr<Channel> channel;
  Status status = Status::kOk;  // the first that was not kOk, of post or poll
  std::vector<Transfer*> outgoing, incoming;
};

struct PairOptions {
  bool confirm_delivery = false;  // both ends
  bool left_active = true;
  bool same_rail = false;  // both ends on the left rail
  bool some_unconfirmed = false;
  bool left_first = true;  // ChannelOptions::first
  uint32_t depth = 0;      // ChannelOptions::depth
  Poller* left_poller = nullptr;
  Poller* right_poller = nullptr;
  uint64_t tag = 0;  // at both ends
};

struct Pace {
  size_t batch = 64;  // works offered per post
  size_t done = 16;   // room per poll
};

class Pair {
 public:
  Pair(World& world, const PairOptions& options);
  ~Pair();  // the channels before the memory that they use

  End left, right;

  bool connect();  // both ends; false: one failed, or it hung
  // A transfer that `from` posts, owned by the pair.
  Transfer& transfer(End& from, const std::vector<uint32_t>& lengths,
                     Opcode opcode = Opcode::kWriteWithImmediate);
  // Posts and polls at both ends until all transfers are complete. False: an end failed, or
  // nothing moved any more.
  bool run(const Pace& pace = {});
  // One post of what is not posted yet, or one poll. Return whether anything moved.
  bool post(End& end, size_t batch);
  bool poll(End& end, size_t room);
  // Posts and polls at this end alone until nothing has moved for many rounds.
  void run_alone(End& end);
  // Polls both ends until this one fails. False: it did not.
  bool await_failure(End& end);
  // Polls both ends until this work of the transfer has arrived, or has ended (kSent or kRefused).
  // False: an end failed, or it hung.
  bool await_arrival(const Transfer& transfer, size_t index) {
    return await([&] { return transfer.has_arrived(index); });
  }
  bool await_end(const Transfer& transfer, size_t index) {
    return await([&] { return transfer.was_sent(index) || transfer.was_refused(index); });
  }
  // Polls both ends for as long as anything moves, and a while longer.
  void settle();

  End& first() { return options_.left_first ? left : right; }  // ChannelOptions::first
  // A bad work of this kind is refused, and costs nothing else; otherwise the channel.
  bool goes_on_after_refusal(Opcode opcode) const {
    const bool answered = options_.confirm_delivery || opcode != Opcode::kWriteWithImmediate;
    return answered && left.rail->caps().goes_on_after_refusal;
  }
  End& other(const End& end) { return &end == &left ? right : left; }
  bool complete() const;
  // Of the pair and all its transfers, and of the backend.
  std::vector<std::string> problems() const;
  World& world() { return world_; }

 private:
  template <typename Condition>
  bool until(Condition condition);
  bool await(const std::function<bool()>& condition);
  bool poll_both();  // each that still has a channel
  void dispatch(End& end, const Done& done);

  World& world_;
  const PairOptions options_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

}  // namespace slime::contract
