#!/bin/bash
# run.sh TEST...: runs GoogleTest binaries and *.test.sh scripts, each under a time limit, and ends
# with the line "N passed, N failed, N skipped". Two at a time: a binary, and beside it a script, as
# these mostly wait; whichever are over first, the others go on in twos.
# A script is one test: exit 0 passed, 77 skipped (its last line says why), anything else failed.
#   SLIME_BUILD_DIR        where the build is (default: build); results go to its results/
#   SLIME_TEST_TIMEOUT_S   limit for each binary or script (default 600; 1800 with a sanitizer)
#   SLIME_TEST_FILTER      a --gtest_filter for the binaries
#   SLIME_TOTALS_FILE      "passed failed skipped" is appended here, for .ci/run
#   SLIME_TEST_UNDER       the words of a command that runs each binary or script (make pause)
#   SLIME_RESULTS_DIR      where results go instead
set -u
export SLIME_BUILD_DIR=${SLIME_BUILD_DIR:-build} SLIME_SAN=${SLIME_SAN:-}
results=${SLIME_RESULTS_DIR:-$SLIME_BUILD_DIR/results}
read -r -a under <<<"${SLIME_TEST_UNDER:-}"
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$results"
mkdir -p "$results" || exit 1

# Only what hangs is to meet it: machines differ by a factor of two, and by more when they are busy.
limit_s=${SLIME_TEST_TIMEOUT_S:-$((${#SLIME_SAN} > 0 ? 1800 : 600))}
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export UBSAN_OPTIONS=print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
export TSAN_OPTIONS=suppressions=\"$here/tsan.supp\":second_deadlock_stack=1:halt_on_error=1${TSAN_OPTIONS:+:$TSAN_OPTIONS}
# ThreadSanitizer of GCC 12 cannot place its shadow where the kernel randomises with 32 bits
# ("unexpected memory mapping"); without randomisation it can.
launcher=()
if [ "$SLIME_SAN" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
  launcher=(setarch "$(uname -m)" -R)
fi

# The user's settings must not decide what the tests see; crashes are read from the log, not a core.
for name in "${!NCCL_@}"; do unset "$name"; done
export NCCL_SLIME_TRANSPORTS=tcp  # also where there are RDMA NICs
ulimit -c 0

# report NAME PASSED FAILED SKIPPED SECONDS
report() {
  echo "$2 $3 $4" >>"$results/counts"
  printf '%-34s %5d passed %3d failed %3d skipped %6.1f s\n' "$@"
}

# How a process ended, in words.
ending() {
  if [ "$1" -eq 124 ] || [ "$1" -eq 137 ]; then
    echo "killed: time limit of $limit_s s"
  elif [ "$1" -gt 128 ]; then
    echo "crashed: signal $(($1 - 128)) ($(kill -l $(($1 - 128))))"
  else
    echo "exit status $1"
  fi
}

run_binary() {
  local name=$1 binary=$2 log=$3 xml=$results/$1.xml code started=$EPOCHREALTIME
  # The braces keep the shell's own "Segmentation fault" line out: ending() says it.
  { timeout -k 10 "$limit_s" "${under[@]}" "${launcher[@]}" "$binary" --gtest_output="xml:$xml" \
    ${SLIME_TEST_FILTER:+--gtest_filter="$SLIME_TEST_FILTER"} >"$log" 2>&1 </dev/null; } 2>/dev/null
  code=$?
  local counts ok bad skips
  counts=$(awk -v status="$code" -v ending="$(ending $code)" -f "$here/count.awk" "$log")
  read -r ok bad skips <<<"$(head -n 1 <<<"$counts")"
  report "$name" "$ok" "$bad" "$skips" "$(elapsed "$started")"
  tail -n +2 <<<"$counts"
  if [ "$bad" -gt 0 ]; then
    echo "  --- $log, last 100 lines, without what passed:"
    grep -vE '^(\[ *(RUN|OK|PASSED|-+|=+) *\].*|)$' "$log" | tail -n 100 | sed 's/^/  | /'
  fi
}

run_script() {
  local name=$1 script=$2 log=$3 code started=$EPOCHREALTIME
  timeout -k 10 "$limit_s" "${under[@]}" "$script" >"$log" 2>&1 </dev/null
  code=$?
  case $code in
  0) report "$name" 1 0 0 "$(elapsed "$started")" ;;
  77)
    report "$name" 0 0 1 "$(elapsed "$started")"
    echo "  SKIPPED $name: $(tail -n 1 "$log")"
    ;;
  *)
    report "$name" 0 1 0 "$(elapsed "$started")"
    echo "  FAILED $name: $(ending $code)"
    tail -n 100 "$log" | sed 's/^/  | /'
    ;;
  esac
}

elapsed() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }

run_test() {
  local name
  case $1 in
  *.test.sh)
    name=${1#test/}
    name=${name%.test.sh}
    run_script "$name" "$1" "$results/${name//\//-}.log"
    ;;
  *)
    name=$(basename "$1")
    run_binary "$name" "$1" "$results/$name.log"
    ;;
  esac
}

# take first|last: of the tests that nobody has taken; answers its index
take() {
  local first last
  {
    flock 9
    read -r first last <"$results/left"
    [ "$first" -le "$last" ] || return
    if [ "$1" = first ]; then
      echo $((first + 1)) "$last" >"$results/left" && echo "$first"
    else
      echo "$first" $((last - 1)) >"$results/left" && echo "$last"
    fi
  } 9>"$results/left.lock"
}

# lane first|last PORT: what one test prints stays together. Scripts that need ports take them from
# PORT on: the two that run at the same time must not meet.
lane() {
  local index
  export SLIME_TEST_PORTS=$2
  while index=$(take "$1"); do
    run_test "${tests[index]}" >"$results/lane.$BASHPID"
    flock "$results/counts" cat "$results/lane.$BASHPID"
  done
}

# Scripts whose time is a rack's or a tree's come first: nothing waits for them at the end.
binaries=() long=() scripts=()
for test in "$@"; do
  case $test in
  */rack.test.sh | */collnet*.test.sh | */rails.test.sh | */starting.test.sh) long+=("$test") ;;
  *.test.sh) scripts+=("$test") ;;
  *) binaries=("$test" "${binaries[@]}") ;;
  esac
done
tests=("${long[@]}" "${scripts[@]}" "${binaries[@]}")
echo 0 $((${#tests[@]} - 1)) >"$results/left"
: >"$results/counts"
lane first 20000 &
lane last 26000
wait

read -r passed failed skipped < <(
  awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$results/counts")
if [ $((passed + failed)) -eq 0 ]; then
  echo "  FAILED: no test ran"
  failed=$((failed + 1))
fi
# A test whose end nobody saw has not passed.
if [ "$(wc -l <"$results/counts")" -ne $# ]; then
  echo "  FAILED: $# tests were to run, and $(wc -l <"$results/counts") did"
  failed=$((failed + 1))
fi
[ -z "${SLIME_TOTALS_FILE:-}" ] || echo "$passed $failed $skipped" >>"$SLIME_TOTALS_FILE"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
