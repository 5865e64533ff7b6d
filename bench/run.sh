#!/bin/bash
# run.sh [--quick] [--rounds N] [--json FILE]: all benchmarks in one run, then one table of ratios.
# What is compared is taken by turns, round after round, so that whatever else the machine does
# disturbs both alike. Progress goes to stderr. docs/performance.md says what the figures mean.
#   SLIME_BUILD_DIR   where the build is (default: build of this checkout)
set -u
here=$(dirname "$0")
. "$here/begin.sh"
rounds=5 quick='' json=''

usage() {
  echo "usage: bench/run.sh [--quick] [--rounds N] [--json FILE]" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
  --quick) quick=--quick rounds=2 ;;
  --rounds)
    [[ ${2:-} =~ ^[1-9][0-9]?$ ]] || usage
    rounds=$2
    shift
    ;;
  --json)
    [ -n "${2:-}" ] || usage
    json=$2
    shift
    ;;
  *) usage ;;
  esac
  shift
done

bench_begin bench-stream bench-latency bench-engine bench-posting bench-switch slime-perf

say() { echo "bench: [$SECONDS s] $*" >&2; }

# run LIMIT_S NAME PROGRAM...: its output is shown only when it fails.
run() {
  local limit_s=$1 name=$2
  shift 2
  timeout -k 5 "$limit_s" "$@" >"$work/log" 2>&1 </dev/null && return
  echo "bench/run.sh: $name failed: $*" >&2
  tail -n 20 "$work/log" >&2
  exit 1
}

# perf ROUND NAME COLLECTIVE OPTION... Each size by itself: with several, each operation of the
# small ones would find its buffers out of the cache, which the limit's are not. The kernel takes
# many operations to open its windows, hence the warm-up.
perf() {
  local file=$work/perf.$2.$1 name=$2 collective=$3 mib
  shift 3
  for mib in 1 4 16 64; do
    run 100 "slime-perf ($name)" "$build/bin/slime-perf" "$collective" --ranks 2 -b "${mib}M" \
      -e "${mib}M" -n $((320 / mib)) -w $((64 / mib + 4)) -c 0 --quiet \
      --json "$file.$mib.json" "$@"
  done
}

date -u +%s >"$work/started"
cat /proc/loadavg >"$work/loadavg" 2>/dev/null
# A slow machine gets fewer rounds rather than more time.
for ((round = 1; round <= rounds && (round <= 2 || SECONDS < 120); ++round)); do
  say "round $round of $rounds: plain TCP, then slime-perf with 1, 2 and 4 rails"
  # shellcheck disable=SC2086  # --quick or nothing
  run 100 bench-stream "$build/bin/bench-stream" $quick --json "$work/stream.$round.json"
  perf "$round" rails1 all_reduce --rails 1
  perf "$round" rails2 all_reduce --rails 2
  perf "$round" rails4 all_reduce --rails 4
  perf "$round" direct all_reduce --rails 1 --direct
  perf "$round" pure sendrecv --rails 1 --direct
done
# As many sockets as all rows above: by default it depends on the driver of the machine's NIC.
export NCCL_SLIME_RAILS_PER_IF=1
for name in latency engine posting switch; do
  say "bench-$name"
  # shellcheck disable=SC2086
  run 300 "bench-$name" "$build/bin/bench-$name" $quick --json "$work/$name.json"
done
say "done"
python3 "$here/report.py" "$work" ${json:+--json "$json"}
