#!/bin/bash
# All_reduce by the software switch, through the plugin as NCCL drives it: right bits with 2 to 8
# ranks in every type and version, staged and direct, two jobs at once, with garbage on the wire;
# and when a rank or the switch dies, or was never there, every rank says so and ends.
. "$(dirname "$0")/perf_support.sh"
switchd=$build/bin/slime-switchd
[ -x "$switchd" ] || { echo "skipped: $switchd is not built"; exit 77; }
unset NCCL_SLIME_SWITCH NCCL_SLIME_SWITCH_KEY_FILE NCCL_SLIME_SWITCH_TIMEOUT
switch_pid=
stop_switch() {
  [ -z "$switch_pid" ] || { kill "$1" "$switch_pid" && wait "$switch_pid"; } 2>/dev/null
  switch_pid=
}
trap 'stop_switch -KILL; clean_up' EXIT

# start_switch [FORMATS]: a new one, on ports that nobody has, that adds up all numbers or these
# (data.formats); sets NCCL_SLIME_SWITCH and $data_port.
start_switch() {
  for _ in $(seq 10); do
    data_port=$(any_port)
    printf 'data: {listen: "127.0.0.1:%d", shards: 2, formats: %s}\n' \
      "$data_port" "${1:-all}" >"$work/switch.yaml"
    printf 'control: {listen: "127.0.0.1:%d"}\n' $((data_port + 10)) >>"$work/switch.yaml"
    "${launcher[@]}" "$switchd" --config "$work/switch.yaml" >"$work/ready" 2>"$work/switch.log" &
    switch_pid=$!
    export NCCL_SLIME_SWITCH=127.0.0.1:$((data_port + 10))
    for _ in $(seq 1200); do
      grep -qs ready "$work/ready" && return
      kill -0 "$switch_pid" 2>/dev/null || break
      sleep 0.05
    done
    stop_switch -KILL
  done
  not_ok "slime-switchd does not start" "$work/switch.log"
  exit 1
}

# correct NAME RANKS ARGUMENT...: nothing is wrong, everything was checked, the switch did it
correct() {
  local name=$1 count=$2
  shift 2
  run "$name" 0 all_reduce --algo collnet --ranks "$count" -n 2 -w 1 "$@"
  holds "$name" "r['algorithm'] == 'collnet' and len(r['rows']) > 0 and
    all(h['wrong'] == 0 for h in halves)" "0 wrong"
}

# refused NAME TEXT ARGUMENT...: a usage error that mentions TEXT
refused() {
  local name=$1 text=$2
  shift 2
  run "$name" 2 "$@" --ranks 2
  says "$name" "$text"
}

# within SECONDS COMMAND...: the command, which must not take longer
within() {
  local limit=$1 began=$SECONDS
  shift
  "$@"
  if [ $((SECONDS - began)) -le "$limit" ]; then ok "in $limit s: $2"; else
    not_ok "$((SECONDS - began)) s, not $limit: $*"
  fi
}

refused other_collective 'all_reduce only' all_gather --algo collnet
refused other_protocol 'no protocol but simple' all_reduce --algo collnet --proto ll
refused two_devices 'one device' all_reduce --algo collnet --net-dev 0,1
refused no_switch 'NCCL_SLIME_SWITCH is not set' all_reduce --algo collnet
NCCL_SLIME_SWITCH=127.0.0.1:1 within 50 run nobody_there 3 all_reduce --algo collnet --ranks 3
says nobody_there '127.0.0.1:1: .*nobody listens'
says nobody_there "slime-perf: rank 0: rank 0 .*CollNet connect: .*; all ranks end"
# One cause, one report: the plugin's warning, then the program's line; no rank repeats it.
if [ "$(wc -l <"$work/nobody_there.err")" = 2 ] &&
  [ "$(grep -c 'nobody listens' "$work/nobody_there.err")" = 1 ]; then ok "nobody_there: said once"
else not_ok "nobody_there: not said once" "$work/nobody_there.err"; fi

