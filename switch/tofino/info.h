// BFRuntime's numbers for the tables, fields and actions of a P4 program and of the chip. BFRuntime
// describes them in two JSON texts: that of the program, which p4c writes (bf-rt.json), and that of
// the chip (open-p4studio, pkgsrc/bf-drivers/src/bf_rt/bf_rt_*/*.json).
//
// The texts come from a socket, so parse() checks them. Tables of types that are not listed below
// are left out.
//
// Thread rules: an Info does not change.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace slime::net::bfrt {

struct Field {
  enum class Kind : uint8_t { kBits, kBool, kText, kOther };
  enum class Match : uint8_t { kExact, kTernary, kOther };

  std::string name;
  uint32_t id = 0;
  Kind kind = Kind::kOther;
  uint32_t bits = 0;  // of kBits
  bool is_list = false;
  Match match = Match::kOther;  // of a key
};

struct Action {
  std::string name;
  uint32_t id = 0;
  std::vector<Field> data;
};

struct Table {
  enum class Type : uint8_t { kMatch, kRegister, kCounter, kMeter, kGroups, kNodes, kMirrors };

  std::string name;
  uint32_t id = 0;
  Type type = Type::kMatch;
  bool has_const_entries = false;
  bool has_const_default = false;
  std::vector<Field> key;
  std::vector<Field> data;  // whatever the action
  std::vector<Action> actions;
};

// Finds one by its name. nullptr: no such name.
template <typename Named>
const Named* find_in(const std::vector<Named>& all, std::string_view name) {
  for (const Named& one : all) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

class Info {
 public:
  static Result<Info> parse(std::string_view program, std::string_view chip);

  // nullptr: no such table. BFRuntime's names begin with that of the pipeline ("pipe."), which may
  // be left out where it has one.
  const Table* find(std::string_view name) const;
  const std::vector<Table>& tables() const { return tables_; }

 private:
  Result<void> add_tables(const char* whose, std::string_view text);

  std::vector<Table> tables_;
  std::map<std::string, size_t, std::less<>> by_name_;  // kAmbiguous: of two
};

}  // namespace slime::net::bfrt
