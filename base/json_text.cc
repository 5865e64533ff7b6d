#include "base/json_text.h"

namespace slime {
namespace {

// Brackets in strings do not count.
bool is_deeper(std::string_view text, size_t most) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++at;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<void> check_json(std::string_view text, std::string_view source, const JsonLimits& limits) {
  const auto length = static_cast<int>(source.size());
  if (text.size() > limits.bytes) {
    return fail(Status::kInvalid, "%.*s: %zu bytes of JSON, and %zu are the most", length,
                source.data(), text.size(), limits.bytes);
  }
  if (!is_deeper(text, limits.nesting)) return {};
  return fail(Status::kInvalid, "%.*s: JSON with more than %zu brackets within each other", length,
              source.data(), limits.nesting);
}

}  // namespace slime
