// The memory that the requests of an engine, and their lists, are made of. What one has given back
// serves the next, so a request asks the heap for nothing when as many, of as many pieces, were
// open before.
//
// Memory: for each of some 20 sizes of blocks, up to three times as many as were in use at once,
// and 16 at least. It is kept until the engine ends. A list of more than kLargestKept comes from
// the heap each time. Threads: any; a mutex guards all. It outlives what it has given out.
#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <utility>

namespace slime {

class RequestMemory final : public std::pmr::memory_resource {
 public:
  template <typename Object, typename... Arguments>
  std::shared_ptr<Object> make(Arguments&&... arguments) {
    return std::allocate_shared<Object>(std::pmr::polymorphic_allocator<Object>(this),
                                        std::forward<Arguments>(arguments)...);
  }

 private:
  static constexpr size_t kLargestKept = size_t{64} << 10;  // some 1,600 pieces

  void* do_allocate(size_t bytes, size_t alignment) override {
    const std::lock_guard lock(mutex_);
    return pool_.allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    const std::lock_guard lock(mutex_);
    pool_.deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::mutex mutex_;
  std::pmr::unsynchronized_pool_resource pool_{
      {.max_blocks_per_chunk = 256, .largest_required_pool_block = kLargestKept}};
};

}  // namespace slime
