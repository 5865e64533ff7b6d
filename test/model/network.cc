#include "test/model/network.h"

#include <algorithm>

namespace slime::model {

Value contribution(uint32_t worker, uint32_t round) {
  return static_cast<Value>(0x80 | worker << 5 | (round & 31));
}

Value fold(Value a, Value b) {
  if (a == kTooMany || b == kTooMany) return kTooMany;
  std::array<uint8_t, 8> all{};
  size_t count = 0;
  for (Value rest : {a, b}) {
    for (; rest != 0; rest >>= 8) all[count++] = static_cast<uint8_t>(rest);
  }
  if (count > kMaxWorkers) return kTooMany;
  std::sort(all.begin(), all.begin() + count);
  Value sum = 0;
  for (size_t i = 0; i < count; ++i) sum = sum << 8 | all[i];
  return sum;
}

namespace {

void put(std::string* bytes, uint32_t value) { bytes->push_back(static_cast<char>(value)); }
void put_value(std::string* bytes, Value value) {
  for (int i = 0; i < 4; ++i, value >>= 8) put(bytes, value & 255);
}

void put_packets(std::string* bytes, const Packets& packets) {
  put(bytes, static_cast<uint32_t>(packets.size()));
  for (const Packet& packet : packets) {
    put(bytes, packet.epoch);
    put(bytes, packet.generation);
    put(bytes, packet.round);
    put_value(bytes, packet.value);
  }
}

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  uint8_t get() { return static_cast<uint8_t>(bytes_[at_++]); }
  Value value() {
    Value value = 0;
    for (int i = 0; i < 4; ++i) value |= static_cast<Value>(get()) << 8 * i;
    return value;
  }
  Packets packets() {
    Packets packets(get());
    for (Packet& packet : packets) {
      packet.epoch = get();
      packet.generation = get();
      packet.round = get();
      packet.value = value();
    }
    return packets;
  }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

uint32_t links(const Shape& shape) { return shape.workers + shape.switches - 1; }

}  // namespace

std::string pack(const NetworkState& state, const Shape& shape) {
  std::string bytes;
  for (uint32_t i = 0; i < shape.workers; ++i) {
    put(&bytes, state.workers[i].round);
    put(&bytes, state.workers[i].retries);
    put(&bytes, state.workers[i].next);
  }
  for (uint32_t i = 0; i < shape.switches; ++i) {
    for (uint32_t h = 0; h < 2; ++h) {
      const sap::Half& half = state.switches[i].halves[h];
      put(&bytes, half.epoch);
      put(&bytes, half.arrived << 1 | half.done);
      put_value(&bytes, state.switches[i].values[h]);
      put(&bytes, state.switches[i].rounds[h]);
    }
  }
  for (uint32_t i = 0; i < links(shape); ++i) {
    put_packets(&bytes, state.up[i]);
    put_packets(&bytes, state.down[i]);
  }
  put(&bytes, state.generation);
  put(&bytes, state.base);
  put(&bytes, state.violated);
  return bytes;
}

NetworkState unpack(const std::string& bytes, const Shape& shape) {
  NetworkState state;
  Reader reader(bytes);
  for (uint32_t i = 0; i < shape.workers; ++i) {
    state.workers[i].round = reader.get();
    state.workers[i].retries = reader.get();
    state.workers[i].next = reader.get() != 0;
  }
  for (uint32_t i = 0; i < shape.switches; ++i) {
    for (uint32_t h = 0; h < 2; ++h) {
      sap::Half& half = state.switches[i].halves[h];
      half.epoch = reader.get();
      const uint8_t flags = reader.get();
      half.arrived = flags >> 1;
      half.done = flags & 1;
      state.switches[i].values[h] = reader.value();
      state.switches[i].rounds[h] = reader.get();
    }
  }
  for (uint32_t i = 0; i < links(shape); ++i) {
    state.up[i] = reader.packets();
    state.down[i] = reader.packets();
  }
  state.generation = reader.get();
  state.base = reader.get();
  state.violated = reader.get() != 0;
  return state;
}

}  // namespace slime::model
