// Two NICs that reach each other, in a network of the test's own.
#pragma once

#include <functional>

namespace slime::boundary {

enum class NicKind : uint8_t { kVirtual, kPci };

// Runs `body` in a child process that sees the NICs one0 and one1 only, with or without PCI
// functions. Skips where no namespaces can be made.
void on_two_nics(NicKind kind, const std::function<void()>& body);

}  // namespace slime::boundary
