// Promises about access and ends, checked in a form that a test of the tests can use too: each
// returns what was wrong, in words.
#pragma once

#include <string>
#include <vector>

#include "test/contract/pair.h"

namespace slime::contract {

using Problems = std::vector<std::string>;

// Posts a good work, `bad`, and another good one from left to right. Promised: `bad` is refused and
// the others are done, where the channel goes on after a refusal; else both ends fail, or post()
// fails and takes none. `bad` writes nothing and is not reported; a failure has a sentence.
Problems refusal_problems(Pair& pair, Transfer& ledger, const Work& bad);

// Lets `rounds` of traffic from left to right pass, fences right, and watches what still comes.
Problems fence_problems(Pair& pair, int rounds, Opcode opcode = Opcode::kWriteWithImmediate);

// Closes left after `rounds` of traffic and reuses its memory at once: what arrives at right must
// be right all the same, must include all that was kSent, and then right must fail with kRemote.
Problems close_problems(Pair& pair, int rounds);

}  // namespace slime::contract
