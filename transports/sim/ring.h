// A first-in-first-out queue that allocates only when it holds more than ever before.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace slime::sim {

template <typename T>
class Ring {
 public:
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }
  T& front() { return items_[head_ & (items_.size() - 1)]; }
  // In order of age; at(0) is the front.
  T& at(size_t index) { return items_[(head_ + index) & (items_.size() - 1)]; }
  void pop() { ++head_; }
  void clear() { head_ = tail_; }
  void push(const T& item) {
    if (size() == items_.size()) grow();
    items_[tail_++ & (items_.size() - 1)] = item;
  }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 16 : 2 * items_.size());
    const size_t count = size();
    for (size_t i = 0; i < count; ++i) larger[i] = at(i);
    items_.swap(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> items_;  // size zero or a power of two
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace slime::sim
