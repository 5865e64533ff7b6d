#include "bench/verbs/counts.h"

#include <fstream>

namespace slime::bench {
namespace {

decltype(ibv_context_ops::poll_cq) original_poll;
decltype(ibv_context_ops::post_send) original_post;
uint64_t doorbells, completions;

int counting_poll(ibv_cq* queue, int room, ibv_wc* done) {
  const int count = original_poll(queue, room, done);
  for (int i = 0; i < count; ++i) completions += (done[i].opcode & IBV_WC_RECV) == 0;
  return count;
}

int counting_post(ibv_qp* pair, ibv_send_wr* first, ibv_send_wr** refused) {
  ++doorbells;
  return original_post(pair, first, refused);
}

// 0 where the driver has no such counter.
uint64_t read(const std::string& device, const char* name) {
  uint64_t value = 0;
  std::ifstream("/sys/class/infiniband/" + device + "/ports/1/hw_counters/" + name) >> value;
  return value;
}

}  // namespace

void count_calls(ibv_context* sender) {
  original_poll = sender->ops.poll_cq;
  original_post = sender->ops.post_send;
  sender->ops.poll_cq = counting_poll;
  sender->ops.post_send = counting_post;
}

Counts look(const std::string& from, const std::string& to) {
  Counts now;
  for (const std::string& device : {from, to}) {
    now.packets += read(device, "sent_pkts");
    // The names of Soft-RoCE (drivers/infiniband/sw/rxe/rxe_hw_counters.c).
    for (const char* name : {"rcvd_rnr_err", "send_rnr_err", "rcvd_seq_err", "out_of_seq_request",
                             "completer_retry_err"}) {
      now.retries += read(device, name);
    }
  }
  now.doorbells = doorbells;
  now.completions = completions;
  return now;
}

}  // namespace slime::bench
