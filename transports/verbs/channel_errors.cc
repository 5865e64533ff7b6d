#include "transports/verbs/channel.h"

#include <cinttypes>

#include "transports/channel_common.h"
#include "transports/verbs/lanes.h"

namespace slime::verbs {
namespace {

const char* advice(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "the peer's NIC does not answer: see whether that process and host live, then check "
             "cable, switch and, with RoCE, GID index and MTU on the way (NCCL_IB_TIMEOUT and "
             "NCCL_IB_RETRY_CNT say how long is waited)";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the peer has no receive posted: its process does not look at its rails";
    case IBV_WC_REM_ACCESS_ERR:
      return "the peer's NIC refused the address or key: the peer has closed, deregistered that "
             "memory, or registered it without that right; look at its log first";
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return "the peer's NIC refused the work; look at its log and at dmesg there";
    case IBV_WC_LOC_PROT_ERR:
      return "the memory was deregistered, or unmapped, while it was in use";
    case IBV_WC_LOC_QP_OP_ERR:
      return "this port went down or lost its address, or the queue pair is damaged; see `rdma "
             "link` and dmesg";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair had failed before; look for an earlier message";
    default:
      return "see dmesg on both hosts";
  }
}

// The status that NCCL gets: it depends on whose fault it is.
Status status_of(ibv_wc_status status, WorkId::Kind kind) {
  switch (status) {
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_LEN_ERR:
      return kind == WorkId::Kind::kReceive ? Status::kRemote : Status::kInvalid;
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_FATAL_ERR:
      return Status::kSystem;
    default:
      return Status::kRemote;
  }
}

}  // namespace

Error completion_error(const Nic& nic, const ibv_wc& completion, uint64_t undelivered_works) {
  return make_error(status_of(completion.status, WorkId::unpack(completion.wr_id).kind),
                    completion.status, "%s (status %d, vendor 0x%x)%s; %s",
                    nic.verbs().wc_status_str(completion.status), completion.status,
                    completion.vendor_err, undelivered(undelivered_works).c_str(),
                    advice(completion.status));
}

Error work_error(const RailCaps& rail, const Work& work) {
  return make_error(Status::kInvalid, 0,
                    "a work of %u bytes at %p is not inside memory registered with key "
                    "0x%" PRIx64 ", or longer than %" PRIu64 ", or its remote key 0x%" PRIx64
                    " has more than 32 bits; nothing was sent",
                    work.length, static_cast<const void*>(work.local), work.local_key,
                    rail.max_message_bytes, work.remote_key);
}

}  // namespace slime::verbs
