#!/bin/bash
# hosts.sh [--rate RATE] [--mtu BYTES] [--size SIZE] [--json FILE]: all_reduce of 8 ranks over 1, 2, 4
# and 8 switch hosts whose links have the rate of the ranks' own, as ratios: to what k hosts of rate
# R can give n ranks, min(R, k R / n), and to the ranks' ring. Then one of four hosts is killed in the
# middle of a run, and comes back. Network namespaces; progress goes to stderr.
#   SLIME_BUILD_DIR   where the build is (default: build of this checkout)
# RATE must be slow enough that the processors are not the limit: docs/performance.md.
set -u
. "$(dirname "$0")/begin.sh"
rate=100mbit mtu=9000 size=64M json='' launcher=()
bench_options "rate mtu size json" "$@"
. "$(dirname "$0")/lab.sh"
bench_begin slime-perf slime-switchd
ranks=8

# measure NAME ARGUMENT...: a run whose result is $work/NAME.0.json
measure() {
  local name=$1
  shift
  say "$name: $*"
  lab_perf "$name" $ranks all_reduce -b "$size" -e "$size" -d float -n 1 -w 1 --quiet "$@"
  lab_wait || bench_missed "$name"
}

# said NAME TEXT: rank 0 says so, within a minute
said() {
  for _ in $(seq 600); do
    grep -q "$2" "$work/$1.0.err" && return
    sleep 0.1
  done
  echo "bench/hosts.sh: $1: rank 0 does not say: $2" >&2
  return 1
}

# One of four hosts is killed, and comes back.
kill_one() {
  NCCL_DEBUG=INFO lab_perf killed $ranks all_reduce --algo collnet -b 1M -e 1M -d float,int32 \
    --duration 20 -n 1 -w 1 --quiet
  local told=0
  sleep 5
  kill -KILL "${switchd_pids[1]}"
  wait "${switchd_pids[1]}" 2>/dev/null
  said killed 'going on without this switch' || told=1
  lab_switchd_again "$work/switch.9" w9 || exit 1
  switchd_pids[1]=$switchd_pid
  [ $told -ne 0 ] || said killed 'on the switch at .* again' || told=1
  lab_wait || told=1
  [ $told -eq 0 ] || bench_missed killed
}

lab_make 16 "$mtu" "$rate" || exit 1
measure ring --algo ring -c 0
for hosts in 1 2 4 8; do
  lab_switch_hosts 8 $hosts "$work/switch" || exit 1
  measure "hosts-$hosts" --algo collnet -c 0
  [ $hosts -ne 4 ] || {
    say "one of four hosts is killed, and comes back"
    kill_one
  }
  kill "${switchd_pids[@]}"
  wait "${switchd_pids[@]}" 2>/dev/null
done

say "done"
python3 "$(dirname "$0")/hosts_report.py" "$work" --ranks $ranks --rate "$rate" --mtu "$mtu" \
  --size "$size" ${json:+--json "$json"}
