#include "test/model/explorer.h"

#include <chrono>
#include <deque>
#include <unordered_map>

namespace slime::model {
namespace {

class Exploration {
 public:
  explicit Exploration(const Model& model) : model_(model) {}

  Report run(uint64_t max_states) {
    const auto begin = std::chrono::steady_clock::now();
    add(model_.initial(), 0, {});
    while (next_ < states_.size() && report_.violation.empty() && states_.size() < max_states) {
      expand(next_++);
    }
    report_.states = states_.size();
    report_.exhausted = next_ == states_.size();
    if (report_.exhausted && report_.violation.empty()) find_wedged();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    report_.seconds = took.count();
    return std::move(report_);
  }

 private:
  struct Origin {
    uint32_t from;
    Step step;
  };

  uint32_t add(const std::string& state, uint32_t from, const Step& step) {
    const auto [place, is_new] = index_.try_emplace(state, static_cast<uint32_t>(states_.size()));
    if (!is_new) return place->second;
    states_.push_back(&place->first);  // nodes of an unordered_map stay where they are
    origins_.push_back({from, step});
    if (const char* wrong = model_.wrong(state); wrong && report_.violation.empty()) {
      report_.violation = wrong;
      report_.way = way_to(place->second);
    }
    return place->second;
  }

  void expand(uint32_t from) {
    const std::string state = *states_[from];
    model_.successors(state, [&](const std::string& next, const Step& step) {
      if (next != state) edges_.push_back({add(next, from, step), from});
    });
  }

  // Backwards from the ends: what is not met cannot reach one.
  void find_wedged() {
    std::vector<uint32_t> first(states_.size() + 1, 0);
    for (const auto& [to, from] : edges_) ++first[to + 1];
    for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    std::vector<uint32_t> sources(edges_.size()), used(first.begin(), first.end() - 1);
    for (const auto& [to, from] : edges_) sources[used[to]++] = from;

    std::vector<bool> good(states_.size(), false);
    std::vector<uint32_t> work;
    const auto mark = [&](uint32_t state) {
      if (!good[state]) work.push_back(state);
      good[state] = true;
    };
    for (uint32_t i = 0; i < states_.size(); ++i) {
      if (!model_.finished(*states_[i])) continue;
      ++report_.finished;
      mark(i);
    }
    while (!work.empty()) {
      const uint32_t state = work.back();
      work.pop_back();
      for (uint32_t i = first[state]; i < first[state + 1]; ++i) mark(sources[i]);
    }
    for (uint32_t i = 0; i < states_.size(); ++i) {
      if (good[i]) continue;
      if (report_.wedged++ == 0) report_.way = way_to(i);
    }
  }

  std::string way_to(uint32_t state) const {
    std::deque<std::string> lines;
    for (; state != 0; state = origins_[state].from) {
      const Step& step = origins_[state].step;
      lines.push_front(std::string(step.what) + " " + std::to_string(step.who) + ", round " +
                       std::to_string(step.round) + "\n");
    }
    std::string text;
    for (const std::string& line : lines) text += line;
    return text;
  }

  struct Edge {
    uint32_t to;
    uint32_t from;
  };

  const Model& model_;
  std::unordered_map<std::string, uint32_t> index_;
  std::vector<const std::string*> states_;
  std::vector<Origin> origins_;
  std::vector<Edge> edges_;
  uint32_t next_ = 0;
  Report report_;
};

}  // namespace

Report explore(const Model& model, uint64_t max_states) {
  return Exploration(model).run(max_states);
}

}  // namespace slime::model
