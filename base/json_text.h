// JSON from outside. Parsers make a tree of it, which is copied, printed and freed by recursion,
// and a byte of text may take a hundred of memory: so its size and its depth are looked at first.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace slime {

struct JsonLimits {
  size_t bytes = 1 << 20;
  size_t nesting = 64;  // brackets within each other
};

// Reads the text once, and stops where it is too deep. It may be no JSON all the same. The error
// begins with `source`: who sent the text, or the file that it is from.
Result<void> check_json(std::string_view text, std::string_view source, const JsonLimits& limits);

// `Json` is nlohmann::json or nlohmann::ordered_json; the rooms that have it include it.
template <typename Json>
Result<Json> parse_json(std::string_view text, std::string_view source, const JsonLimits& limits) {
  if (auto sound = check_json(text, source, limits); !sound) return fail(std::move(sound.error()));
  Json parsed = Json::parse(text, nullptr, false);
  if (!parsed.is_discarded()) return parsed;
  return fail(Status::kInvalid, "%.*s: it is no JSON", static_cast<int>(source.size()),
              source.data());
}

}  // namespace slime
