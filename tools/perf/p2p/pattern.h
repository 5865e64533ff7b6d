// The bytes by which slime-perf p2p sees what was moved.
//
// The memory is written and read by the engine's thread too, on behalf of the other process; both
// processes have met in between. ThreadSanitizer does not see that (test/tsan.supp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/perf/p2p/endpoint.h"

namespace slime::perf::p2p {

void fill_pattern(std::byte* memory, uint64_t bytes, uint32_t salt);
// Bytes of the layout that are not those of a pattern: of one in the pieces, of another between
// them.
uint64_t count_wrong(const std::byte* memory, const Layout& layout, uint32_t in_pieces,
                     uint32_t between);

}  // namespace slime::perf::p2p
