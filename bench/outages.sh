#!/bin/bash
# outages.sh [--times N] [--seconds S] [--limit S] [--json FILE]: how long traffic stands still when one rail of
# two dies, and how soon it is used again. Two workers in network namespaces with two links of 400
# Mbit/s each, an allreduce of slime-perf that lasts, N outages of S seconds (5 of 15) of each kind:
#   carrier   the port of the second link of worker 1 loses its carrier
#   silent    all packets of that link are lost, and nobody is told
# A row per outage: `stall`, the longest time in which neither link carried a byte, from the beginning
# of the outage until 3 s after its end; `back`, from the end of the outage until the second link
# carried data again; `share`, what it carried in the second after 2 s, of what it had before.
# With --limit the exit status is 1 if a stall, or what it takes after a carrier's return, is longer.
#   SLIME_BUILD_DIR   where the build is (default: build of this checkout)
set -u
. "$(dirname "$0")/begin.sh"
times=5 seconds=15 limit='' json='' launcher=()
bench_options "times seconds limit json" "$@"
. "$(dirname "$0")/lab.sh"
bench_begin slime-perf
report=$(dirname "$0")/outages_report.py
export NCCL_DEBUG=WARN
lab_interfaces=eth0,eth1

failed() {
  echo "bench/outages.sh: $1" >&2
  tail -n 5 "$work"/*.err >&2
  exit 1
}
down_carrier() { ip -n switch link set q1 down; }
up_carrier() { ip -n switch link set q1 up; }
down_silent() {
  in_worker 1 nft "add table netdev cut; \
    add chain netdev cut in { type filter hook ingress device eth1 priority 0; policy drop; }; \
    add chain netdev cut out { type filter hook egress device eth1 priority 0; policy drop; }"
}
up_silent() { in_worker 1 nft delete table netdev cut; }
event() { echo "$1 $2 $EPOCHREALTIME" >>"$work/events"; }

lab_make 2 9000 400mbit 400mbit || exit 1
lab_perf run 2 all_reduce -b 4M -e 4M -n 20 -w 0 -c 2 -d float --duration 100000
for _ in $(seq 100); do grep -qs '(elements)' "$work/run.0.out" && break || sleep 0.1; done
ip netns exec switch python3 "$report" sample p1 q1 >"$work/samples" &
sampler=$!
sleep 3
for kind in carrier silent; do
  for ((n = 1; n <= times; ++n)); do
    echo "outages: [$SECONDS s] $kind $n of $times" >&2
    event "$kind" down
    "down_$kind" || failed "cannot cut the link"
    sleep "$seconds"
    event "$kind" up
    "up_$kind" || failed "cannot mend the link"
    sleep 8
  done
done
kill "$sampler" "${rank_pids[@]}"
lab_wait || failed "a rank failed"
grep -q '"wrong": [1-9]' "$work"/run.?.json && failed "results are wrong"
python3 "$report" report "$work/events" "$work/samples" ${limit:+--limit "$limit"} \
  ${json:+--json "$json"}
