#include "tools/perf/collective/plan.h"

#include <algorithm>

namespace slime::perf {
namespace {

size_t div_up(size_t a, size_t b) { return (a + b - 1) / b; }
size_t align_up(size_t a, size_t b) { return div_up(a, b) * b; }

// Builds the flow of one channel of a ring. Offsets and counts are in elements until a step is
// written.
class Ring {
 public:
  Ring(const Shape& shape, const Geometry& geometry, int channel) : shape_(shape) {
    flow_.geometry = geometry;
    flow_.channel = channel;
    flow_.send_peer = (shape.rank + 1) % shape.ranks;
    flow_.receive_peer = (shape.rank + shape.ranks - 1) % shape.ranks;
  }

  Flow build(size_t begin, size_t end) {
    switch (shape_.collective) {
      case Collective::kAllReduce:
        all_reduce(begin, end);
        break;
      case Collective::kAllGather:
        all_gather(begin, end);
        break;
      case Collective::kReduceScatter:
        reduce_scatter(begin, end);
        break;
      default:
        broadcast(begin, end);
    }
    return std::move(flow_);
  }

 private:
  bool direct() const { return shape_.direct && flow_.geometry.protocol == Protocol::kSimple; }
  size_t chunk_elements() const { return flow_.geometry.chunk_data / shape_.element_bytes; }
  size_t ranks() const { return static_cast<size_t>(shape_.ranks); }
  // The rank that is `back` places before us.
  size_t before(size_t back) const {
    return (static_cast<size_t>(shape_.rank) + ranks() - back) % ranks();
  }

  // `count` elements as the slices of one chunk; empty slices are sent too.
  void emit(Step step, size_t input, size_t output, size_t count) {
    const auto slices = static_cast<size_t>(flow_.geometry.slices());
    const size_t slot_elements = flow_.geometry.slot_bytes() / shape_.element_bytes;
    size_t slice = count;
    if (flow_.geometry.protocol == Protocol::kSimple) {
      slice = std::max(div_up(count, 16 * slices) * 16, slot_elements / 32);
    }
    for (size_t i = 0, done = 0; i < slices; ++i) {
      const size_t part = std::min(slice, count - done);
      step.input_offset = (input + done) * shape_.element_bytes;
      step.output_offset = (output + done) * shape_.element_bytes;
      step.bytes = static_cast<uint32_t>(part * shape_.element_bytes);
      flow_.steps.push_back(step);
      done += part;
    }
  }

  Step sends(Place direct_from, bool store = false) const {
    Step step;
    step.send_from = direct() ? direct_from : Place::kFifo;
    step.store = store;
    return step;
  }
  // A copy goes straight into the output where buffers are registered.
  Step receives_copy(bool forward) const {
    Step step;
    step.receive_into = direct() ? Place::kOutput : Place::kFifo;
    if (forward) step.send_from = direct() ? Place::kOutput : Place::kFifo;
    step.store = !direct();
    return step;
  }
  Step receives_reduce() const {
    Step step;
    step.receive_into = Place::kFifo;
    step.send_from = Place::kFifo;
    step.reduce = true;
    return step;
  }
  Step finishes_reduce(bool forward) const {
    Step step = receives_reduce();
    step.divide = true;
    step.store = true;
    step.send_from = !forward ? Place::kNowhere : direct() ? Place::kOutput : Place::kFifo;
    return step;
  }

  void all_reduce(size_t begin, size_t end) {
    size_t chunk = chunk_elements();
    for (size_t loop = begin; loop < end; loop += ranks() * chunk_elements()) {
      const size_t rest = end - loop;
      if (rest < ranks() * chunk) {
        chunk = align_up(div_up(rest, ranks()), std::max<size_t>(1, 16 / shape_.element_bytes));
      }
      const auto part = [&](const Step& step, size_t owner) {
        const size_t offset = std::min(owner * chunk, rest);
        emit(step, loop + offset, loop + offset, std::min(chunk, rest - offset));
      };
      part(sends(Place::kInput), before(1));
      for (size_t back = 2; back < ranks(); ++back) part(receives_reduce(), before(back));
      part(finishes_reduce(true), before(0));
      for (size_t back = 1; back + 1 < ranks(); ++back) part(receives_copy(true), before(back));
      part(receives_copy(false), before(ranks() - 1));
    }
  }

  void all_gather(size_t begin, size_t end) {
    for (size_t start = begin; start < end; start += chunk_elements()) {
      const size_t part = std::min(chunk_elements(), end - start);
      const auto block = [&](size_t owner) { return owner * shape_.count + start; };
      emit(sends(Place::kInput, !shape_.in_place), start, block(before(0)), part);
      for (size_t back = 1; back + 1 < ranks(); ++back) {
        emit(receives_copy(true), 0, block(before(back)), part);
      }
      emit(receives_copy(false), 0, block(before(ranks() - 1)), part);
    }
  }

  void reduce_scatter(size_t begin, size_t end) {
    for (size_t start = begin; start < end; start += chunk_elements()) {
      const size_t part = std::min(chunk_elements(), end - start);
      const auto block = [&](size_t owner) { return owner * shape_.count + start; };
      emit(sends(Place::kInput), block(before(1)), 0, part);
      for (size_t back = 2; back < ranks(); ++back) {
        emit(receives_reduce(), block(before(back)), 0, part);
      }
      emit(finishes_reduce(false), block(before(0)), start, part);
    }
  }

