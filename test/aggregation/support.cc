#include "test/aggregation/support.h"

#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

#include "test/support/unused_address.h"

namespace slime::aggregation {
namespace {

std::mutex g_mutex;
std::vector<std::pair<LogLevel, std::string>> g_lines;

void keep_line(LogLevel level, const char* line) {
  const std::lock_guard lock(g_mutex);
  g_lines.emplace_back(level, line);
}

template <typename T>
void store(void* elements, size_t i, T value) {
  std::memcpy(static_cast<std::byte*>(elements) + i * sizeof value, &value, sizeof value);
}
template <typename T>
T load(const void* elements, size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(elements) + i * sizeof value, sizeof value);
  return value;
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Whole numbers from 0 to 2048 are exact.
uint16_t half_of(int value) {
  if (value == 0) return 0;
  const int exponent = std::ilogb(static_cast<double>(value));
  return static_cast<uint16_t>((exponent + 15) << 10 | ((value << (10 - exponent)) & 0x3ff));
}
int whole_of(uint16_t half) {
  if (half == 0) return 0;
  const double value = std::ldexp(1024 + (half & 0x3ff), (half >> 10) - 25);
  return value == std::floor(value) ? static_cast<int>(value) : -1;
}
int whole_of_brain(uint16_t brain) {
  const uint32_t bits = uint32_t{brain} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<int>(value);
}

}  // namespace

Options options_for(uint32_t ranks, const std::string& switch_address) {
  Options options;
  options.ranks = ranks;
  options.interfaces = "lo";
  options.switch_address = switch_address;
  options.connect_timeout_s = 60;
  options.switch_timeout_s = 60;  // and no test needs it
  options.settings["NCCL_SLIME_HANDSHAKE_TIMEOUT"] = "60";
  if (ranks > 1) options.rendezvous = test::unused_address();
  return options;
}

void each_rank(uint32_t ranks, const std::function<void(uint32_t)>& task) {
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { task(rank); });
  for (std::thread& thread : threads) thread.join();
}

Group::Group(const Options& options) : outcomes(options.ranks), contexts(options.ranks) {
  each_rank(options.ranks, [&](uint32_t rank) {
    Options own = options;
    own.rank = rank;
    outcomes[rank] = Context::open(own, &contexts[rank]);
  });
}

Group::~Group() {
  each_rank(static_cast<uint32_t>(contexts.size()), [&](uint32_t rank) { contexts[rank].reset(); });
}

void Group::each(const std::function<void(Context&, uint32_t)>& task) {
  each_rank(static_cast<uint32_t>(contexts.size()),
            [&](uint32_t rank) { task(*contexts[rank], rank); });
}

bool Group::well() const {
  for (const Outcome& outcome : outcomes) EXPECT_OK(outcome);
  for (const auto& context : contexts) {
    if (!context) return false;
  }
  return true;
}

void put(DataType type, void* elements, size_t i, int value) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
      return store(elements, i, static_cast<uint8_t>(value));
    case DataType::kInt32:
    case DataType::kUint32:
      return store(elements, i, static_cast<uint32_t>(value));
    case DataType::kInt64:
    case DataType::kUint64:
      return store(elements, i, static_cast<uint64_t>(value));
    case DataType::kFloat16:
      return store(elements, i, half_of(value));
    case DataType::kFloat32:
      return store(elements, i, static_cast<float>(value));
    case DataType::kBfloat16:
      return store(elements, i, static_cast<uint16_t>(bits_of(static_cast<float>(value)) >> 16));
  }
}

int get(DataType type, const void* elements, size_t i) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
      return load<uint8_t>(elements, i);
    case DataType::kInt32:
    case DataType::kUint32:
      return load<int32_t>(elements, i);
    case DataType::kInt64:
    case DataType::kUint64:
      return static_cast<int>(load<int64_t>(elements, i));
    case DataType::kFloat16:
      return whole_of(load<uint16_t>(elements, i));
    case DataType::kFloat32:
      return static_cast<int>(load<float>(elements, i));
    case DataType::kBfloat16:
      return whole_of_brain(load<uint16_t>(elements, i));
  }
  return -1;
}

const char* name_of(DataType type) {
  constexpr const char* kNames[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                    "uint64", "float16", "float32", "bfloat16"};
  return kNames[static_cast<size_t>(type)];
}

LogCapture::LogCapture() {
  const std::lock_guard lock(g_mutex);
  g_lines.clear();
  set_log(keep_line);
}

LogCapture::~LogCapture() { set_log(nullptr); }

size_t LogCapture::count(LogLevel level, const std::string& part) {
  const std::lock_guard lock(g_mutex);
  size_t found = 0;
  for (const auto& [its_level, line] : g_lines) {
    found += its_level == level && line.find(part) != std::string::npos;
  }
  return found;
}

std::string LogCapture::text() {
  const std::lock_guard lock(g_mutex);
  std::string all;
  for (const auto& [level, line] : g_lines) all += line + "\n";
  return all;
}

}  // namespace slime::aggregation
