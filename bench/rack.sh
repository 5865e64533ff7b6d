#!/bin/bash
# rack.sh [--rate RATE] [--mtu BYTES] [--size SIZE] [--json FILE]: all_reduce by the software switch
# on a rack of network namespaces whose links are shaped to one rate, as ratios: to what the protocol
# can give on such a link, to the ranks' own ring on the same links, and to itself with losses.
# Progress goes to stderr. Latency: bench/round_trip.sh. The exit status is 1 if a run failed; the rows
# that do not need it are reported all the same.
#   SLIME_BUILD_DIR   where the build is (default: build of this checkout)
# RATE must be slow enough that the processors are not the limit: docs/performance.md.
set -u
. "$(dirname "$0")/begin.sh"
rate=100mbit mtu=9000 size=64M json='' launcher=()
bench_options "rate mtu size json" "$@"
. "$(dirname "$0")/lab.sh"
bench_begin slime-perf slime-switchd

# measure NAME RANKS ARGUMENT...: a run whose result is $work/NAME.0.json
measure() {
  local name=$1 ranks=$2
  shift 2
  say "$name: $ranks ranks: $*"
  lab_perf "$name" "$ranks" all_reduce -b "$size" -e "$size" -n 1 -w 1 --quiet "$@"
  lab_wait || bench_missed "$name"
}

lab_make 8 "$mtu" "$rate" || exit 1
lab_switchd "$work/switch" || exit 1
for ranks in 2 4 8; do
  measure "collnet-float-$ranks" $ranks --algo collnet -d float -c 0
  measure "ring-float-$ranks" $ranks --algo ring -d float -c 0
done
NCCL_SLIME_SWITCH_HALF_BITS=16 measure collnet-bfloat16-8 8 --algo collnet -d bfloat16 -c 0
measure ring-bfloat16-8 8 --algo ring -d bfloat16 -c 0
for lost in 1 10 25 100; do # of 1000, at both ends of every link
  lab_spoil_all 4 $lost 0
  NCCL_SLIME_CONNECT_TIMEOUT=120 measure "collnet-float-4-lost-$lost" 4 --algo collnet -d float -c 1
done
lab_spoil_all 4 0 0

say "done"
python3 "$(dirname "$0")/rack_report.py" "$work" --rate "$rate" --mtu "$mtu" --size "$size" \
  ${json:+--json "$json"}
