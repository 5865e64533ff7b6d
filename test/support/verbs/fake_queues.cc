// The completion queues of FakeVerbs, and the channels of their events.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "test/support/verbs/fake_verbs.h"

namespace slime::test {

ibv_comp_channel* FakeVerbs::create_events(ibv_context* context) {
  auto events = std::make_unique<Events>();
  events->base.context = context;
  events->base.fd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  ibv_comp_channel* const made = &events->base;
  events_[made] = std::move(events);
  return made;
}

int FakeVerbs::destroy_events(ibv_comp_channel* channel) {
  if (events_.at(channel)->base.refcnt > 0) {
    complain("a channel of events ends before its completion queues");
    return EBUSY;
  }
  (void)::close(channel->fd);
  events_.erase(channel);
  return 0;
}

int FakeVerbs::take_event(ibv_comp_channel* channel, ibv_cq** queue) {
  eventfd_t one;
  if (::eventfd_read(channel->fd, &one) != 0) return -1;
  auto& raised = events_.at(channel)->raised;
  *queue = raised.front();
  raised.pop_front();
  ++queues_.at(*queue)->unacknowledged;
  return 0;
}

ibv_cq* FakeVerbs::create_queue(ibv_context* context, int entries, ibv_comp_channel* channel) {
  if (entries < 1 || entries > most_completions_) {
    errno = EINVAL;
    return nullptr;
  }
  auto queue = std::make_unique<Queue>();
  queue->base.context = context;
  queue->base.channel = channel;
  queue->base.cqe = entries;
  if (channel != nullptr) ++channel->refcnt;
  ibv_cq* const made = &queue->base;
  queues_[made] = std::move(queue);
  return made;
}

int FakeVerbs::resize_queue(ibv_cq* queue, int entries) {
  if (resize_code_ != 0) return resize_code_;
  if (entries > most_completions_ ||
      queues_.at(queue)->completions.size() > static_cast<size_t>(entries)) {
    return EINVAL;
  }
  queue->cqe = entries;
  return 0;
}

int FakeVerbs::destroy_queue(ibv_cq* queue) {
  if (queues_.at(queue)->users > 0) {
    complain("a completion queue ends before its queue pairs");
    return EBUSY;
  }
  if (queues_.at(queue)->unacknowledged > 0) {
    complain("a completion queue ends before its events are acknowledged");
    return EBUSY;
  }
  if (queue->channel != nullptr) {
    --queue->channel->refcnt;
    eventfd_t one;
    for (size_t left = std::erase(events_.at(queue->channel)->raised, queue); left > 0; --left) {
      (void)::eventfd_read(queue->channel->fd, &one);
    }
  }
  queues_.erase(queue);
  return 0;
}

int FakeVerbs::request_event(ibv_cq* queue) {
  if (event_request_code_ == 0) queues_.at(queue)->announces = true;
  return event_request_code_;
}

int FakeVerbs::poll_queue(ibv_cq* queue, int room, ibv_wc* to) {
  auto& completions = queues_.at(queue)->completions;
  ++device_of(queue->context).counts.polls;
  if (poll_code_ != 0) {
    errno = poll_code_;
    return -1;
  }
  int count = 0;
  for (; count < room && !completions.empty(); ++count) {
    to[count] = completions.front();
    completions.pop_front();
    const bool is_send = (to[count].opcode & IBV_WC_RECV) == 0;
    const auto pair = pairs_.find(to[count].qp_num);
    if (is_send && pair != pairs_.end()) {
      pair->second->sends_held -= to[count].byte_len;  // see complete_send
      to[count].byte_len = 0;
    }
  }
  return count;
}

void FakeVerbs::complete(ibv_cq* queue, const ibv_wc& completion) {
  Queue& to = *queues_.at(queue);
  if (to.completions.size() == static_cast<size_t>(to.base.cqe)) {
    complain("a completion queue is overrun");
  }
  to.completions.push_back(completion);
  if (queue->channel == nullptr || !std::exchange(to.announces, false)) return;
  events_.at(queue->channel)->raised.push_back(queue);
  (void)::eventfd_write(queue->channel->fd, 1);
}

}  // namespace slime::test
