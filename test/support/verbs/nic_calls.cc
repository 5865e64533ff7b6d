#include "test/support/verbs/nic_calls.h"

#include <atomic>
#include <map>

namespace slime::test {
namespace {

struct Counted {
  decltype(ibv_context_ops::poll_cq) poll_cq = nullptr;
  decltype(ibv_context_ops::post_recv) post_recv = nullptr;
  std::atomic<uint64_t> polls{0}, receives{0}, arrivals{0};
};

std::map<const ibv_context*, Counted>& all() {
  static std::map<const ibv_context*, Counted> contexts;
  return contexts;
}
decltype(verbs::Symbols::open_device) open_uncounted = nullptr;

int poll_cq(ibv_cq* queue, int room, ibv_wc* completions) {
  Counted& counted = all().at(queue->context);
  ++counted.polls;
  const int count = counted.poll_cq(queue, room, completions);
  for (int i = 0; i < count; ++i) {  // of others the opcode is not set
    if (completions[i].status != IBV_WC_SUCCESS) continue;
    counted.arrivals += (completions[i].opcode & IBV_WC_RECV) != 0;
  }
  return count;
}

int post_recv(ibv_qp* pair, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  Counted& counted = all().at(pair->context);
  for (const ibv_recv_wr* one = requests; one != nullptr; one = one->next) ++counted.receives;
  return counted.post_recv(pair, requests, bad);
}

ibv_context* open_device(ibv_device* device) {
  ibv_context* const context = open_uncounted(device);
  if (context == nullptr) return nullptr;
  all().erase(context);  // an earlier one at this address, which was closed
  Counted& counted = all()[context];
  counted.poll_cq = context->ops.poll_cq;
  counted.post_recv = context->ops.post_recv;
  context->ops.poll_cq = poll_cq;
  context->ops.post_recv = post_recv;
  return context;
}

}  // namespace

verbs::Symbols counting(const verbs::Symbols& verbs) {
  open_uncounted = verbs.open_device;
  verbs::Symbols counted = verbs;
  counted.open_device = open_device;
  return counted;
}

NicCalls nic_calls(const ibv_context* context) {
  const Counted& counted = all().at(context);
  return {counted.polls, counted.receives, counted.arrivals};
}

}  // namespace slime::test