start_switch
NCCL_SLIME_EAGER_MAX=16 run small_eager 3 all_reduce --algo collnet --ranks 2
says small_eager 'CollNet needs NCCL_SLIME_EAGER_MAX of at least'
NCCL_SLIME_SWITCH_TENANT='my team' run odd_tenant 2 all_reduce --algo collnet --ranks 2
says odd_tenant 'NCCL_SLIME_SWITCH_TENANT="my team" is not accepted: expected .* letters, digits'
exact=-d\ int8,uint8,int32,uint32,int64,uint64
types=$exact,half,float,bfloat16
largest=$([ -n "${SLIME_SAN:-}" ] && echo 60K || echo 600K)
# shellcheck disable=SC2086  # two words
{
  correct sums_2 2 $types -o sum,avg -b 4 -e "$largest" -f 71
  correct sums_3 3 $types -o sum,avg -b 20 -e "$largest" -f 97 --direct
  correct extremes_4 4 $exact -o max,min -b 4 -e 300K -f 300 --channels 12
  correct wild_2 2 -d half,float,bfloat16 -b 8 -e 64K -f 8 --wild-tails
  correct extremes_2 2 $exact -o max,min -b 12 -e 300K -f 500 --direct
}
correct ranks_4 4 -d float,int32 -b 4 -e 2M -f 128 --staged
correct ranks_8 8 -d float,int32 -b 4 -e 200K -f 333
correct ranks_8_direct 8 -d half,uint64 -b 4 -e 200K -f 333 --direct
# What differs between versions is tables of pointers: a sanitizer need not see every one.
for api in $([ -n "${SLIME_SAN:-}" ] && echo 6 9 12 || echo 6 7 8 9 10 11 12); do
  correct "api_$api" 2 -b 8 -e 64K -f 8192 --api $api
  holds "api_$api" "r['plugin']['api_version'] == $api" "version $api was used"
done
refused unsupported 'does not reduce double by sum .* it supports sum and avg of int8 .*float' \
  all_reduce --algo collnet -d float,double
run injected 1 all_reduce --algo collnet --ranks 2 -b 64K -e 64K -n 2 --inject-error
holds injected "all(h['wrong'] == 1 for h in halves)" "the checker sees one flipped bit"
run ring 0 all_reduce --ranks 2 -b 64K -e 64K
holds ring "r['algorithm'] == 'ring'" "the ring is the default"

# Floats of 16 bits in 16-bit lanes: the same sums in half the packets.
for count in $([ -n "${SLIME_SAN:-}" ] && echo 3 || echo 2 3 4 8); do
  NCCL_SLIME_SWITCH_HALF_BITS=16 correct half_lanes_$count $count -d half,bfloat16 -o sum,avg \
    -b 4 -e 300K -f 333
done
NCCL_SLIME_SWITCH_HALF_BITS=16 correct half_lanes_wild 2 -d half,bfloat16 -b 8 -e 64K -f 8 \
  --wild-tails
NCCL_SLIME_SWITCH_HALF_BITS=auto correct half_lanes_auto 3 -d half,float,bfloat16 -b 8 -e 64K -f 8 \
  --wild-tails --direct

# packets BITS TYPE: how many with numbers rank 0 sends for so much, once each
much=$([ -n "${SLIME_SAN:-}" ] && echo 4M || echo 8M)
packets() {
  NCCL_SLIME_SWITCH_HALF_BITS=$1 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ALL run "packets_$1_$2" 0 \
    all_reduce --algo collnet --ranks 2 -d "$2" -b "$much" -e "$much" -n 1 -w 0 -c 0 \
    >>"$work/packets.checks"
  cat "$work/packets_$1_$2".{out,err} |
    sed -nE 's/.*rank 0 of 2: .*sent ([0-9]+),.* retransmitted ([0-9]+),.*exponent_rounds ([0-9]+),'\
'.*/\1 - \2 - \3/p' |
    head -n 1 | { read -r sum && echo $((sum)); }
}
wide=$(packets 32 bfloat16) half=$(packets 16 half) bfloat=$(packets auto bfloat16)
cautious=$(packets auto half)
grep -q '^not ok' "$work/packets.checks" && { cat "$work/packets.checks" && wrong=1; }
if [ "${wide:-0}" -gt 1000 ] && [ $((2 * half)) -lt $((wide * 21 / 20)) ] &&
  [ $((2 * bfloat)) -lt $((wide * 21 / 20)) ] && [ "$cautious" -gt $((wide * 19 / 20)) ]; then
  ok "half the packets: $half and $bfloat of $wide"
else
  not_ok "packets: 32 $wide, 16 $half, auto $bfloat, auto for half $cautious"
fi

