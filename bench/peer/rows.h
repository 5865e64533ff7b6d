// Rows of bench-peer in files of their own.
#pragma once

namespace slime::bench {

void cancel_row();

}  // namespace slime::bench
