// The rounds that a chunk takes: what each contributes, what its result means, and which is next.
//
// Up to three rounds, the same at all workers, because each follows from a result that all have
// seen:
//
//     exponents   only if the round before on this slot could not bring them: not all workers knew
//                 yet what comes next (special::kUnknown)
//     flags       only if a worker has a NaN or infinity there: where they are, by OR
//     data        the sum; with it, the exponents of the next chunk on this slot
//
// and more if numbers are lost beside others of their block (special::kCoarse):
//
//     fine        an exponent for every element; several rounds where bytes travel as words
//     data        again, scaled by those
//
// or, for a minimum or maximum of 64-bit integers that a switch has in 32 bits only (encoding.h):
//
//     upper       the upper words, before data brings the lower ones
//
// So NaN and infinities reach the user where IEEE 754 puts them without another path than the
// switch, and garbage in a chunk's tail costs one small round of that chunk only.
//
// A small float operation that comes alone would take a round trip for its exponents and one for
// its numbers. Where the exponents did not change the last time, a guess replaces both:
//
//     guess       numbers scaled as the last time, and the exponents that they need. If these turn
//                 out to be the same again, the sum is what two rounds would have given, bit for
//                 bit; if not, it was the round for exponents
//
// All workers guess alike, as all have accepted the same results of this slot and have the same
// operations. Operations of more than kMostGuessed chunks are not worth sending twice.
//
// In virtual time, 400 losses or norms, each added up alone over 4 ranks, that cross a power of two
// every 80 or so, take 1.12 rounds each instead of 2.00 (Worker.GuessesSave... in test/collnet). On
// a real network a float32 operation of 4 KiB takes as long as an int32 one, where it took twice as
// long (docs/performance.md).
//
// Pure functions: no I/O, no clock, no memory but the slot's buffers.
#pragma once

#include <span>

#include "collnet/worker/operation_queue.h"
#include "collnet/worker/slot.h"

namespace slime {

inline constexpr uint64_t kMostGuessed = 4;  // chunks of an operation

Stage next_stage(const ChunkState& state, const Chunk& chunk, bool guesses);

// Writes the lanes of the round `slot->state.stage` and completes the header `slot->sent`, in which
// job, child, slot and epoch are set. `next`: the chunk after this one on the slot; nullptr: not
// known yet. `factor`: sap::factor() of this rank.
void contribute(Slot* slot, const Chunk& chunk, const Chunk* next, uint32_t factor);

// Whether the result is what one contribution of each of `all`, `slot.sent` among them, comes to.
bool is_intact(const Slot& slot, const Chunk& chunk, const sap::Header& result,
               std::span<const std::byte> payload, const sap::Contributors& all);

enum class Outcome : uint8_t { kMoreRounds, kWrongGuess, kDelivered };
// Uses an intact result. kDelivered: the numbers are in place, and `slot->state` is that of the
// slot's next chunk.
Outcome finish(Slot* slot, const Chunk& chunk, const sap::Header& result,
               std::span<const std::byte> payload);

}  // namespace slime
