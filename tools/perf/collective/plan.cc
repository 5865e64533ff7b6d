#include "tools/perf/collective/plan.h"

#include <algorithm>

namespace slime::perf {
namespace {

// Where messages begin and end: in the user's memory where it is registered.
bool is_direct(const Shape& shape) { return shape.direct && shape.protocol == Protocol::kSimple; }
Step sending(bool direct, bool store = false) {
  return {.send_from = direct ? Place::kInput : Place::kFifo, .store = store};
}
Step receiving(bool direct) {
  return {.receive_into = direct ? Place::kOutput : Place::kFifo, .store = !direct};
}

// Builds the flow of one channel of a ring. Offsets and counts are in elements until a step is
// written.
class Ring {
 public:
  Ring(const Shape& shape, const Geometry& geometry, int channel)
      : shape_(shape),
        direct_(is_direct(shape)),
        element_bytes_(size_of(shape.type)),
        chunk_(geometry.chunk_bytes / element_bytes_),
        ranks_(static_cast<size_t>(shape.ranks)) {
    flow_.geometry = geometry;
    flow_.channel = channel;
    flow_.send_peer = (shape.rank + 1) % shape.ranks;
    flow_.receive_peer = (shape.rank + shape.ranks - 1) % shape.ranks;
  }

  Flow build(size_t begin, size_t end) {
    if (shape_.collective == Collective::kAllReduce) {
      all_reduce(begin, end);
    } else if (shape_.collective == Collective::kBroadcast) {
      broadcast(begin, end);
    } else {
      all_gather_or_reduce_scatter(begin, end);
    }
    return std::move(flow_);
  }

 private:
  struct Block {
    size_t input, output, count;
  };

  // The slices of one chunk; empty slices are sent too.
  void emit(Step step, const Block& block) {
    const size_t slices = flow_.geometry.slices;
    size_t slice = block.count;
    if (flow_.geometry.protocol == Protocol::kSimple) {
      slice = std::max(div_up(block.count, 16 * slices) * 16,
                       flow_.geometry.slot_bytes / element_bytes_ / 32);
    }
    for (size_t i = 0, done = 0; i < slices; ++i) {
      const size_t part = std::min(slice, block.count - done);
      step.input_offset = (block.input + done) * element_bytes_;
      step.output_offset = (block.output + done) * element_bytes_;
      step.bytes = part * element_bytes_;
      flow_.steps.push_back(step);
      done += part;
    }
  }

  // The rank that is `back` places before us.
  size_t before(size_t back) const {
    return (static_cast<size_t>(shape_.rank) + ranks_ - back) % ranks_;
  }
  // A copy goes straight into the output where buffers are registered, and on from there.
  Step copying(bool forward) const {
    Step step = receiving(direct_);
    if (forward) step.send_from = step.receive_into;
    return step;
  }

  // `block_of(rank)` is the block that the rank owns. Every block goes round the ring once: it
  // starts at the rank after its owner and is complete at its owner.
  template <typename BlockOf>
  void reduce(BlockOf block_of, bool forward) {
    Step step = sending(direct_);
    emit(step, block_of(before(1)));
    step = {.receive_into = Place::kFifo, .send_from = Place::kFifo, .reduce = true};
    for (size_t back = 2; back < ranks_; ++back) emit(step, block_of(before(back)));
    step.divide = step.store = true;
    step.send_from = !forward ? Place::kNowhere : copying(true).send_from;
    emit(step, block_of(before(0)));
  }
  template <typename BlockOf>
  void gather(BlockOf block_of) {
    for (size_t back = 1; back < ranks_; ++back) {
      emit(copying(back + 1 < ranks_), block_of(before(back)));
    }
  }

  void all_reduce(size_t begin, size_t end) {
    size_t chunk = chunk_;
    for (size_t loop = begin; loop < end; loop += ranks_ * chunk_) {
      const size_t rest = end - loop;
      if (rest < ranks_ * chunk) {
        chunk = align_up(div_up(rest, ranks_), std::max<size_t>(1, 16 / element_bytes_));
      }
      const auto block_of = [=](size_t owner) -> Block {
        const size_t offset = std::min(owner * chunk, rest);
        return {loop + offset, loop + offset, std::min(chunk, rest - offset)};
      };
      reduce(block_of, true);
      gather(block_of);
    }
  }

  void all_gather_or_reduce_scatter(size_t begin, size_t end) {
    const bool gathers = shape_.collective == Collective::kAllGather;
    for (size_t start = begin; start < end; start += chunk_) {
      const size_t part = std::min(chunk_, end - start);
      const auto block_of = [=, this](size_t owner) -> Block {
        const size_t whole = owner * shape_.count + start;  // in the larger of the two buffers
        return gathers ? Block{start, whole, part} : Block{whole, start, part};
      };
      if (!gathers) {
        reduce(block_of, false);
        continue;
      }
      emit(sending(direct_, !shape_.in_place), block_of(before(0)));
      gather(block_of);
    }
  }

  void broadcast(size_t begin, size_t end) {
    const bool last = flow_.send_peer == shape_.root;
    const bool first = shape_.rank == shape_.root;
    if (first) flow_.receive_peer = -1;
    if (last) flow_.send_peer = -1;
    for (size_t start = begin; start < end; start += chunk_) {
      emit(first ? sending(direct_, !shape_.in_place) : copying(!last),
           {start, start, std::min(chunk_, end - start)});
    }
  }

