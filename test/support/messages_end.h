// What an engine has for the messages of one peer, without an engine.
#pragma once

#include <memory>
#include <utility>

#include "devices/devices.h"
#include "peer/messages/messages.h"

namespace slime::test {

struct MessagesEnd {
  explicit MessagesEnd(MemoryCache& cache, Expectations::Unexpected unexpected = nullptr)
      : expectations(std::move(unexpected)),
        to{regions, expectations, notices, tagged,
           [&cache](std::span<std::byte> memory, uint8_t rights, std::shared_ptr<void> keeps) {
             MemoryRange range{memory.data(), memory.size()};
             range.alone = true;
             return Result<std::shared_ptr<Region>>(std::make_shared<Region>(
                 cache, *cache.acquire(range), rights, 0, std::move(keeps)));
           }} {}

  Regions regions{HandleKind::kRegion};
  Expectations expectations;
  Notices notices;
  Tagged tagged;
  const Messages::To to;
  Messages messages{to};
};

}  // namespace slime::test
