#!/bin/bash
# cases.sh [CASE...]: what test/rdma/run.sh runs in the guest: verbs over the kernel's Soft-RoCE
# devices, first in order, then with faults. Prints a line for each case and what is in the logs of
# one that failed. Limits of time are several times what is seen.
#   SLIME_BUILD_DIR      where the programs are (default build)
#   SLIME_RESULTS_DIR    where the logs go
#   SLIME_TOTALS_FILE    "passed failed skipped" is appended here for each case
#   SLIME_RDMA_FABRIC    any: the case of libfabric runs with each version, also one known to fail
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
build=${SLIME_BUILD_DIR:-build} results=${SLIME_RESULTS_DIR:-build/results-rdma}
totals=${SLIME_TOTALS_FILE:-$results/totals}
collectives=(all_reduce all_gather reduce_scatter broadcast alltoall sendrecv)
mkdir -p "$results" || exit 1

# rxe takes 7 retries for endless. A lost packet at the end of a message is sent again after 1 s.
transport=verbs
export NCCL_SLIME_TRANSPORTS=$transport NCCL_SLIME_IB_TIMEOUT=18 NCCL_SLIME_IB_RETRY_CNT=6
export NCCL_DEBUG=INFO SLIME_BUILD_DIR=$build
port=20000

not_ok() { # SENTENCE
  echo "not ok: $1" >>"$results/$name.checks"
  return 1
}

skip() { # REASON
  echo "$1" >"$results/$name.skipped"
}

# start RANKS RAILS ARGUMENT...: ranks of slime-perf, each with devices of its own, as only then
# the packets pass the interfaces. $limited is a command in front of that of rank 0. Sets $pids.
limited=()
start() {
  local ranks=$1 rails=$2 rank devices prefix
  shift 2
  port=$((port + 10)) pids=() sent_before=$(sent "$((ranks * rails))")
  export WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
  export NCCL_SLIME_RAILS_PER_DEVICE=$rails
  for ((rank = 0; rank < ranks; ++rank)); do
    devices=$(seq -s , -f rxe%g $((rank * rails)) $((rank * rails + rails - 1)))
    prefix=()
    [ "$rank" -ne 0 ] || prefix=("${limited[@]}")
    # The parentheses keep the shell's own "Killed" line out of what is printed.
    (
      export RANK=$rank LOCAL_RANK=$rank NCCL_SLIME_HCA="=$devices"
      timeout -k 5 "$limit_s" "${prefix[@]}" "$build/bin/slime-perf" "$@"
      exit $?
    ) >"$results/$name.$rank.out" 2>"$results/$name.$rank.err" </dev/null &
    pids+=($!)
  done
}

# finish: waits for the ranks. Sets $codes.
finish() {
  local pid
  codes=()
  for pid in "${pids[@]}"; do
    wait "$pid"
    codes+=($?)
  done 2>/dev/null
}

sent_by() { cat "/sys/class/net/rv$1/statistics/tx_bytes"; } # DEVICE
sent() { # DEVICES: bytes that the interfaces of so many have sent
  local i sum=0
  for ((i = 0; i < $1; ++i)); do sum=$((sum + $(sent_by "$i"))); done
  echo $sum
}

ended_well() { # the ranks
  local code
  for code in "${codes[@]}"; do
    [ "$code" -eq 0 ] || { not_ok "exit status ${codes[*]}"; return; }
  done
}
# right DEVICES: the ranks ended well, over $transport, with nothing wrong, and by the interfaces
right() {
  local i
  ended_well || return
  grep -qE 'Out of bounds values *: 0 OK' "$results/$name.0.out" || { not_ok "no '0 OK'"; return; }
  for ((i = 0; i < $1; ++i)); do
    grep -qE "$transport rxe$i 10" "$results/$name".*.err ||
      { not_ok "rxe$i is no $transport rail"; return; }
  done
  [ $(($(sent "$1") - sent_before)) -gt 200000 ] || not_ok "the interfaces have not carried it"
}

