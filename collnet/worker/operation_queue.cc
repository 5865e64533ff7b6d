#include "collnet/worker/operation_queue.h"

#include <algorithm>

namespace slime {

uint64_t OperationQueue::push(const Operation& operation, const Payload& payload) {
  const uint64_t per_packet = payload.elements_per_packet();
  const uint64_t chunks = (operation.count + per_packet - 1) / per_packet;
  operations_[tail_ % kMost] = {operation, payload, next_chunk_, chunks, chunks};
  next_chunk_ += chunks;
  const uint64_t ticket = tail_++;
  retire();  // an empty operation is done
  return ticket;
}

std::optional<Chunk> OperationQueue::chunk(uint64_t number) const {
  for (uint64_t ticket = head_; ticket != tail_; ++ticket) {
    const Running& running = operations_[ticket % kMost];
    const uint64_t index = number - running.first_chunk;
    if (index >= running.chunks) continue;
    const uint64_t per_packet = running.payload.elements_per_packet();
    const uint64_t first = index * per_packet;
    const size_t at = first * element_bytes(running.operation.type);
    return Chunk{
        .number = number,
        .ticket = ticket,
        .siblings = running.chunks,
        .payload = &running.payload,
        .from = static_cast<const std::byte*>(running.operation.send) + at,
        .to = static_cast<std::byte*>(running.operation.receive) + at,
        .count = static_cast<uint32_t>(std::min(per_packet, running.operation.count - first))};
  }
  return std::nullopt;
}

void OperationQueue::complete(const Chunk& chunk) {
  --operations_[chunk.ticket % kMost].left;
  retire();
}

void OperationQueue::retire() {
  while (head_ != tail_ && operations_[head_ % kMost].left == 0) ++head_;
}

}  // namespace slime
