// What is left of a stranger's text in a message.
#include "base/text.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace slime {
namespace {

TEST(Text, NoControlsAndNothingThatIsNoUtf8) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"rack 3, Zürich, 東京, 😀", "rack 3, Zürich, 東京, 😀"},
      {"a\x1b[2Jb", "a [2Jb"},
      {"a\r\nNCCL WARN forged\t\x7f", "a  NCCL WARN forged  "},
      {std::string("a\0b", 3), "a b"},
      {"a\xc2\x9b"
       "2Jb",
       "a  2Jb"},  // U+009B begins an escape sequence in some terminals
      {"a\x9b"
       "2Jb",
       "a 2Jb"},                                              // the same as one byte
      {"a\u202eb\u2028c\u2066d\u061ce", "a   b   c   d  e"},  // the other direction, another line
      {"a\xc0\x8a", "a  "},            // a line end, in a form that is too long
      {"a\xe2\x82", "a  "},            // cut in the middle
      {"a\xed\xa0\x80", "a   "},       // half a surrogate
      {"a\xf4\x90\x80\x80", "a    "},  // beyond U+10FFFF
      {"a\xff\xfe", "a  "},
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(displayed(text), shown);
  EXPECT_EQ(displayed("a\n\x1b", 9, Lines::kMany), "a\n ");
}

TEST(Text, IsBounded) {
  const std::string fits(kMostShown, 'x');
  EXPECT_EQ(displayed(fits), fits);
  EXPECT_EQ(displayed(fits + "x"), fits + "...");
  EXPECT_EQ(displayed("aé", 2), "a ...") << "cut within a character";
}

TEST(Text, ErrorsAreOneLineWithoutControls) {
  EXPECT_EQ(make_error(Status::kRemote, 0, "peer \"%s\"", "a\n\x1b[31mb").what,
            "peer \"a  [31mb\"");
  EXPECT_EQ(system_error(EPIPE, "file %s", "\x1b]0;x\a").what,
            "file  ]0;x : Broken pipe (errno 32)");
  EXPECT_LT(make_error(Status::kRemote, 0, "%s", std::string(1 << 20, 'x').c_str()).what.size(),
            1100u);
}

}  // namespace
}  // namespace slime