# differing RANK BITS: ranks that were told different things
differing() {
  env RANK="$1" WORLD_SIZE=2 LOCAL_RANK="$1" MASTER_ADDR=127.0.0.1 MASTER_PORT=$((data_port + 20)) \
    NCCL_SLIME_SWITCH_HALF_BITS="$2" NCCL_DEBUG=WARN timeout -k 5 60 "${perf[@]}" all_reduce \
    --algo collnet -d bfloat16 -b 64K -e 64K -n 2 -w 1 >"$work/differing_$1.out" \
    2>"$work/differing_$1.err" </dev/null
}
differing 1 32 &
differing 0 16
code=$?
if wait $! && [ $code -eq 0 ]; then ok "ranks that differ add up all the same"; else
  not_ok "ranks that differ: exit status $code" "$work/differing_0.err"
fi
for rank in 0 1; do
  cat "$work/differing_$rank.out" >>"$work/differing_$rank.err"
  says differing_$rank "SWITCH_HALF_BITS is .* something else at rank $((1 - rank)), so all ranks use"
done

# A switch that adds up 32-bit integers only, as a switch chip does: all types all the same.
stop_switch -TERM
start_switch words
# shellcheck disable=SC2086  # two words
{
  correct words_sums 3 $types -o sum,avg -b 4 -e "$largest" -f 97
  correct words_extremes 2 $exact -o max,min -b 12 -e 300K -f 500 --direct
}
NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ALL NCCL_SLIME_SWITCH_HALF_BITS=16 correct words_wild 2 \
  -d half,float,bfloat16 -b 8 -e 64K -f 8 --wild-tails
cat "$work/words_wild.out" >>"$work/words_wild.err"
says words_wild 'travel as 32-bit integers in spite of NCCL_SLIME_SWITCH_HALF_BITS=16'
start words_job all_reduce --algo collnet --ranks 2 "${endless[@]}"
"$build/bin/slime-switchctl" --switch "$NCCL_SLIME_SWITCH" --json show >"$work/words.json" 2>&1
if python3 - "$work/words.json" <<'PY'; then ok "words: the job has i32 and u32 only"; else
import json, sys
report = json.load(open(sys.argv[1]))
words = ["i32", "u32"]
assert report["switch"]["formats"] == words, report
assert [job["formats"] for job in report["jobs"]] == [words], report
PY
  not_ok "words: other formats" "$work/words.json"
fi
kill "$run_pid"
await words_job 130 60
all_gone words_job
stop_switch -TERM
start_switch

# Two jobs at once, while others throw garbage at the switch: anything, and headers that are right
# in their first bytes (switch/protocol/sap.h) and small numbers in the rest.
python3 - "$data_port" <<'PY' &
import random, socket, sys, time
random.seed(1)
garbage = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 600
sent = 0
while time.monotonic() < end:
    body = random.randbytes(random.choice((0, 1, 4, 27, 28, 32, 1024, 4096)))
    if sent % 4:
        start = [0xA2, random.randint(1, 8), random.choice((0, 1, 16, 64, 112)), 0]
        body = bytes(start + random.choices((0, 0, 0, 1, 2, 8, 255), k=24)) + body
    garbage.sendto(body, ("127.0.0.1", int(sys.argv[1]) + sent % 2))
    sent += 1
    time.sleep(0.0005)
PY
thrower=$!
correct first_job 2 -b 4 -e 1M -f 8 -d int32 -c 2 >"$work/first_job.checks" &
first=$!
correct second_job 3 -b 4 -e 300K -f 8 -d float -c 2
wait "$first"
cat "$work/first_job.checks"
grep -q '^not ok' "$work/first_job.checks" && wrong=1
if kill "$thrower" 2>/dev/null; then ok "garbage came all the time"; else
  not_ok "the garbage ended too soon"
fi
wait "$thrower" 2>/dev/null

start killed_rank all_reduce --algo collnet --ranks 3 "${endless[@]}"
kill -9 "${ranks[1]}"
await killed_rank 3 50
for rank in 0 2; do says killed_rank "rank $rank: rank 1 \(process ${ranks[1]} on .*\) is gone"; done
all_gone killed_rank

# The ranks end, each with a sentence; or they go on without the switch, and nothing is wrong.
export NCCL_SLIME_SWITCH_TIMEOUT=3
start killed_switch all_reduce --algo collnet --ranks 3 "${lasting[@]}"
stop_switch -KILL
until_said killed_switch 'going on without the switch|^slime-perf: rank'
kill "$run_pid" 2>/dev/null
await killed_switch '0|3' 60
if [ "$code" -eq 0 ]; then
  holds killed_switch "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"
else
  for rank in 0 1 2; do says killed_switch "rank $rank: .*(switch|gone)"; done
fi
all_gone killed_switch
exit $wrong
