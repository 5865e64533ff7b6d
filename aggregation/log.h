#pragma once

namespace slime::aggregation {

// Warnings go to stderr unless somebody has said where lines go.
void ensure_log();

}  // namespace slime::aggregation
