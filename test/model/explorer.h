// Explicit-state exploration, breadth first: every state that can be reached is looked at once.
//
// Two properties: no reachable state is wrong (safety; the shortest way to a wrong one is kept),
// and from every reachable state the end can be reached (no wedge). The second needs all edges, so
// memory is about (state + 40 + 5 * edges per state) bytes per state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace slime::model {

// How a state came from the one before it.
struct Step {
  const char* what = "";
  uint8_t who = 0;
  uint8_t round = 0;
};

// A state is a string of bytes; what they mean is the model's affair.
class Model {
 public:
  virtual ~Model() = default;
  virtual std::string initial() const = 0;
  using Reach = std::function<void(const std::string& state, const Step& step)>;
  virtual void successors(const std::string& state, const Reach& reach) const = 0;
  virtual bool finished(const std::string& state) const = 0;
  virtual const char* wrong(const std::string& state) const = 0;  // nullptr: nothing
};

struct Report {
  uint64_t states = 0;
  uint64_t finished = 0;
  uint64_t wedged = 0;  // states from which the end cannot be reached
  bool exhausted = false;
  std::string violation;  // empty: none
  std::string way;        // to the violation, or else to a wedged state: a step a line
  double seconds = 0;
};

// Stops at the first violation, and after `max_states`.
Report explore(const Model& model, uint64_t max_states);

}  // namespace slime::model
