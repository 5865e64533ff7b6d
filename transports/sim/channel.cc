// The data path of a simulated channel, as its owner calls it.
#include <algorithm>

#include "transports/sim/sim_rail.h"

namespace slime::sim {

Status Channel::post(std::span<const Work> works, size_t* taken) {
  *taken = 0;
  network_.run_due();
  if (end_.noticed) return end_.error.status;
  if (!end_.connected) {
    ++network_.violations_.bad_calls;
    network_.fail(end_, true,
                  make_error(Status::kInvalid, 0, "sim rail %s: posted before it was connected",
                             end_.rail->caps().name.c_str()));
    return end_.error.status;
  }
  const RailCaps& caps = end_.rail->caps();
  const RailModel& model = end_.rail->model();
  const uint32_t room = caps.send_queue_depth - std::min(end_.outstanding, caps.send_queue_depth);
  const size_t count = std::min<size_t>({works.size(), room, caps.max_batch});
  if (works.empty()) return Status::kOk;
  if (count == 0) {
    counters.futile_posts.add();
    network_.charge(model.refused_ns);
    return Status::kOk;
  }
  counters.doorbells.add();
  network_.charge(model.doorbell_ns + count * model.post_ns);
  if (end_.noticed) return end_.error.status;  // it failed while the processor was at it
  for (; *taken < count; ++*taken) {
    if (!network_.launch(end_, works[*taken])) return end_.error.status;
  }
  return Status::kOk;
}

size_t Channel::collect(std::span<Done> done) {
  size_t count = 0;
  const bool sent_lost = end_.fenced || (end_.noticed && end_.abrupt);
  while (count < done.size() && !end_.sent.empty() && !sent_lost) {
    const Sent sent = end_.sent.front();
    end_.sent.pop();
    if (!sent.repeat) --end_.outstanding;
    done[count++] = {Done::Kind::kSent, 0, 0, sent.cookie};
  }
  while (count < done.size() && !end_.arrivals.empty()) {
    if (network_.report(end_, &done[count])) ++count;
  }
  return count;
}

Status Channel::poll(std::span<Done> done, size_t* count) {
  network_.charge(end_.rail->model().poll_ns);
  counters.polls.add();
  *count = end_.told && !end_.fenced ? 0 : collect(done);
  if (*count > 0) return Status::kOk;
  counters.empty_polls.add();
  if (!end_.noticed || end_.fenced) return Status::kOk;
  // What had arrived comes first; without room for it, the failure has to wait.
  if (!end_.told && done.empty() && !end_.arrivals.empty()) return Status::kOk;
  end_.told = true;
  return end_.error.status;
}

}  // namespace slime::sim
