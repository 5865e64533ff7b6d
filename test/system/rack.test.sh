#!/bin/bash
# All_reduce by the software switch on a rack of network namespaces: loss, duplication, delay and
# reordering, flipped bits, a switch that is killed and comes back, alone and beside another, ranks
# that are stopped or killed, two jobs at once, and a hostile neighbour.
. "$(dirname "$0")/../../bench/lab.sh"
. "$(dirname "$0")/perf_support.sh"
. "$(dirname "$0")/lab_support.sh"
shopt -s extglob
export NCCL_DEBUG=INFO NCCL_SLIME_SWITCH_TIMEOUT=2
[ -x "$build/bin/slime-switchd" ] || { echo "skipped: slime-switchd is not built"; exit 77; }
# A sanitizer makes each operation many times slower.
slow=${SLIME_SAN:+10}
[ "${SLIME_SAN:-}" = tsan ] && slow=30
rounds() { echo $(($1 / ${slow:-1})); }

lab_make 4 9000 || { echo "skipped: network namespaces cannot be made here"; exit 77; }
lab_switchd "$work/switch" || exit 1

right calm 4 -n 4 -b 4 -e 1M -f 64 -d float,int32

lab_spoil_all 4 10 10 # of 1000
right lossy 4 -n 4 -b 4 -e 4M -f 64 -d float,int8
counted lossy 1 retransmitted
counted lossy 1 stale
lab_spoil_all 4 0 0

# A relay delays and reorders all that rank 1 sends and gets.
lab_relay 1 --delay-us 0 2000 || not_ok "no relay"
right relayed 3 -n 4 -b 4 -e 1M -f 64 -d float,int32
lab_no_relay 1 9000 || exit 1

# It flips bits too, and puts the checksums of UDP right. The check of a sum finds them, or the second
# copy of a maximum. Operations are small, as one that is damaged again and again gives up.
lab_relay 1 --delay-us 0 2000 --flip 0.01 || not_ok "no relay"
right damaged 3 -n 40 -b 64K -e 64K -d int32,float
counted damaged 1 corrupt
right damaged_max 3 -n 40 -b 64K -e 64K -d int32 -o max
counted damaged_max 1 corrupt
lab_no_relay 1 9000 || exit 1

# Two jobs at once, beside a neighbour who sends the switch anything, also in the name of rank 0.
ip netns exec w3 test/system/hostile.py "$switch_address" 28880 "$(worker_address 0)" 1 \
  >"$work/hostile.ready" 2>"$work/hostile" &
hostile_pid=$!
retry 600 grep -qs ready "$work/hostile.ready" || not_ok "no hostile neighbour" "$work/hostile"
lab_perf first 2 all_reduce --algo collnet -b 4 -e 1M -f 64 -d int32 -n "$(rounds 200)"
first_pids=("${rank_pids[@]}")
right second 3 -b 4 -e 1M -f 64 -d float -n "$(rounds 100)"
rank_pids=("${first_pids[@]}")
finish first 0
holds first.0 "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"
if kill "$hostile_pid"; then ok "the neighbour was hostile to the end"; else
  not_ok "the neighbour gave up" "$work/hostile"
fi
wait "$hostile_pid" 2>/dev/null
# The operator sees it, from a worker's host too.
in_worker 0 "${launcher[@]}" "$build/bin/slime-switchctl" --switch "$NCCL_SLIME_SWITCH" \
  --key-file "$NCCL_SLIME_SWITCH_KEY_FILE" --timeout 30 stats --json >"$work/stats.json" \
  2>"$work/stats.err" || not_ok "hostile: no counters from the switch" "$work/stats.err"
if malformed=$(python3 -c "import json, sys
n = json.load(open(sys.argv[1]))['data']['malformed']
print(n)
sys.exit(not n > 0)" "$work/stats.json" 2>>"$work/stats.err"); then
  ok "hostile: the switch counted $malformed malformed packets"
else
  not_ok "hostile: the switch counted no malformed packets" "$work/stats.err"
fi

missed_1() { grep -c 'rank 1 has not contributed' "$work/$1.0.err"; }
# stop_rank_1 NAME: in the middle of an operation, as rank 0 confirms (every 5 s at most); between
# operations there are pauses.
stop_rank_1() {
  local before
  for _ in $(seq 20); do
    before=$(missed_1 "$1")
    kill -STOP "${rank_pids[1]}"
    sleep 1
    [ "$(missed_1 "$1")" -gt "$before" ] && return
    kill -CONT "${rank_pids[1]}"
    sleep 0.1
  done
  not_ok "$1: rank 0 does not miss rank 1" "$work/$1.0.err"
}

# Bits in the switch's memory, in the middle of an operation: what one rank has contributed lies
# there, and the other is held up until they are flipped.
# A sanitizer's allocator puts the slots where flip_memory.py cannot find them.
flipped() {
  # A busy switch must not be left before it has sent what was flipped.
  NCCL_SLIME_SWITCH_TIMEOUT=20 NCCL_SLIME_SWITCH_SLOTS=1200 begin flipped 2 int32
  stop_rank_1 flipped
  if test/system/flip_memory.py "$switchd_pid" >"$work/flips" 2>&1; then ok "flipped: $(cat "$work/flips")"; else
    not_ok "flipped: nothing was flipped" "$work/flips"
  fi
  kill -CONT "${rank_pids[1]}"
  until_said flipped 'a fault, likely in memory' # whoever found it first
  until_said flipped 'on the switch at .* again'
  end flipped
  counted flipped 0 corrupt
}
if [ -z "$slow" ]; then flipped; else echo "not tried under a sanitizer: flipped bits"; fi

# A rank that is stopped is waited for, named, and not left out.
stopped_s=$([ -n "$slow" ] && echo 12 || echo 30)
begin stopped 3 int32
stop_rank_1 stopped
sleep "$stopped_s"
kill -CONT "${rank_pids[1]}"
end stopped
says stopped.0 'rank 1 has not contributed for 300 ms'

# The switch is killed in the middle, and another takes its place.
begin returned 3 float
kill -KILL "$switchd_pid"
wait "$switchd_pid" 2>/dev/null
until_said returned 'going on without the switch'
lab_switchd_again "$work/switch" || exit 1
until_said returned 'on the switch at .* again'
end returned

# Two switch hosts, where packets get lost; one is killed in the middle, and another takes its place.
one_switch=$NCCL_SLIME_SWITCH
lab_switch_hosts 2 2 "$work/host" || exit 1
lab_spoil_all 4 10 10
begin several 2 float
kill -KILL "${switchd_pids[1]}"
wait "${switchd_pids[1]}" 2>/dev/null
until_said several 'going on without this switch'
lab_switchd_again "$work/host.3" w3 || exit 1
until_said several 'on the switch at .* again'
end several
lab_spoil_all 4 0 0
NCCL_SLIME_SWITCH=$one_switch

# A rank that is killed is named by the others.
begin killed 3 float
kill -KILL "${rank_pids[1]}"
wait "${rank_pids[1]}" 2>/dev/null
began=$SECONDS
wait "${rank_pids[0]}" && not_ok "killed: rank 0 ended well"
wait "${rank_pids[2]}" && not_ok "killed: rank 2 ended well"
# Not as late as CONNECT_TIMEOUT or REQUEST_TIMEOUT would be.
if [ $((SECONDS - began)) -le 50 ]; then ok "killed: the others end after $((SECONDS - began)) s"; else
  not_ok "killed: the others took $((SECONDS - began)) s"
fi
says killed.0 'rank 1'

exit $wrong
