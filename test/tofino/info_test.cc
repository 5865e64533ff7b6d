// The description of a program and a chip, which comes from a socket.
#include <gmock/gmock.h>

#include <string>

#include "switch/tofino/info.h"
#include "test/tofino/device_json.h"

namespace slime::tofino {
namespace {

using net::bfrt::Field;
using net::bfrt::Info;
using net::bfrt::Table;
using testing::HasSubstr;

constexpr char kNothing[] = R"({"tables": []})";

std::string error_of(const std::string& program, const std::string& chip = kChipJson) {
  const auto info = Info::parse(program, chip);
  return info ? "" : info.error().what;
}

// The program's text with one part replaced.
std::string program_with(const std::string& part, const std::string& by) {
  std::string text = kProgramJson;
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), by);
}

TEST(Info, HasWhatTheProgramHas) {
  const auto info = Info::parse(kProgramJson, kChipJson);
  ASSERT_TRUE(info) << info.error().what;
  EXPECT_EQ(info->tables().size(), 10u) << "without the one of another type";
  const Table* jobs = info->find("pipe.Ingress.jobs");
  ASSERT_TRUE(jobs);
  EXPECT_EQ(info->find("Ingress.jobs"), jobs) << "the pipeline's name may be left out";
  EXPECT_EQ(info->find("jobs"), nullptr);
  EXPECT_EQ(jobs->id, 34746517u);
  ASSERT_EQ(jobs->key.size(), 3u);
  EXPECT_EQ(jobs->key[0].match, Field::Match::kExact);
  EXPECT_EQ(jobs->key[1].match, Field::Match::kTernary);
  EXPECT_EQ(jobs->key[1].bits, 12u);
  EXPECT_EQ(jobs->key[2].bits, 32u);
  ASSERT_EQ(jobs->actions.size(), 1u);
  EXPECT_EQ(jobs->actions[0].data[2].kind, Field::Kind::kBool);
  EXPECT_FALSE(jobs->has_const_entries);
  EXPECT_TRUE(info->find("Ingress.formats")->has_const_entries);
  EXPECT_EQ(info->find("Ingress.arrivals")->type, Table::Type::kRegister);
  EXPECT_TRUE(info->find("$pre.mgid")->data[0].is_list);
  EXPECT_EQ(info->find("$mirror.cfg")->data[1].kind, Field::Kind::kText);
}

TEST(Info, SaysWhatIsMissing) {
  EXPECT_THAT(error_of("", kNothing), HasSubstr("description of the program"));
  EXPECT_THAT(error_of(kNothing, "[1]"), HasSubstr("description of the chip"));
  EXPECT_THAT(error_of(R"({"tables": {}})"), HasSubstr("not JSON with tables"));
  EXPECT_THAT(error_of(std::string(300'000, '[')),
              HasSubstr("of the program: JSON with more than"));
  EXPECT_THAT(error_of(program_with("\"id\": 34746517", "\"id\": -1")), HasSubstr("no number"));
  EXPECT_THAT(error_of(program_with("\"id\": 34746517", "\"id\": 4294967296")),
              HasSubstr("no number"));
  EXPECT_THAT(error_of(program_with("\"width\": 12", "\"width\": 4097")),
              HasSubstr("pipe.Ingress.jobs, field hdr.slime.flags"));
  EXPECT_THAT(error_of(program_with("\"width\": 12", "\"width\": 0")), HasSubstr("width"));
  EXPECT_THAT(error_of(program_with("\"name\": \"token\"", "\"name\": 7")), HasSubstr("no name"));
  EXPECT_THAT(error_of(program_with("\"name\": \"Ingress.accept\"", "\"name\": []")),
              HasSubstr("an action has no name"));
  EXPECT_THAT(error_of(program_with("pipe.Ingress.formats", "pipe.Ingress.jobs")),
              HasSubstr("two tables"));
  EXPECT_THAT(error_of(R"({"tables": [{"name": "r", "id": 1, "table_type": "Register"}]})"),
              HasSubstr("r: no key"));
}

// Two pipelines may have a control of the same name; then only whole names are tables.
TEST(Info, DoesNotChooseBetweenPipelines) {
  const auto info =
      Info::parse(program_with("pipe.Ingress.formats", "other.Ingress.jobs"), kNothing);
  ASSERT_TRUE(info) << info.error().what;
  EXPECT_EQ(info->find("Ingress.jobs"), nullptr);
  EXPECT_NE(info->find("pipe.Ingress.jobs"), nullptr);
  EXPECT_NE(info->find("other.Ingress.jobs"), nullptr);
}

// Whatever comes is an Info or an error: every beginning of a good text, and every text that has
// one other byte.
TEST(Info, TakesAnyText) {
  const std::string program = kProgramJson, chip = kChipJson;
  for (size_t size = 0; size < program.size(); ++size) {
    ASSERT_FALSE(Info::parse(program.substr(0, size), kNothing)) << size;
  }
  for (size_t size = 0; size < chip.size(); ++size) {
    ASSERT_FALSE(Info::parse(kNothing, chip.substr(0, size))) << size;
  }
  size_t accepted = 0;
  for (const char byte : {'0', '"', '[', '}', '\xff'}) {
    for (size_t at = 0; at < chip.size(); ++at) {
      std::string changed = chip;
      changed[at] = byte;
      if (Info::parse(kNothing, changed)) ++accepted;
    }
  }
  EXPECT_GT(accepted, 0u) << "most texts with one other digit or letter are good";
}

TEST(Info, RefusesDeepText) {
  const std::string deep(1 << 20, '[');
  const std::string whole = "{\"tables\": " + deep + std::string(deep.size(), ']') + "}";
  EXPECT_THAT(error_of(deep), HasSubstr("more than 64 brackets"));
  EXPECT_THAT(error_of(whole, kNothing), HasSubstr("more than 64 brackets"));
}

}  // namespace
}  // namespace slime::tofino
