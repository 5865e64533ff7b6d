#!/bin/bash
# run.sh TEST...: runs GoogleTest binaries and *.test.sh scripts under the pauser, one after the
# other and again, for a time: the binaries in one lane, the scripts beside them in another. Says at
# the end how to repeat what failed. `make pause` calls it.
#   PAUSE_SECONDS   no further test begins after this time; those that run end (default 600)
#   PAUSE_RATE      stops a second (default 30)
#   PAUSE_LONGEST   seconds: a stop lasts between 0 and this long (default 0.5)
#   PAUSE_SEED      of the first test; each one after it counts up (default: at random)
#   SLIME_TEST_TIMEOUT_S, SLIME_TEST_FILTER, SLIME_BUILD_DIR: as in test/run.sh; the limit is 1800 s
set -u
here=$(cd "$(dirname "$0")" && pwd)
export SLIME_BUILD_DIR=${SLIME_BUILD_DIR:-build} SLIME_TEST_TIMEOUT_S=${SLIME_TEST_TIMEOUT_S:-1800}
seconds=${PAUSE_SECONDS:-600} rate=${PAUSE_RATE:-30} longest=${PAUSE_LONGEST:-0.5}
first_seed=${PAUSE_SEED:-$((SRANDOM % 1000000))}
# LeakSanitizer is a tracer itself, and a process has one at most.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
pause=$SLIME_BUILD_DIR/test/pause
results=$SLIME_BUILD_DIR/pause
rm -rf "$results"
mkdir -p "$results/failed" || exit 1
touch "$results/totals" "$results/replays"

"$pause" -- true 2>"$results/permission"
if [ $? -eq 77 ]; then
  echo "make pause: skipped: $(tail -n 1 "$results/permission")"
  exit 77
fi

# run_one LANE TEST SEED
run_one() {
  local lane=$1 test=$2 seed=$3 name
  name=$(basename "${test%.test.sh}")
  SLIME_RESULTS_DIR=$results/$lane SLIME_TOTALS_FILE=$results/totals \
    SLIME_TEST_UNDER="$pause --rate $rate --longest $longest --seed $seed --" \
    "$here/../run.sh" "$test" >"$results/$lane.out" 2>&1 && failed='' || failed=yes
  {
    sed '$d' "$results/$lane.out" # without the sum
    if [ -n "$failed" ]; then
      cp "$results/$lane"/*.log "$results/failed/$name-$seed.log"
      echo "make pause PAUSE_TESTS=$test PAUSE_SEED=$seed PAUSE_RATE=$rate" \
        "PAUSE_LONGEST=$longest PAUSE_SECONDS=1" | tee -a "$results/replays" |
        sed 's/^/  replay: /'
    fi
  } | flock "$results" cat
}

# lane LANE TEST...: they begin somewhere else in each run, so that short runs miss none for ever
lane() {
  local lane=$1 tests=() seed=$first_seed
  shift
  mapfile -t tests < <(printf '%s\n' "$@" | shuf --random-source=<(yes "$first_seed"))
  while [ $# -gt 0 ]; do
    run_one "$lane" "${tests[(seed - first_seed) % $#]}" "$seed"
    seed=$((seed + 1))
    [ $SECONDS -lt "$seconds" ] || return
  done
}

binaries=() scripts=()
for test in "$@"; do
  case $test in
  *.test.sh) scripts+=("$test") ;;
  *) binaries+=("$test") ;;
  esac
done
echo "pause: $rate stops a second of up to $longest s, for $seconds s, seed $first_seed"
lane binaries "${binaries[@]}" &
lane scripts "${scripts[@]}"
wait

if [ -s "$results/replays" ]; then
  echo "Failed under pauses; the logs are in $results/failed/. To repeat, the seed chooses the stops,"
  echo "not what the machine does between them:"
  sed 's/^/  /' "$results/replays"
fi
awk '{ p += $1; f += $2; s += $3 }
  END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0 }' "$results/totals"
