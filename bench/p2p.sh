#!/bin/bash
# p2p.sh [--rows NAME,NAME...] [--rounds N] [--times N] [--seconds S] [--concurrency N] [--mtu BYTES]
# [--json FILE]: what libslime makes of several links, of outages and of processes that die, as ratios
# of figures that are taken by turns. Two ranks of slime-perf p2p in network namespaces, on links that
# tbf shapes; rank 0 writes or reads memory of rank 1, N requests at once (1), for S seconds (2), and
# the bytes are checked. A line per figure: the median of N rounds (3), the least and the most, the
# aim. Progress goes to stderr. The rows:
#   even      two links of 500 Mbit/s together, to the sum of what each gives alone (one of
#             each rate is measured): writes and reads,
#             in requests of 16 pieces of 1 MiB and of one piece of 16 MiB
#   uneven    500 and 250 Mbit/s, to the same sum; 16 pieces of 1 MiB
#   four      400, 200, 200 and 100 Mbit/s, to the same sum; 16 pieces of 1 MiB
#   outages   writes over two links of 400 Mbit/s; the second link loses its carrier for 2 s, N times
#             (20), at worker 1 and at worker 0 by turns: requests that failed; what both links carry
#             in each second after it is used again, to what they carried before the first outage;
#             seconds from the carrier's return until the link is used again
#   restarts  steady writes over a link of 400 Mbit/s, while each second another pair of processes on
#             that link starts and its rank 1 is killed, N times a round: the rate of the writes, to
#             the mean of before and after; seconds until the other rank 0 ends with an error
#   SLIME_BUILD_DIR   where the build is (default: build of this checkout)
set -u
. "$(dirname "$0")/begin.sh"
all_rows=even,uneven,four,outages,restarts
rows=$all_rows rounds=3 times=20 seconds=2 concurrency=1 mtu=9000 json='' launcher=()
bench_options "rows rounds times seconds concurrency mtu json" "$@"
for row in ${rows//,/ }; do
  [[ ,$all_rows, == *,"$row",* ]] && continue
  echo "bench/p2p.sh: no row is called $row; there are $all_rows" >&2
  exit 2
done
. "$(dirname "$0")/lab.sh"
bench_begin slime-perf
export PYTHONDONTWRITEBYTECODE=1
report=(python3 "$(dirname "$0")/p2p_report.py" "$work")
missed=''
shape() { lab_shape_all "$@" || row_failed "cannot shape a link"; }

# measure NAME LINKS OP SIZE BATCH: the figure is the second row of that size: during the first the
# windows of TCP open, and the shares of the links are found.
measure() {
  lab_interfaces=$2
  say "$1: $2"
  lab_perf "$1" 2 p2p --op "$3" --size "$4,$4" --batch "$5" --seconds "$seconds" --concurrency "$concurrency"
  lab_wait || row_failed "$1 failed"
}

# links NAME SIZE BATCH RATE...: all together, and one of each rate alone; writes and reads
links() {
  local name=$1 size=$2 batch=$3 op round rail rate done_rates all=(eth{0,1,2,3})
  shift 3
  shape "${@/%/mbit}"
  for op in write read; do
    for ((round = 1; round <= rounds; ++round)); do
      measure "$name.$op.$size.all.$round" "$(IFS=, && echo "${all[*]:0:$#}")" $op "$size" "$batch"
      rail=0 done_rates=' '
      for rate in "$@"; do
        [[ $done_rates == *" $rate "* ]] ||
          measure "$name.$op.$size.$rate.$round" eth$rail $op "$size" "$batch"
        done_rates+="$rate " rail=$((rail + 1))
      done
    done
    "${report[@]}" links "$name" $op "$size" "$batch" "$@"
  done
}
row_even() { links even 1M 16 500 500 && links even 16M 1 500 500; }
row_uneven() { links uneven 1M 16 500 250; }
row_four() { links four 1M 16 400 200 200 100; }

# load NAME: writes that go on for 50 minutes, longer than the row, and are checked every 10 s
load() {
  lab_perf "$1" 2 p2p --size "$(yes 16M | head -n 300 | paste -sd,)" --seconds 10 --concurrency 2
  load_name=$1
}
# load_failed N: whether a rank has ended. Then a request has failed, and the load begins anew.
load_failed() {
  { kill -0 "${rank_pids[0]}" && kill -0 "${rank_pids[1]}"; } 2>/dev/null && return 1
  sleep 5 # for the other one to end
  kill "${rank_pids[@]}"
  lab_wait
  say "outages: the load ended with $?:"
  tail -n 40 "$work/$load_name".?.err >&2
  load "outages.$1"
}
received() { in_worker 1 cat /sys/class/net/eth1/statistics/rx_bytes; }
event() { echo "outages $1 $EPOCHREALTIME" >>"$work/outages.events"; }
row_outages() {
  local sampler failures=0 n port enough
  shape 400mbit 400mbit
  lab_interfaces=eth0,eth1
  load outages.0
  ip netns exec w1 python3 "$(dirname "$0")/outages_report.py" sample eth0 eth1 >"$work/outages.samples" &
  sampler=$!
  sleep 8
  for ((n = 1; n <= times; ++n)); do
    port=q$((n % 2))
    say "outages: $n of $times: $port"
    event down
    ip -n switch link set $port down || row_failed "cannot cut the link"
    sleep 2
    event up
    ip -n switch link set $port up || row_failed "cannot mend the link"
    enough=$(($(received) + 10000000)) # a fifth of a second of its rate
    for _ in $(seq 150); do [ "$(received)" -ge $enough ] && break || sleep 0.1; done
    sleep 4
    load_failed $n && failures=$((failures + 1))
  done
  event down # the end
  kill "$sampler" "${rank_pids[@]}"
  lab_wait
  "${report[@]}" outages $failures
}

# killed N: a pair whose rank 1 is killed while it works; how the other one ends. The control connection
# of slime-perf carries nothing from rank 1 from then on: only libslime can tell rank 0. After that rank
# 0 waits for rank 1 for 7 s (kFailureReport and kRunLinger in settings/times.h) before it ends.
killed() {
  local begin code lab_port=$((31000 + 2 * $1))
  lab_perf "restarts.pair.$1" 2 p2p --size 4K --seconds 20 --timeout 8
  sleep "0.$((RANDOM % 50 + 20))"
  in_worker 1 nft "add rule netdev mute out tcp dport $((lab_port + 1)) drop" || row_failed "cannot drop packets"
  begin=$EPOCHREALTIME
  kill -9 "${rank_pids[1]}"
  wait "${rank_pids[1]}" 2>/dev/null
  wait "${rank_pids[0]}"
  code=$?
  echo "$code $begin $EPOCHREALTIME $(tail -n 3 "$work/restarts.pair.$1.0.err" | tr '\n' '|')" >>"$work/restarts.ends"
}

row_restarts() {
  local round when n killers pid
  local -A lasts=([before]=5 [during]=$times [after]=5) # seconds
  shape 400mbit
  lab_interfaces=eth0
  in_worker 1 nft "add table netdev mute; \
    add chain netdev mute out { type filter hook egress device eth0 priority 0; }" || row_failed "cannot drop packets"
  for ((round = 1; round <= rounds; ++round)); do
    for when in before during after; do
      say "restarts.$when.$round"
      lab_perf "restarts.$when.$round" 2 p2p --size 16M --seconds "${lasts[$when]}" --concurrency 2
      killers=()
      for ((n = 1; n <= times; ++n)); do
        [ $when = during ] || break
        killed $((round * times + n)) &
        killers+=($!) && sleep 0.9
      done
      lab_wait || row_failed "the steady writes failed"
      for pid in "${killers[@]}"; do wait "$pid"; done
    done
  done
  "${report[@]}" restarts
}

# shellcheck disable=SC2046 # words
lab_make 2 "$mtu" $(yes - | head -n 4) || exit 1
"${report[@]}" begin --mtu "$mtu" --rounds "$rounds" --concurrency "$concurrency"
for row in ${rows//,/ }; do
  lab_port=$((${lab_port:-29000} + 500)) # a row's own numbers are lost with its subshell
  ("row_$row") && continue
  missed+=" $row"
  "${report[@]}" missed "$row"
done
say "done"
[ -z "$json" ] || cp "$work/report.json" "$json"
[ -z "$missed" ] || { echo "bench/p2p.sh: rows that failed:$missed" >&2 && exit 1; }
