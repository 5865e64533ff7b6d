#!/bin/bash
# round_trip.sh [--mtu BYTES] [--turns N] [--json FILE]: how long an allreduce of 4 KiB by a switch
# takes two ranks, as a ratio to bare UDP round trips of 4 KiB through the same network namespaces,
# of one client and of two at once, by turns. Progress goes to stderr.
#   SLIME_BUILD_DIR   where the build is (default: build of this checkout)
set -u
. "$(dirname "$0")/begin.sh"
mtu=9000 turns=5 json='' launcher=()
bench_options "mtu turns json" "$@"
. "$(dirname "$0")/lab.sh"
bench_begin slime-perf slime-switchd bench-udp

lab_make 2 "$mtu" || exit 1
lab_switchd "$work/switch" || exit 1
ip netns exec switch "$build/bin/bench-udp" serve $switch_address:7000 >"$work/serve" &
for _ in $(seq 50); do grep -qs ready "$work/serve" && break || sleep 0.1; done
ask() { in_worker "$1" "$build/bin/bench-udp" ask $switch_address:7000 4096 3000; }
failed() {
  echo "bench/round_trip.sh: $1 failed" >&2
  tail -n 5 "$work"/*.err >&2
  exit 1
}
for ((turn = 1; turn <= turns; ++turn)); do
  echo "round_trip: [$SECONDS s] turn $turn of $turns" >&2
  ask 0 >"$work/one.$turn" || failed "a bare round trip"
  ask 1 >"$work/other.$turn" &
  other=$!
  ask 0 >"$work/two.$turn" && wait "$other" || failed "a bare round trip"
  for type in int32 float; do
    # --direct: staged, a call would be of 32 KiB at least, as NCCL's buffers are cut.
    lab_perf "$type.$turn" 2 all_reduce --algo collnet --direct -d $type -b 4K -e 4K -n 3000 -w 50 \
      -c 0 --quiet
    lab_wait || failed "allreduce of $type"
  done
done
python3 "$(dirname "$0")/round_trip_report.py" "$work" --turns "$turns" --mtu "$mtu" \
  ${json:+--json "$json"}
