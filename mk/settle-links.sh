#!/bin/sh
# settle-links.sh DIRECTORY...: in every .md file below, replaces a relative link to a file that is
# not installed by its text: [a.h](../a.h) becomes `a.h`, a name in the sources.
for file in $(find "$@" -name '*.md'); do
  awk -v here="$(dirname "$file")" '
    function there(target) {
      sub(/#.*/, "", target)
      return target == "" || system("test -e \"" here "/" target "\"") == 0
    }
    {
      rest = $0
      line = ""
      while (match(rest, /\[[^][]*\]\([^() ]+\)/)) {
        link = substr(rest, RSTART, RLENGTH)
        middle = index(link, "](")
        text = substr(link, 2, middle - 2)
        target = substr(link, middle + 2, length(link) - middle - 2)
        if (target !~ /^[a-z]+:/ && !there(target)) link = "`" text "`"
        line = line substr(rest, 1, RSTART - 1) link
        rest = substr(rest, RSTART + RLENGTH)
      }
      print line rest
    }' "$file" >"$file.new" && mv "$file.new" "$file" && chmod 644 "$file" || exit 1
done
