# doc_block FILE HEADING N: the N-th indented block below the heading, as a user would copy it
doc_block() {
  awk -v heading="$2" -v wanted="$3" '
    /^##/ { inside = $0 == heading }
    inside && /^    / { if (!in_block) count++; in_block = 1; if (count == wanted) print substr($0, 5); next }
    { in_block = 0 }' "$1"
}
