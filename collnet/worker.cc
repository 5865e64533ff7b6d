#include "collnet/worker.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace slime {
namespace {

Error bad(const char* what) {
  return make_error(Status::kInvalid, 0, "in-network allreduce: %s", what);
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::open(const WorkerOptions& options, Datagrams& network) {
  if (options.slots == 0 || options.slots > 65536) return fail(bad("a job has 1 to 65536 slots"));
  if (options.lanes < kLeastLanes || options.lanes > sap::kMaxLanes) {
    return fail(bad("a packet has 16 to 2048 lanes (32-bit words)"));
  }
  if (options.contributors == 0 || options.contributors > number::kMaxWorkers ||
      options.child >= sap::kMaxChildren || options.shards == 0 ||
      options.shards > sap::kMaxShards || options.rails == 0 || options.rails > sap::kMaxRails) {
    return fail(bad("a job of this shape cannot be"));
  }
  if (!sap::suffice(options.formats)) {
    return fail(bad("the formats of a job include i32 and u32, and only those of SAP/2"));
  }
  return std::unique_ptr<Worker>(new Worker(options, network));
}

Worker::Worker(const WorkerOptions& options, Datagrams& network)
    : options_(options),
      network_(network),
      round_trip_(options.round_trip),
      slots_(options.slots),
      packet_stride_((sap::kHeaderBytes + 4 * size_t{options.lanes} + 63) / 64 * 64),
      flags_stride_(4 * size_t{Payload::flag_lanes_for(Payload::most_floats(options.lanes))}),
      packets_(std::make_unique<std::byte[]>(options.slots * packet_stride_)),
      flags_(std::make_unique<std::byte[]>(options.slots * flags_stride_)),
      earlier_(std::make_unique<std::byte[]>(options.slots * 4 * size_t{options.lanes})),
      scratch_(std::make_unique<std::byte[]>(4 * size_t{options.lanes})),
      kept_(std::make_unique<std::byte[]>(options.slots * packet_stride_)),
      job_(options.job),
      generation_(options.generation),
      token_(options.token),
      child_(options.child),
      shards_(options.shards),
      rails_(options.rails),
      attention_(options.silent_ns / 4) {
  for (uint32_t i = 0; i < options.slots; ++i) slots_[i].chunk = i;
}

Payload Worker::payload_of(const Operation& operation) const {
  return Payload(operation.type, operation.op, options_.lanes, options_.contributors,
                 options_.half_bits, options_.formats);
}

uint64_t Worker::elements_per_packet(const Operation& operation) const {
  return payload_of(operation).elements_per_packet();
}

Status Worker::start(const Operation& operation, uint64_t now_ns, uint64_t* ticket) {
  if (failed_) return failure_.status;
  if (!Payload::supports(operation.type, operation.op)) return Status::kUnsupported;
  if (room() == 0) return Status::kAgain;
  attention_.look(now_ns);
  Running& fresh = running(tail_);
  fresh.operation = operation;
  fresh.payload = payload_of(operation);
  const uint64_t per_packet = fresh.payload.elements_per_packet();
  fresh.first_chunk = next_chunk_;
  fresh.chunks = fresh.left = (operation.count + per_packet - 1) / per_packet;
  next_chunk_ += fresh.chunks;
  *ticket = tail_++;
  ++counters_.operations;
  retire();  // there may be nothing to do
  const uint64_t end = fresh.first_chunk + std::min<uint64_t>(fresh.chunks, options_.slots);
  for (uint64_t chunk = fresh.first_chunk; chunk < end; ++chunk) {
    const uint32_t index = sap::slot_of(chunk, options_.slots);
    if (slots_[index].chunk == chunk && !slots_[index].waiting) begin_round(index, now_ns);
  }
  return Status::kOk;
}

void Worker::retire() {
  while (head_ != tail_ && running(head_).left == 0) ++head_;
}

bool Worker::done(uint64_t ticket) const {
  return ticket < head_ || operations_[ticket % kMaxOperations].left == 0;
}

Worker::Running* Worker::operation_of(uint64_t chunk) {
  for (uint64_t ticket = head_; ticket != tail_; ++ticket) {
    Running& candidate = running(ticket);
    if (chunk - candidate.first_chunk < candidate.chunks) return &candidate;
  }
  return nullptr;
}

Worker::Piece Worker::piece_of(const Running& running, uint64_t chunk) const {
  const uint64_t per_packet = running.payload.elements_per_packet();
  const uint64_t first = (chunk - running.first_chunk) * per_packet;
  const size_t at = first * number::element_bytes(running.operation.type);
  return {.from = static_cast<const std::byte*>(running.operation.send) + at,
          .to = static_cast<std::byte*>(running.operation.receive) + at,
          .count = static_cast<uint32_t>(std::min(per_packet, running.operation.count - first))};
}

void Worker::on_datagram(std::span<const std::byte> datagram, uint64_t now_ns) {
  attention_.look(now_ns);
  sap::Header header;
  const bool whole = !failed_ && sap::decode(datagram, &header) == sap::Fault::kNone;
  if (!whole || header.job != job_ || header.generation != generation_) {
    ++counters_.foreign;
    return;
  }
  if (header.token != token_) {
    ++counters_.wrong_token;
    return;
  }
  if (header.slot >= options_.slots) {
    ++counters_.foreign;
    return;
  }
  const std::span<const std::byte> payload = datagram.subspan(sap::kHeaderBytes);
  const bool by_peer = header.flags & sap::flag::kFallback;
  if (by_peer && header.type == sap::Type::kQuery) return answer_peer(header);
  if (paused_) return;
  if (by_peer && header.type == sap::Type::kResultAgain) {
    if (slots_[header.slot].holder != kNobody) on_result(header, payload, now_ns);
    return;
  }
  if (header.type == sap::Type::kReject) {
    return on_reject(header, sap::wire::get32(payload.data()));
  }
  heard_on(rail_of(header.slot));
  switch (header.type) {
    case sap::Type::kResult:
    case sap::Type::kResultAgain:
      return on_result(header, payload, now_ns);
    case sap::Type::kStatus:
      return on_status(header, sap::wire::get32(payload.data()), now_ns);
    default:
      ++counters_.foreign;
  }
}

void Worker::poll(uint64_t now_ns) {
  attention_.look(now_ns);
  if (!failed_ && !paused_ && now_ns >= next_check_ns_) check_timers(now_ns);
}

std::optional<std::string> Worker::take_suspicion() { return std::exchange(suspicion_, {}); }

}  // namespace slime
