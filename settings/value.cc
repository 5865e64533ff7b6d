// The value of one setting: parses it, formats it, and describes the accepted values in words.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/interfaces/address_range.h"
#include "base/net/advertised.h"
#include "base/net/port_range.h"
#include "base/text.h"
#include "settings/switch_list.h"
#include "settings/table.h"

namespace slime {
namespace {

constexpr struct {
  char letter;
  int shift;
} kSuffixes[] = {{'G', 30}, {'M', 20}, {'K', 10}};

bool in_range(const SettingSpec& spec, int64_t value) {
  return value >= spec.minimum && value <= spec.maximum &&
         (spec.multiple == 0 || value % spec.multiple == 0);
}

template <typename Number, typename... How>
bool parse_all(std::string_view text, Number* number, How... how) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number, how...);
  return error == std::errc{} && stop == end;
}

std::string bytes_text(int64_t value) {
  for (const auto& suffix : kSuffixes) {
    const int64_t unit = int64_t{1} << suffix.shift;
    if (value != 0 && value % unit == 0) return std::to_string(value / unit) + suffix.letter;
  }
  return std::to_string(value);
}

std::string range_text(const SettingSpec& spec) {
  const bool bytes = spec.type == SettingType::kBytes;
  const auto number = [&](int64_t n) { return bytes ? bytes_text(n) : std::to_string(n); };
  std::string text = " from " + number(spec.minimum) + " to " + number(spec.maximum);
  if (spec.multiple != 0) text += ", a multiple of " + number(spec.multiple);
  return text;
}

