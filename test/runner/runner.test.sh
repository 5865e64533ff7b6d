#!/bin/bash
# What test/run.sh makes of programs that pass, fail, skip, crash, hang, leak or hold no test.
# The programs are scripts that print what GoogleTest prints.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
wrong=0

program() {
  printf '#!/bin/bash\n%s\n' "$2" >"$root/$1"
  chmod +x "$root/$1"
}

# expect EXIT LAST_LINE MENTION TEST...: runs the tests and compares exit status and output.
expect() {
  local want=$1 last=$2 mention=$3 output code
  shift 3
  output=$(env -u SLIME_TOTALS_FILE -u SLIME_SAN -u SLIME_TEST_FILTER \
    -u SLIME_RESULTS_DIR SLIME_TEST_UNDER="${under:-}" SLIME_BUILD_DIR="$root/build" \
    SLIME_TEST_TIMEOUT_S="${limit_s:-60}" test/run.sh "$@" 2>&1)
  code=$?
  if [ "$code" -eq "$want" ] && [ "$(tail -n 1 <<<"$output")" = "$last" ] &&
    [[ $output == *"$mention"* ]]; then
    echo "ok: ${*##*/}: $last"
  else
    printf 'not ok: %s: wanted exit %s, "%s" and "%s"; got exit %s and\n%s\n' "${*##*/}" "$want" \
      "$last" "$mention" "$code" "$output"
    wrong=1
  fi
}

run='echo "[ RUN      ] A.Next"'
pass='echo "[ RUN      ] A.Good"; echo "[       OK ] A.Good (0 ms)"'
fail='echo "[ RUN      ] P/A.Bad/1"; echo "[  FAILED  ] P/A.Bad/1, where GetParam() = 2 (3 ms)"'
skip='echo "[ RUN      ] A.Later"; echo "x.cc:5: Skipped"; echo "no NIC"; echo "[  SKIPPED ] A.Later (0 ms)"'
program passes "$pass"
program fails "$pass; $fail; exit 1"
program skips "$pass; $skip"
program crashes "$pass; $run; kill -SEGV \$\$"
program hangs "$pass; $run; sleep 100"
program leaks "$pass; exit 23"
program empty 'exit 0'
program dies_at_start 'exit 127'
program good.test.sh 'exit 0'
program one.test.sh 'exit 0'
program other.test.sh 'exit 0'
program bad.test.sh 'exit 3'
program skipped.test.sh 'echo first; echo "no namespaces"; exit 77'
program hanging.test.sh 'sleep 100'

expect 0 '1 passed, 0 failed, 0 skipped' '' "$root/passes"
expect 0 '2 passed, 0 failed, 0 skipped' '' "$root/passes" "$root/good.test.sh"
expect 0 '4 passed, 0 failed, 0 skipped' '' "$root/passes" "$root"/{good,one,other}.test.sh
expect 1 '1 passed, 1 failed, 0 skipped' 'FAILED P/A.Bad/1' "$root/fails"
expect 0 '1 passed, 0 failed, 1 skipped' 'SKIPPED A.Later: no NIC' "$root/skips"
expect 1 '1 passed, 1 failed, 0 skipped' 'FAILED A.Next: crashed: signal 11 (SEGV)' "$root/crashes"
limit_s=6 expect 1 '1 passed, 1 failed, 0 skipped' 'FAILED A.Next: killed: time limit of 6 s' \
  "$root/hangs"
expect 1 '1 passed, 1 failed, 0 skipped' 'after its tests: exit status 23' "$root/leaks"
expect 1 '0 passed, 1 failed, 0 skipped' 'holds no test' "$root/empty"
expect 1 '0 passed, 1 failed, 0 skipped' 'exit status 127' "$root/dies_at_start"
expect 1 '0 passed, 1 failed, 0 skipped' 'exit status 3' "$root/bad.test.sh"
limit_s=6 expect 1 '0 passed, 1 failed, 0 skipped' 'killed: time limit' "$root/hanging.test.sh"
expect 1 '0 passed, 1 failed, 1 skipped' 'no namespaces' "$root/skipped.test.sh"
expect 1 '0 passed, 1 failed, 0 skipped' 'no test ran'
under="$root/one.test.sh --" expect 1 '1 passed, 1 failed, 0 skipped' 'holds no test' \
  "$root/passes" "$root/bad.test.sh"
exit $wrong
