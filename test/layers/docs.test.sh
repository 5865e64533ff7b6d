#!/bin/bash
# What docs/ and README.md name exists: files, functions in files, and the constants of
# settings/times.h.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
rooms='aggregation|base|bench|c_abi|collnet|devices|docs|examples|include|link|message|mk|peer|plugin|portable|rendezvous|settings|switch|test|tools|transports'
wrong=0

not_ok() {
  echo "not ok: $*"
  wrong=1
}

# PAGE LINE PATH FUNCTION for each `path/file` and each `path/file`: `function` in pages. FUNCTION is "-"
# where none follows. A name without a folder lies beside the file that was named before it.
named_files() {
  awk -v rooms="^($rooms)/[a-z0-9_/]*[.](cc|c|h|def|sh|awk|mk|md|py|p4|yaml|test.sh)$" '
    { text = $0; folder = ""
      while (match(text, /`[^`]+`/)) {
        name = substr(text, RSTART + 1, RLENGTH - 2)
        before = substr(text, 1, RSTART - 1)
        text = substr(text, RSTART + RLENGTH)
        if (name ~ rooms) {
          file = name
          folder = name; sub(/[^\/]*$/, "", folder)
          print FILENAME, FNR, file, "-"
        } else if (name ~ /^[a-z0-9_]+[.](cc|h)$/ && folder != "" && before ~ /^[,;] $/) {
          file = folder name
          print FILENAME, FNR, file, "-"
        } else if (name ~ /^([A-Za-z]+::)?[A-Za-z_]+$/ && file != "" && (before == ": " || (inside && before ~ /^(,| and) $/))) {
          sub(/^.*::/, "", name)
          print FILENAME, FNR, file, name
          inside = 1
          continue
        }
        inside = 0
      }
      file = "" }' "$@"
}

check_pages() {
  local page line file function
  while read -r page line file function; do
    if [ ! -f "$file" ]; then
      not_ok "$page:$line names $file, which does not exist"
    elif [ "$function" != - ] && ! grep -qw -- "$function" "$file"; then
      not_ok "$page:$line says that $file has $function"
    fi
    functions=$((functions + (${#function} > 1)))
  done < <(named_files "$@")
}

functions=0
check_pages README.md docs/*.md
[ "$functions" -ge 40 ] || not_ok "only $functions functions were found in the pages; is their form another one?"

awk -f mk/reference.awk include/slime/slime.h include/slime/types.h | diff -q - docs/reference.md >/dev/null ||
  not_ok "docs/reference.md is old: awk -f mk/reference.awk include/slime/slime.h include/slime/types.h > docs/reference.md"

constants=$(grep -oE '\bk[A-Z][A-Za-z]+ =' settings/times.h | grep -vE '^k(Millis|S)econd ' | sort -u | tr -d ' =')
[ "$(wc -w <<<"$constants")" -ge 20 ] || not_ok "only $(wc -w <<<"$constants") constants were found in settings/times.h"
for constant in $constants; do
  grep -qF "\`$constant\`" docs/architecture.md ||
    not_ok "docs/architecture.md, Deadlines, has no $constant of settings/times.h"
done

# The check itself: a file and a function that do not exist are found.
printf 'see `base/none.h` and `base/error.h`: `none_of_these`\n' >"$work/page.md"
found=$(wrong=0; check_pages "$work/page.md")
[ "$(grep -c '^not ok' <<<"$found")" -eq 2 ] || not_ok "names that do not exist were not found"

[ $wrong -eq 0 ] && echo "ok: $functions functions and $(wc -w <<<"$constants") constants"
exit $wrong