  const Shape& shape_;
  const bool direct_;
  const size_t element_bytes_, chunk_, ranks_;
  Flow flow_;
};

std::vector<Flow> ring_plan(const Shape& shape, const BufferSizes& sizes) {
  const Geometry geometry = ring_geometry(shape.collective, shape.protocol, sizes);
  // Channels share the elements in parts that keep every line of 128 bytes whole.
  const size_t unit = 128 / size_of(shape.type);
  const size_t share = align_up(div_up(shape.count, static_cast<size_t>(shape.channels)), unit);
  std::vector<Flow> flows;
  for (int channel = 0; channel < shape.channels; ++channel) {
    const size_t begin = share * static_cast<size_t>(channel);
    if (begin >= shape.count) break;
    flows.push_back(
        Ring(shape, geometry, channel).build(begin, std::min(begin + share, shape.count)));
  }
  return flows;
}

// `bytes` from `offset` on, one chunk after the other.
Flow in_order(const Geometry& geometry, size_t offset, size_t bytes, Step step) {
  Flow flow;
  flow.geometry = geometry;
  for (size_t done = 0; done < bytes; done += geometry.chunk_bytes) {
    step.input_offset = step.output_offset = offset + done;
    step.bytes = std::min(geometry.chunk_bytes, bytes - done);
    flow.steps.push_back(step);
  }
  return flow;
}

// What this rank sends to the rank `distance` after it, and receives from the one `distance`
// before.
void add_exchange(const Shape& shape, const BufferSizes& sizes, int distance,
                  std::vector<Flow>* flows) {
  const size_t bytes = shape.bytes();
  const int to = (shape.rank + distance) % shape.ranks;
  const int from = (shape.rank + shape.ranks - distance) % shape.ranks;
  const bool has_blocks = shape.collective == Collective::kAllToAll;
  const auto block_of = [&](int rank) {
    return has_blocks ? static_cast<size_t>(rank) * bytes : 0;
  };
  Geometry geometry = p2p_geometry(shape.protocol, bytes, sizes);
  // NCCL gives a peer's message to several channels in parts of half a step to one step.
  const size_t parts =
      std::min(div_up(bytes, geometry.slot_bytes / 2), static_cast<size_t>(shape.channels));
  if (parts == 0) return;
  const bool direct = is_direct(shape);
  if (direct) geometry.chunk_bytes = kMaxNetBytes;
  const size_t share = align_up(div_up(bytes, parts), 512);
  for (size_t part = 0; part * share < bytes; ++part) {
    const size_t begin = part * share, length = std::min(share, bytes - begin);
    Flow send = in_order(geometry, block_of(to) + begin, length, sending(direct));
    Flow receive = in_order(geometry, block_of(from) + begin, length, receiving(direct));
    send.send_peer = to;
    receive.receive_peer = from;
    send.channel = receive.channel = static_cast<int>(part);
    send.batch = receive.batch = (distance - 1) / 8;  // NCCL_MAX_DEV_WORK_P2P_PER_BATCH
    flows->push_back(std::move(send));
    flows->push_back(std::move(receive));
  }
}

std::vector<Flow> p2p_plan(const Shape& shape, const BufferSizes& sizes) {
  std::vector<Flow> flows;
  const bool to_all = shape.collective == Collective::kAllToAll;
  if (to_all && !shape.in_place && shape.bytes() > 0) {  // our own part
    flows.push_back(in_order({.chunk_bytes = kMaxNetBytes},
                             static_cast<size_t>(shape.rank) * shape.bytes(), shape.bytes(),
                             {.store = true}));
  }
  for (int distance = 1; distance < (to_all ? shape.ranks : 2); ++distance) {
    add_exchange(shape, sizes, distance, &flows);
  }
  return flows;
}

// Collectives whose ranks have a part each.
bool has_parts(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
         collective == Collective::kAllToAll;
}

}  // namespace

std::vector<Flow> make_plan(const Shape& shape, const BufferSizes& sizes) {
  return is_point_to_point(shape.collective) ? p2p_plan(shape, sizes) : ring_plan(shape, sizes);
}

std::vector<Flow> make_coll_plan(const Shape& shape, const Geometry& geometry) {
  Step receive = receiving(shape.direct);
  receive.divide = shape.op == RedOp::kAvg;  // a network sees averages as sums
  Flow in = in_order(geometry, 0, shape.bytes(), sending(shape.direct));
  Flow out = in_order(geometry, 0, shape.bytes(), receive);
  in.send_peer = out.receive_peer = 0;
  return {std::move(in), std::move(out)};
}

Counts counts_of(Collective collective, size_t elements, size_t element_bytes, int ranks) {
  const auto n = static_cast<size_t>(ranks);
  const size_t unit = std::max<size_t>(1, 16 / element_bytes);  // nccl-tests keeps 16-byte parts
  const size_t part = elements / n / unit * unit;
  switch (collective) {
    case Collective::kAllGather:
      return {part, part * n, part, part, 0};
    case Collective::kReduceScatter:
      return {part * n, part, part, 0, part};
    case Collective::kAllToAll:
      return {part * n, part * n, part, 0, 0};
    default:
      return {elements, elements, elements, 0, 0};
  }
}

double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  if (collective == Collective::kAllReduce) return 2 * (n - 1) / n;
  return has_parts(collective) ? (n - 1) / n : 1;
}

size_t algorithm_bytes(Collective collective, const Counts& counts, size_t element_bytes,
                       int ranks) {
  return counts.param * element_bytes * (has_parts(collective) ? static_cast<size_t>(ranks) : 1);
}

}  // namespace slime::perf