// visit(word) for the words of a Choice.
template <typename Visit>
void for_each_word(const SettingSpec& spec, Visit visit) {
  for (std::string_view left = spec.unit; !left.empty();) {
    const size_t end = std::min(left.find('|'), left.size());
    visit(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
}

bool is_word(const SettingSpec& spec, std::string_view text) {
  bool found = false;
  for_each_word(spec, [&](std::string_view word) { found |= word == text; });
  return found;
}

std::string words_text(const SettingSpec& spec) {
  std::string text;
  for_each_word(
      spec, [&](std::string_view word) { text += (text.empty() ? "" : ", ") + std::string(word); });
  return "one of " + text;
}

// What a Text must be besides short and without control characters.
constexpr struct Form {
  std::string_view name;  // the setting's unit
  bool (*has)(std::string_view text);
  const char* accepted;
} kForms[] = {
    {"switches", [](std::string_view text) { return split_switches(text).has_value(); },
     "host:port, or up to 8 of them as host:port*weight,host:port*weight,...: ports from 1 to "
     "65535 "
     "(28900 if there is none), weights from 1 to 64"},
    {"subnets", [](std::string_view text) { return parse_ranges(text).has_value(); },
     "ranges of addresses, as in 10.1.0.0/16,fd00::/8"},
    {"ports", [](std::string_view text) { return PortRange::parse(text).has_value(); },
     "a range of ports, as in 40000-40999"},
    {"advertised addresses",
     [](std::string_view text) { return AdvertisedAddresses::parse(text).has_value(); },
     "an address, or pairs of them as in 10.0.0.1=203.0.113.7,10.1.0.1=203.0.113.8"},
    {"name", is_plain_name, "letters, digits, '-', '_' and '.'"},
};

const Form* form_of(const SettingSpec& spec) {
  const auto* const form = std::ranges::find(kForms, spec.unit, &Form::name);
  return form == std::end(kForms) ? nullptr : form;
}

}  // namespace

bool parse_value(const SettingSpec&, std::string_view text, bool* value) {
  std::string word(text.substr(0, 8));
  for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto is_one_of = [&](std::initializer_list<const char*> words) {
    return std::ranges::find(words, word) != words.end();
  };
  if (is_one_of({"1", "yes", "true", "on"})) {
    *value = true;
    return true;
  }
  if (!is_one_of({"0", "no", "false", "off"})) return false;
  *value = false;
  return true;
}

bool parse_value(const SettingSpec& spec, std::string_view text, int* value) {
  int number = 0;
  if (!parse_all(text, &number, 10) || !in_range(spec, number)) return false;
  *value = number;
  return true;
}

bool parse_value(const SettingSpec& spec, std::string_view text, uint64_t* value) {
  int shift = 0;
  for (const auto& suffix : kSuffixes) {
    const bool ends_so = text.ends_with(suffix.letter) ||
                         text.ends_with(static_cast<char>(suffix.letter - 'A' + 'a'));
    if (ends_so) shift = suffix.shift;
  }
  if (shift != 0) text.remove_suffix(1);
  int64_t number = 0;
  if (!parse_all(text, &number, 10) || number < 0 || number > INT64_MAX >> shift) return false;
  if (!in_range(spec, number << shift)) return false;
  *value = static_cast<uint64_t>(number) << shift;
  return true;
}

bool parse_value(const SettingSpec& spec, std::string_view text, double* value) {
  double number = 0;
  if (!parse_all(text, &number, std::chars_format::fixed)) return false;
  // from_chars accepts "nan". These comparisons are false for it, so it is refused.
  const bool inside =
      number >= static_cast<double>(spec.minimum) && number <= static_cast<double>(spec.maximum);
  if (!inside) return false;
  *value = number;
  return true;
}

bool parse_value(const SettingSpec& spec, std::string_view text, std::string* value) {
  if (spec.type == SettingType::kChoice) {
    if (!is_word(spec, text)) return false;
    *value = text;
    return true;
  }
  if (std::ranges::any_of(text, is_control) || !in_range(spec, static_cast<int64_t>(text.size())))
    return false;
  if (const Form* const form = form_of(spec); form && !text.empty() && !form->has(text))
    return false;
  *value = text;
  return true;
}

std::string format_value(const SettingSpec&, bool value) { return value ? "1" : "0"; }

std::string format_value(const SettingSpec&, int value) { return std::to_string(value); }

std::string format_value(const SettingSpec&, uint64_t value) {
  return bytes_text(static_cast<int64_t>(value));
}

std::string format_value(const SettingSpec&, double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc{} ? std::string(text, end) : "?";
}

std::string format_value(const SettingSpec&, const std::string& value) { return value; }

bool is_accepted(const SettingSpec& spec, std::string_view text) {
  const auto parses = [&](auto value) { return parse_value(spec, text, &value); };
  switch (spec.type) {
    case SettingType::kBool:
      return parses(setting::Bool());
    case SettingType::kInt:
      return parses(setting::Int());
    case SettingType::kBytes:
      return parses(setting::Bytes());
    case SettingType::kSeconds:
      return parses(setting::Seconds());
    case SettingType::kText:
    case SettingType::kChoice:
      return parses(setting::Text());
  }
  return false;
}

std::string accepted_values(const SettingSpec& spec) {
  switch (spec.type) {
    case SettingType::kBool:
      return "1, yes, true, on or 0, no, false, off";
    case SettingType::kInt:
      return "a whole number" + (*spec.unit ? std::string(" of ") + spec.unit : "") +
             range_text(spec);
    case SettingType::kBytes:
      return "a number of bytes" + range_text(spec) + "; K, M and G are understood";
    case SettingType::kSeconds:
      return "a number of seconds" + range_text(spec);
    case SettingType::kText: {
      const std::string most = "at most " + std::to_string(spec.maximum) + " printable characters";
      const Form* const form = form_of(spec);
      return form == nullptr ? most : most + ": " + form->accepted;
    }
    case SettingType::kChoice:
      return words_text(spec);
  }
  return "?";
}

const char* type_name(SettingType type) {
  switch (type) {
    case SettingType::kBool:
      return "bool";
    case SettingType::kInt:
      return "int";
    case SettingType::kBytes:
      return "bytes";
    case SettingType::kSeconds:
      return "seconds";
    case SettingType::kText:
      return "text";
    case SettingType::kChoice:
      return "choice";
  }
  return "?";
}

}  // namespace slime
