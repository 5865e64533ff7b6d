#include "transports/verbs/closing_pairs.h"

#include <algorithm>
#include <utility>

namespace slime::verbs {
namespace {

constexpr uint64_t kCloseId = UINT64_MAX;  // wr_id; no WorkId looks so

bool post_close(const QueuePair& pair) {
  ibv_send_wr request = {};
  request.wr_id = kCloseId;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  return pair.post(&request) == 0;
}

}  // namespace

ClosingPairs::ClosingPairs(CompletionQueue completions, std::unique_ptr<Registered<Hellos>> hellos,
                           std::vector<QueuePair> pairs)
    : completions_(std::move(completions)), hellos_(std::move(hellos)), pairs_(std::move(pairs)) {
  left_ = static_cast<size_t>(std::ranges::count_if(pairs_, post_close));
}

bool ClosingPairs::is_done() {
  const int polled = take_all(completions_.get(), [this](const ibv_wc& completion) {
    left_ -= completion.wr_id == kCloseId;
  });
  return left_ == 0 || polled < 0;
}

}  // namespace slime::verbs
