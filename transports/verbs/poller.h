// The poller of a verbs rail: completion queues that its channels share, one as long as the NIC
// lets it grow, and the channel of their events, on which a thread may sleep.
//
// A thread that sleeps wakes at the first completion of any channel of the queues, also of one that
// is not armed: queues announce completions, and not those of a channel. Threads: any; a mutex
// guards the list of queues.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "transports/poller.h"
#include "transports/verbs/completions.h"

namespace slime::verbs {

class VerbsPoller final : public Poller {
 public:
  static Result<std::unique_ptr<Poller>> open(const Rail& rail, const std::shared_ptr<Nic>& nic);

  size_t poll(std::span<uint64_t> tags) override;
  int descriptor() const override { return events_->fd; }
  bool prepare_to_sleep() override;

  // For a channel that may have so many work requests posted.
  Result<Completions> add(uint32_t requests, uint64_t tag);

 private:
  uint64_t places_of_next() const;
  VerbsPoller(const Rail& rail, std::shared_ptr<Nic> nic, std::shared_ptr<ibv_comp_channel> events)
      : Poller(rail), nic_(std::move(nic)), events_(std::move(events)) {}

  const std::shared_ptr<Nic> nic_;
  const std::shared_ptr<ibv_comp_channel> events_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<SharedQueue>> queues_;
  size_t first_ = 0;  // that has the next turn, modulo their number
};

}  // namespace slime::verbs