  void broadcast(size_t begin, size_t end) {
    const bool last = flow_.send_peer == shape_.root;
    const bool first = shape_.rank == shape_.root;
    if (first) flow_.receive_peer = -1;
    if (last) flow_.send_peer = -1;
    for (size_t start = begin; start < end; start += chunk_elements()) {
      const size_t part = std::min(chunk_elements(), end - start);
      emit(first ? sends(Place::kInput, !shape_.in_place) : receives_copy(!last), start, start,
           part);
    }
  }

  const Shape& shape_;
  Flow flow_;
};

std::vector<Flow> ring_plan(const Shape& shape, const BufferSizes& sizes) {
  const Geometry geometry = ring_geometry(shape.collective, shape.protocol, sizes);
  // Channels share the elements in parts that keep every line of 128 bytes whole.
  const size_t unit = 128 / shape.element_bytes;
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

// One message after the other between two ranks, in one direction.
Flow one_way(const Shape& shape, const Geometry& geometry, size_t offset, size_t bytes, bool send) {
  Flow flow;
  flow.geometry = geometry;
  const bool direct = shape.direct && geometry.protocol == Protocol::kSimple;
  const size_t chunk = direct ? kMaxNetBytes : geometry.chunk_data;
  for (size_t done = 0; done < bytes; done += chunk) {
    Step step;
    step.input_offset = step.output_offset = offset + done;
    step.bytes = static_cast<uint32_t>(std::min(chunk, bytes - done));
    if (send) {
      step.send_from = direct ? Place::kInput : Place::kFifo;
    } else {
      step.receive_into = direct ? Place::kOutput : Place::kFifo;
      step.store = !direct;
    }
    flow.steps.push_back(step);
  }
  return flow;
}

// NCCL gives a peer's message to several channels in parts of half a step to one step.
size_t parts_of(const Shape& shape, const Geometry& geometry, size_t bytes) {
  const size_t wanted = div_up(bytes, geometry.step_bytes / 2);
  return std::min(wanted, static_cast<size_t>(shape.channels));
}

void add_exchange(const Shape& shape, const BufferSizes& sizes, int distance, size_t send_offset,
                  size_t receive_offset, size_t bytes, std::vector<Flow>* flows) {
  const Geometry geometry = p2p_geometry(shape.protocol, bytes, sizes);
  const size_t parts = parts_of(shape, geometry, bytes);
  if (parts == 0) return;
  const size_t share = align_up(div_up(bytes, parts), 512);
  for (size_t part = 0; part * share < bytes; ++part) {
    const size_t begin = part * share;
    const size_t length = std::min(share, bytes - begin);
    Flow send = one_way(shape, geometry, send_offset + begin, length, true);
    Flow receive = one_way(shape, geometry, receive_offset + begin, length, false);
    send.send_peer = (shape.rank + distance) % shape.ranks;
    receive.receive_peer = (shape.rank + shape.ranks - distance) % shape.ranks;
    send.channel = receive.channel = static_cast<int>(part);
    send.batch = receive.batch = (distance - 1) / 8;  // NCCL_MAX_DEV_WORK_P2P_PER_BATCH
    flows->push_back(std::move(send));
    flows->push_back(std::move(receive));
  }
}

std::vector<Flow> p2p_plan(const Shape& shape, const BufferSizes& sizes) {
  std::vector<Flow> flows;
  const size_t bytes = shape.count * shape.element_bytes;
  if (shape.collective == Collective::kSendRecv) {
    add_exchange(shape, sizes, 1, 0, 0, bytes, &flows);
    return flows;
  }
  const auto own = static_cast<size_t>(shape.rank) * bytes;
  if (!shape.in_place && bytes > 0) {
    Flow local;
    for (size_t done = 0; done < bytes; done += kMaxNetBytes) {
      Step step;
      step.input_offset = step.output_offset = own + done;
      step.bytes = static_cast<uint32_t>(std::min(kMaxNetBytes, bytes - done));
      step.store = true;
      local.steps.push_back(step);
    }
    flows.push_back(std::move(local));
  }
  for (int distance = 1; distance < shape.ranks; ++distance) {
    const int to = (shape.rank + distance) % shape.ranks;
    const int from = (shape.rank + shape.ranks - distance) % shape.ranks;
    add_exchange(shape, sizes, distance, static_cast<size_t>(to) * bytes,
                 static_cast<size_t>(from) * bytes, bytes, &flows);
  }
  return flows;
}

}  // namespace

std::vector<Flow> make_plan(const Shape& shape, const BufferSizes& sizes) {
  return is_point_to_point(shape.collective) ? p2p_plan(shape, sizes) : ring_plan(shape, sizes);
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
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return (n - 1) / n;
    default:
      return 1;
  }
}

size_t algorithm_bytes(Collective collective, const Counts& counts, size_t element_bytes,
                       int ranks) {
  const bool per_rank = collective == Collective::kAllGather ||
                        collective == Collective::kReduceScatter ||
                        collective == Collective::kAllToAll;
  return counts.param * element_bytes * (per_rank ? static_cast<size_t>(ranks) : 1);
}

}  // namespace slime::perf