# retry SECONDS COMMAND...: until it works
retry() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return
    sleep 0.1
  done
}
says() { grep -qE -- "$2" "$results/$name.$1".{out,err}; } # RANK TEXT
moves() { # DEVICE: it carries traffic
  local before
  before=$(sent_by "$1")
  retry 20 has_sent "$1" $((before + 100000))
}
has_sent() { [ "$(sent_by "$1")" -gt "$2" ]; }
rank_pid() { sed -n "s/^# *Rank *$1 Pid *\([0-9]*\) on .*/\1/p" "$results/$name.0.out"; }
under_way() {
  { retry 60 says 0 '\(elements\)' && moves 0; } || not_ok "the ranks do not begin"
}

# shellcheck source=test/rdma/more_cases.sh
. test/rdma/more_cases.sh

# The cases ---------------------------------------------------------------------------------------

# suite PROGRAM FILTER: tests of GoogleTest, as test/run.sh runs and counts them
suite() {
  SLIME_VERBS_RAILS=rxe0,rxe1 SLIME_TEST_FILTER=$2 SLIME_TEST_TIMEOUT_S=480 \
    SLIME_RESULTS_DIR=$results/$name test/run.sh "$build/test/$1" >"$results/$name.out"
  sed '$d' "$results/$name.out"
  grep -q ' passed, ' "$results/$name.out" || echo '0 1 0' >>"$totals"
}

collective() { # RANKS RAILS COLLECTIVE
  start "$1" "$2" "$3" -b 8 -e 256K -f 8 -n 2 -w 1
  finish
  right $(($1 * $2))
}

loss() { # PERCENT ITERATIONS: of the packets that rank 0 sends so many are lost
  local lost
  tc qdisc add dev rv0 root netem loss "$1%" || { not_ok "no netem"; return; }
  start 2 1 all_reduce -b 64K -e 1M -f 4 -n "$2" -w 1
  finish
  lost=$(tc -s qdisc show dev rv0 | sed -n 's/.*dropped \([0-9]*\).*/\1/p')
  tc qdisc del dev rv0 root
  right 2 || return
  [ "${lost:-0}" -gt 0 ] || not_ok "no packet was lost"
}

# The only rail of a link goes down: both ranks end, and a warning names the rail.
port_down() {
  start 2 1 "${endless[@]}"
  under_way && ip link set rv0 down
  finish
  up 0 || not_ok "rv0 does not come up again" || return
  failed 0 && failed 1 || return
  # Only a rank with works under way gets an error from its NIC; slime-perf ends the other one.
  says 0 'NCCL WARN .*rail rxe0 .*; this port went down' ||
    says 1 'NCCL WARN .*rail rxe1 .*10\.77\.0\.1.*NIC does not answer' ||
    not_ok "no rank names its rail"
}

# One of two goes down and comes back: nothing is wrong, and it carries traffic again.
port_back() {
  local down='rail rxe0 is down, 1 of 2 rails carry on' back='rail rxe[02] carries traffic again'
  start 2 2 all_reduce -b 64K -e 256K -f 4 -n 4 -w 0 -c 2 --duration 100
  if under_way && ip link set rv0 down; then
    retry 30 says 0 "$down" || not_ok "rank 0 does not say that rail rxe0 is down"
    moves 1 || not_ok "rail rxe1 does not carry on"
  fi
  up 0 || not_ok "rv0 does not come up again"
  { retry 40 says 0 "$back" && retry 10 says 1 "$back"; } || not_ok "rail rxe0 does not return"
  moves 0 || not_ok "rail rxe0 carries nothing after it"
  # Not to timeout: it would pass the signal on, and be told as well.
  kill "$(rank_pid 0)" "$(rank_pid 1)"
  finish
  right 4
}

# A rank is killed while the other only waits. As its end would be known by TCP, lo is cut before.
peer_killed() {
  local began
  export NCCL_SLIME_PEER_TIMEOUT=8
  start 2 1 "${endless[@]}"
  if under_way; then
    kill -STOP "$(rank_pid 1)"
    sleep 1
    tc qdisc add dev lo root netem loss 100%
    kill -KILL "$(rank_pid 1)"
    began=$SECONDS
    retry 20 says 0 'NCCL WARN .*rail rxe0' || not_ok "rank 0 says nothing"
    [ $((SECONDS - began)) -le 16 ] || not_ok "rank 0 says so after $((SECONDS - began)) s"
    tc qdisc del dev lo root
  fi
  unset NCCL_SLIME_PEER_TIMEOUT
  finish
  failed 0 || return
  says 0 'NCCL WARN .*rail rxe0 .*NIC does not answer' || not_ok "rank 0 does not name rail rxe0"
}

