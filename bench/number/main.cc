// bench-number: floats to lanes and back, by each instruction set that this processor has. The
// cases are taken by turns. Bytes are those of the tensor; a packet's worth stays in the
// first-level cache, as one that is about to be sent does.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/common/statistics.h"
#include "collnet/number/kernels.h"
#include "collnet/number/number.h"

namespace slime::bench {
namespace {

constexpr size_t kElements = 2048;
constexpr int kRepetitions = 2000;  // a turn

struct Case {
  const char* name;
  number::FloatKind kind;
  size_t element_bytes, wide;  // index of Kernels::quantise
};
constexpr Case kCases[] = {
    {"float32 in 32 bits", number::kSingle, 4, 1},  {"bfloat16 in 32 bits", number::kBfloat, 2, 1},
    {"bfloat16 in 16 bits", number::kBfloat, 2, 0}, {"float16 in 32 bits", number::kHalf, 2, 1},
    {"float16 in 16 bits", number::kHalf, 2, 0},
};

struct Row {
  const number::Kernels* kernels;
  const Case* what;
  Samples find, to_lanes, from_lanes;  // GB/s
};

// The thread's own time: others use the machine too.
double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
double gigabytes_per_second(const Case& what, Work work) {
  const double begin = seconds_now();
  for (int i = 0; i < kRepetitions; ++i) {
    work();
    asm volatile("" ::: "memory");
  }
  const double bytes = static_cast<double>(kElements * what.element_bytes) * kRepetitions;
  return bytes / (seconds_now() - begin) / 1e9;
}

// Numbers of one block, [1, 2) with either sign, and what they become for two workers.
struct Data {
  std::vector<std::byte> elements{4 * kElements}, lanes{4 * kElements}, back{4 * kElements};
  explicit Data(const Case& what) {
    for (size_t i = 0; i < kElements; ++i) {
      const auto digits = static_cast<uint32_t>(i * 2654435761u);
      const uint32_t single = 0x3f800000 | (digits & 0x807fffff);
      const uint32_t half = 0x3c00 | (digits & 0x83ff);
      const uint32_t bits = what.kind == number::kSingle ? single
                            : what.kind == number::kHalf ? half
                                                         : single >> 16;
      for (size_t b = 0; b < what.element_bytes; ++b) {
        elements[i * what.element_bytes + b] = static_cast<std::byte>(bits >> (8 * b));
      }
    }
  }
};

void measure(Row* row, Data* data) {
  const Case& what = *row->what;
  const number::Scale scale = {what.wide ? 0x1p29 : 0x1p13, what.wide ? INT32_MAX / 2 : 16383};
  const std::byte* const weights = number::weights(1 + what.wide, 0);
  uint64_t sum = 0;
  row->find.add(gigabytes_per_second(what, [&] {
    sum += row->kernels->find[what.kind](data->elements.data(), kElements).magnitude;
  }));
  row->to_lanes.add(gigabytes_per_second(what, [&] {
    sum += row->kernels->quantise[what.kind][what.wide](data->lanes.data(), data->elements.data(),
                                                        kElements, scale, weights);
  }));
  row->from_lanes.add(gigabytes_per_second(what, [&] {
    row->kernels->dequantise[what.kind][what.wide](data->back.data(), data->lanes.data(), kElements,
                                                   1 / scale.factor);
  }));
  if (sum == 0 || data->back != data->elements) {
    if (what.kind == number::kSingle) return;  // it has digits that 29 bits do not hold
    std::fprintf(stderr, "bench-number: %s come back as other numbers\n", what.name);
    std::exit(1);
  }
}

int run(unsigned turns) {
  std::vector<Row> rows;
  std::vector<Data> data;
  for (const SimdLevel level : {SimdLevel::kPortable, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    const number::Kernels* const set = number::kernel_levels().at(level);
    if (set == nullptr) break;  // the processor has no more
    for (const Case& what : kCases) {
      rows.push_back({set, &what, {}, {}, {}});
      data.emplace_back(what);
    }
  }
  for (unsigned turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < rows.size(); ++i) measure(&rows[i], &data[i]);
  }
  std::printf("%-10s %-20s %10s %10s %10s   GB/s of the tensor: median (best)\n", "", "",
              "exponent", "to lanes", "back");
  for (const Row& row : rows) {
    std::printf("%-10s %-20s", row.kernels->name, row.what->name);
    for (const Samples* samples : {&row.find, &row.to_lanes, &row.from_lanes}) {
      std::printf(" %5.1f (%5.1f)", samples->median(), samples->max());
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace slime::bench

int main(int argc, char** argv) {
  const unsigned long turns = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (argc > 2 || (argc == 2 && turns == 0)) {
    std::fprintf(stderr, "usage: bench-number [TURNS]\n");
    return 2;
  }
  return slime::bench::run(turns == 0 ? 15 : static_cast<unsigned>(turns));
}
