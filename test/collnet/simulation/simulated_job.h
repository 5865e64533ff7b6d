// A job in the simulator, and allreduces of it.
#pragma once

#include <gtest/gtest.h>

#include "test/collnet/simulation/simulation.h"

namespace slime::test {

struct Job {
  Simulation simulation;
  std::mt19937_64 random;
  explicit Job(const Simulation::Options& options)
      : simulation(options), random(options.network.seed + 1) {}

  template <typename T>
  std::vector<std::vector<T>> inputs(size_t count, T (*draw)(std::mt19937_64&)) {
    std::vector<std::vector<T>> all(simulation.workers(), std::vector<T>(count));
    for (auto& one : all) {
      for (T& value : one) value = draw(random);
    }
    return all;
  }

  // In place, at every rank.
  template <typename T>
  testing::AssertionResult start(const std::vector<std::vector<T>*>& buffers, DataType type,
                                 ReduceOp op, std::vector<uint64_t>* tickets) {
    tickets->resize(buffers.size());
    for (uint32_t rank = 0; rank < buffers.size(); ++rank) {
      const Operation operation{.send = buffers[rank]->data(),
                                .receive = buffers[rank]->data(),
                                .count = buffers[rank]->size(),
                                .type = type,
                                .op = op};
      const Status status =
          simulation.worker(rank).start(operation, simulation.now_ns(), &(*tickets)[rank]);
      if (status != Status::kOk) return testing::AssertionFailure() << status_name(status);
    }
    return testing::AssertionSuccess();
  }

  // Until all ranks have theirs.
  testing::AssertionResult finish(const std::vector<uint64_t>& tickets) {
    const bool ended = simulation.run_until([&] {
      for (uint32_t rank = 0; rank < tickets.size(); ++rank) {
        if (simulation.worker(rank).status() != Status::kOk) return true;
        if (!simulation.worker(rank).done(tickets[rank])) return false;
      }
      return true;
    });
    if (!ended) return testing::AssertionFailure() << "not done after an hour";
    for (uint32_t rank = 0; rank < tickets.size(); ++rank) {
      if (simulation.worker(rank).status() == Status::kOk) continue;
      return testing::AssertionFailure() << simulation.worker(rank).failure().what;
    }
    return testing::AssertionSuccess();
  }

  template <typename T>
  testing::AssertionResult reduce(const std::vector<std::vector<T>*>& buffers, DataType type,
                                  ReduceOp op = ReduceOp::kSum) {
    std::vector<uint64_t> tickets;
    auto started = start(buffers, type, op, &tickets);
    return started ? finish(tickets) : started;
  }
};

template <typename T>
std::vector<std::vector<T>*> pointers(std::vector<std::vector<T>>& all) {
  std::vector<std::vector<T>*> pointers;
  for (auto& one : all) pointers.push_back(&one);
  return pointers;
}

}  // namespace slime::test
