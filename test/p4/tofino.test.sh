#!/bin/bash
# The switch for Tofino 2, compiled and assembled, and the driver's tables against the description
# that the compiler writes of it. What is needed is taken from
#   SLIME_P4C_TOFINO  p4c's compiler for Tofino (default: p4c-barefoot)
#   SLIME_BFAS        its assembler (default: bfas); the compiler alone accepts programs that the chip
#                     has too few stages for
# docs/p4.md says how to get them.
cd "$(dirname "$0")/../.." || exit 1
p4c=$(command -v "${SLIME_P4C_TOFINO:-p4c-barefoot}") && bfas=$(command -v "${SLIME_BFAS:-bfas}") || {
  echo "skipped: p4c-barefoot and bfas are not here (SLIME_P4C_TOFINO, SLIME_BFAS; docs/p4.md)"
  exit 77
}
driver=${SLIME_BUILD_DIR:-build}/test/tofino
[ -x "$driver" ] || { echo "skipped: built without gRPC"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
not_ok() {
  echo "not ok: $1"
  cat "$work/log"
  exit 1
}

# The size of a table whose entries are in the program is for this compiler only; p4c warns that
# others ignore it.
"$p4c" --target tofino2 --arch t2na --Wdisable=mismatch -I switch/p4 -o "$work/out" \
  --bf-rt-schema "$work/bf-rt.json" switch/p4/tna/switch.p4 >"$work/log" 2>&1 ||
  not_ok "the compiler"
! grep -q 'warning:' "$work/log" || not_ok "the compiler warns"
# A compiler without pull request 5753 of p4lang/p4c drops the cases of parsers, and says nothing.
for gress in ingress egress; do
  sed -n "/^parser $gress/,/^deparser $gress/p" "$work/out/pipe/switch.bfa" >"$work/$gress"
done
grep -q 'PacketParser_word30:' "$work/ingress" && grep -q 'type: VERIFY' "$work/ingress" &&
  [ "$(grep -c 'match:' "$work/ingress")" -ge 35 ] && grep -q 'match:' "$work/egress" ||
  not_ok "the parsers have lost cases: use a p4c with pull request 5753 of p4lang/p4c"
"$bfas" --no-condense --singlewrite --target tofino2 -o "$work/out/pipe" \
  "$work/out/pipe/switch.bfa" >"$work/log" 2>&1 && [ -s "$work/out/pipe/tofino2.bin" ] ||
  not_ok "the assembler"
stages() { grep -c "^stage [0-9]* $1" "$work/out/pipe/switch.bfa"; }
echo "ok: tofino2 with $(stages ingress) stages of ingress, $(stages egress) of egress"

SLIME_BFRT_JSON=$work/bf-rt.json "$driver" --gtest_filter='RealProgram.*' >"$work/log" 2>&1 &&
  grep -q 'PASSED.* 1 test' "$work/log" || not_ok "the driver names what the program does not have"
echo "ok: the program has all that the driver names"
