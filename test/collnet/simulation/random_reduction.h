// One allreduce drawn at random: type, operation, count, place and every rank's elements; and what
// must have come of it.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "collnet/worker/worker.h"

namespace slime::test {

class RandomReduction {
 public:
  struct Shape {
    uint32_t workers = 1;
    uint32_t slots = 1;
    uint32_t lanes = 16;
    number::HalfBits half_bits = number::HalfBits::k32;
    uint32_t formats = sap::kKnownFormats;
  };
  RandomReduction(const Shape& shape, std::mt19937_64& random);

  // As this rank starts it. Buffers stay where they are.
  Operation operation(uint32_t rank);
  uint64_t packets() const { return (count_ + per_packet_ - 1) / per_packet_; }
  // Empty: every element at every rank is right, and nothing was written behind the outputs.
  std::string violation() const;

 private:
  void fill_whole(std::mt19937_64& random);
  void fill_floats(std::mt19937_64& random);
  template <typename T>
  std::string whole_violation() const;
  template <typename T>
  std::string float_violation() const;
  template <typename T>
  double greatest(uint64_t first, uint64_t end) const;
  double lanes_error(double greatest) const;
  std::string place_violation() const;
  std::string wrong(uint32_t rank, uint64_t element, double got, double want) const;
  std::string words() const;

  const Shape shape_;
  DataType type_;
  ReduceOp op_;
  bool in_place_;
  uint64_t per_packet_ = 1;  // elements
  uint64_t count_ = 0;
  size_t bytes_ = 0;
  std::vector<std::vector<std::byte>> inputs_, outputs_;  // by rank
};

}  // namespace slime::test
