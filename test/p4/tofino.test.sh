#!/bin/bash
# The switch for Tofino, compiled and assembled. What is needed is taken from
#   SLIME_P4C_TOFINO  p4c's compiler for Tofino (default: p4c-barefoot)
#   SLIME_BFAS        its assembler (default: bfas); the compiler alone accepts programs that the chip
#                     has too few stages for
# docs/p4.md says how to get them.
cd "$(dirname "$0")/../.." || exit 1
p4c=$(command -v "${SLIME_P4C_TOFINO:-p4c-barefoot}") && bfas=$(command -v "${SLIME_BFAS:-bfas}") || {
  echo "skipped: p4c-barefoot and bfas are not here (SLIME_P4C_TOFINO, SLIME_BFAS; docs/p4.md)"
  exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Without --no-clot the assembler of 9.13.4 ends with "No tag for clot". The size of a table whose
# entries are in the program is for this compiler only; p4c warns that others ignore it.
out=$work/out
if ! "$p4c" --target tofino2 --arch t2na --no-clot --Wdisable=mismatch -I switch/p4 -o "$out" \
  switch/p4/tna/switch.p4 >"$work/log" 2>&1 || grep -q 'warning:' "$work/log"; then
  echo "not ok: the compiler"
elif ! "$bfas" --no-condense --singlewrite --target tofino2 -o "$out/pipe" "$out/pipe/switch.bfa" \
  >"$work/log" 2>&1 || [ ! -s "$out/pipe/tofino2.bin" ]; then
  echo "not ok: the assembler"
else
  stages() { grep -c "^stage [0-9]* $1" "$out/pipe/switch.bfa"; }
  echo "ok: tofino2 with $(stages ingress) stages of ingress, $(stages egress) of egress"
  exit 0
fi
cat "$work/log"
exit 1
