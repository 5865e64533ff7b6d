# Makes docs/reference.md from the public C headers: each comment at the beginning of a line, and the
# declarations behind it, until the next one.
#
#     awk -f mk/reference.awk include/slime/slime.h include/slime/types.h > docs/reference.md
function without_comments(text,    begin, rest) {
  while ((begin = index(text, "/*")) > 0) {
    rest = substr(text, begin + 2)
    text = substr(text, 1, begin - 1) substr(rest, index(rest, "*/") + 2)
  }
  return text
}
function names(text,    found, rest, word) {
  found = ""
  rest = without_comments(text)
  while (match(rest, /(slime_[a-z_]+\(|\} slime_[a-z_]+;|typedef [a-z_0-9]+ slime_[a-z_]+;|\(\*slime_[a-z_]+\)|SLIME_[A-Z_]+ [0-9(]|struct slime_[a-z_]+)/)) {
    word = substr(rest, RSTART, RLENGTH)
    rest = substr(rest, RSTART + RLENGTH)
    if (!match(word, /(slime_[a-z_]+|SLIME_[A-Z_]+)[^a-zA-Z_]*$/)) continue
    word = substr(word, RSTART, RLENGTH)
    gsub(/[^a-zA-Z_]/, "", word)
    if (index(" " found " ", " " word " ") == 0) found = found (found == "" ? "" : " ") word
  }
  return found
}
function finish(    title, list, i, count) {
  if (code !~ /[a-z]/) { prose = code = ""; return }
  title = ""
  count = split(names(code), list, " ")
  for (i = 1; i <= count && i <= 5; ++i) title = title (i > 1 ? ", " : "") "`" list[i] "`"
  if (title == "" && prose != "") {
    title = prose
    sub(/[.:,].*/, "", title)
  }
  if (title != "") printf "\n### %s\n", title
  sub(/\n+$/, "", code)
  printf "\n```c\n%s\n```\n", code
  gsub(/[*]/, "\\*", prose)
  if (prose != "") printf "\n%s\n", prose
  prose = code = ""
}
BEGIN {
  print "# Reference of libslime"
  print ""
  print "Made from `include/slime/slime.h` and `include/slime/types.h` by `mk/reference.awk`; [p2p.md](p2p.md) says how to begin."
}
FNR == 1 { finish(); printf "\n## %s\n", FILENAME; skipped = 1; open = 0 }
/^\/\* clang-format/ { next }
/^#(ifndef|ifdef|if|endif|pragma|include|define SLIME_(SLIME|TYPES)_H)/ { if (skipped) { prose = "" ; skipped = 0 } next }
/^extern "C" \{|^\}$/ { next }
/^\/\* / {
  finish()
  open = 1
  sub(/^\/\* /, "")
}
open {
  last = sub(/ ?\*\/$/, "")
  sub(/^ \* ?/, "")
  prose = prose (prose == "" ? "" : "\n") $0
  if (last) open = 0
  next
}
{ if ($0 != "" || code != "") code = code $0 "\n" }
END { finish() }