endless=(all_reduce -b 64K -e 64K -n 10000000)
failed() { [ "${codes[$1]}" -eq 3 ] || not_ok "rank $1: exit status ${codes[$1]}, not 3"; } # RANK
up() { bash /run/vm/guest.sh up "$1"; } # DEVICE

# -------------------------------------------------------------------------------------------------

elapsed() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }

# run NAME FUNCTION ARGUMENT...: one case; a sentence of not_ok fails it, too
run() {
  local began=$EPOCHREALTIME count='1 0 0' file
  name=$1
  [ ${#chosen[@]} -eq 0 ] || [[ " ${chosen[*]} " == *" $name "* ]] || return
  shift
  "$@" 2>"$results/$name.script" || [ -e "$results/$name.checks" ] || not_ok "it ended early"
  [ "$1" != suite ] || return 0
  [ ! -e "$results/$name.skipped" ] || count='0 0 1'
  [ ! -e "$results/$name.checks" ] || count='0 1 0'
  echo "$count" >>"$totals"
  # shellcheck disable=SC2086 # three numbers
  printf '%-34s %5d passed %3d failed %3d skipped %6.1f s\n' "$name" $count "$(elapsed "$began")"
  [ ! -e "$results/$name.skipped" ] || echo "  SKIPPED: $(cat "$results/$name.skipped")"
  [ -e "$results/$name.checks" ] || return
  for file in "$results/$name".{checks,script,0.out,*.err}; do
    echo "  --- $file, last 20 lines:"
    tail -n 20 "$file" | sed 's/^/  | /'
  done
}

chosen=("$@") limit_s=120
[ -e /run/vm/guest.sh ] || {
  echo "cases.sh: it makes and breaks interfaces; test/rdma/run.sh runs it in the guest" >&2
  exit 2
}
read -r uptime _ </proc/uptime
echo "guest: Linux $(uname -r), $(rdma link | grep -c rxe) rxe devices, started in $uptime s"
run contract suite contract '*verbs*'
run sleeping-receiver suite engine '*SleepingReceiver.*/verbs'
for what in "${collectives[@]}"; do run "$what-2x2" collective 2 2 "$what"; done
for what in all_reduce alltoall; do
  run "$what-4x1" collective 4 1 "$what"
  run "$what-4x4" collective 4 4 "$what"
done
run all_reduce-libfabric fabric_collective all_reduce
run loss-0.1 loss 0.1 20
run loss-1 loss 1 4
run port-down port_down
run port-back port_back
run peer-killed peer_killed
run forked-child suite boundary 'ForkedChild.OfLibc*'
for what in write read; do run "p2p-$what" p2p --op "$what" --size 8,4K,64K,1M; done
run p2p-pieces p2p --op write --size 4K --batch 64 --plan
run p2p-told p2p --op write --size 8,4K,64K --immediate
run p2p-send p2p --op send --size 8,4K,64K
run p2p-notify p2p --op notify --size 8,4K,64K
run p2p-signal p2p --op signal --size 8
# Beside a plain loop, whose connection has one rail.
for what in write read send; do
  rails=1 run "p2p-$what-raw" p2p --op "$what" --size 8,4K,64K,1M --raw --turns 5
done
rails=1 run p2p-told-raw p2p --op write --size 4K --batch 300 --concurrency 2 --immediate --raw
# Both engines of a test have both devices. 1,000 requests are given up.
NCCL_SLIME_HCA="=rxe0,rxe1" SLIME_REQUESTS=1000 run peer suite peer "$peer_tests"
run memory-exhausted memory_exhausted
for few in 6 9 12; do run "objects-exhausted-$few" objects_exhausted $few; done
true # the counts say what failed
