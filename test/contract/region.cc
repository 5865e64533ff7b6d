#include "test/contract/region.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace slime::contract {

Region::Region(Rail& rail, size_t bytes, uint8_t rights)
    : rail_(rail),
      size_(std::max<size_t>(bytes, 1)),
      storage_(size_ + 2 * kGuardBytes, kUntouched) {
  MemoryRange range{storage_.data() + kGuardBytes, size_};
  range.rights = rights;
  auto keys = rail.register_memory(range);
  EXPECT_TRUE(keys) << keys.error().what;
  if (!keys) return;
  keys_ = *keys;
  registered_ = true;
}

Region::~Region() { deregister(); }

void Region::deregister() {
  if (registered_) rail_.deregister_memory(keys_);
  registered_ = false;
}

bool Region::guards_intact() const {
  const auto all = std::span(storage_);
  const auto is_untouched = [](std::byte byte) { return byte == kUntouched; };
  return std::ranges::all_of(all.first(kGuardBytes), is_untouched) &&
         std::ranges::all_of(all.last(kGuardBytes), is_untouched);
}

bool Region::untouched() const {
  return std::ranges::all_of(storage_, [](std::byte byte) { return byte == kUntouched; });
}

}  // namespace slime::contract
