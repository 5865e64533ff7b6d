#!/bin/bash
# The P4 program on bmv2: every vector, random traces, and all_reduce of workers in a rack whose
# switch is simple_switch. What is needed is taken from
#   SLIME_P4C    p4c's compiler for bmv2 (default: p4c-bm2-ss)
#   SLIME_BMV2   simple_switch, with its runtime interface (default: simple_switch)
# docs/p4.md says how to get them.
p4c=$(command -v "${SLIME_P4C:-p4c-bm2-ss}") &&
  simple_switch=$(command -v "${SLIME_BMV2:-simple_switch}") || {
  echo "skipped: p4c-bm2-ss and simple_switch are not here (SLIME_P4C, SLIME_BMV2; docs/p4.md)"
  exit 77
}
. "$(dirname "$0")/../../bench/lab.sh"
. "$(dirname "$0")/../system/perf_support.sh"
. "$(dirname "$0")/../system/lab_support.sh"
# bmv2 takes some thousand packets in a second, beside ranks that want the same processors.
export NCCL_DEBUG=INFO NCCL_SLIME_SWITCH_TIMEOUT=10 NCCL_SLIME_SWITCH_SLOTS=16
lasting=(-b 4K -e 16K -f 4 -n 2 -w 0 -c 2 --duration 300)
shopt -s extglob
[ -x "$build/test/p4" ] || { echo "skipped: built without Thrift"; exit 77; }

# compile PROGRAM SOURCE: to $work/PROGRAM.json, without a warning
compile() {
  if "$p4c" --Wdisable=mismatch -I switch/p4 -o "$work/$1.json" "$2" 2>"$work/p4c.err" && [ ! -s "$work/p4c.err" ]; then
    ok "p4c compiles $2 without a warning"
  else
    not_ok "p4c" "$work/p4c.err"
    exit 1
  fi
}
compile v1model switch/p4/v1model/switch.p4
compile tna test/p4/tna_on_bmv2.p4

# start_bmv2 PROGRAM SPACE INTERFACE...: in that namespace, port I is the Ith interface. Sets
# $bmv2_pid.
start_bmv2() {
  local program=$1 space=$2 ports=() i=0 interface
  shift 2
  for interface in "$@"; do
    ports+=(-i "$i@$interface")
    i=$((i + 1))
  done
  ip netns exec "$space" "$simple_switch" --log-level off "${ports[@]}" --thrift-port 9090 \
    "$work/$program.json" >"$work/bmv2.log" 2>&1 &
  bmv2_pid=$!
  for _ in $(seq 600); do
    ip netns exec "$space" bash -c 'exec 3<>/dev/tcp/127.0.0.1/9090' 2>/dev/null && return
    kill -0 "$bmv2_pid" 2>/dev/null || break
    sleep 0.05
  done
  not_ok "simple_switch does not start" "$work/bmv2.log"
  exit 1
}
stop_bmv2() {
  kill "-${1:-TERM}" "$bmv2_pid"
  wait "$bmv2_pid" 2>/dev/null
}
# cable SPACE NAME PEER_SPACE PEER_NAME [MAC]: without offloads, and without IPv6, which would only
# make noise. MAC is that of the second end.
cable() {
  ip -n "$1" link add "$2" type veth peer name "$4" netns "$3" || exit 1
  [ -z "${5:-}" ] || ip -n "$3" link set "$4" address "$5" || exit 1
  local space end
  for space in "$1 $2" "$3 $4"; do
    read -r space end <<<"$space"
    ip netns exec "$space" sh -c "echo 1 >/proc/sys/net/ipv6/conf/$end/disable_ipv6"
    ip netns exec "$space" test/system/relay.py --plain "$end" || exit 1
    ip -n "$space" link set "$end" up || exit 1
  done
}

# Packet by packet ---------------------------------------------------------------------------------

mount -t tmpfs tmpfs /run && mkdir /run/netns || { echo "skipped: no namespaces here"; exit 77; }
lab_space bench || exit 1
cable bench port bench wire
# agrees PROGRAM: packet by packet
agrees() {
  start_bmv2 "$1" bench port
  if SLIME_P4_RUNTIME=127.0.0.1:9090 SLIME_P4_WIRE=wire SLIME_P4_PROGRAM=$1 \
    ip netns exec bench "$build/test/p4" --gtest_filter='Device.*' >"$work/device.out" 2>&1; then
    ok "$1: $(grep -E 'random packets agree' "$work/device.out")"
  else
    not_ok "$1: bmv2 and the slot machine differ" "$work/device.out"
  fi
  stop_bmv2
}
agrees v1model
agrees tna  # the controls of the switch for Tofino

# End to end ---------------------------------------------------------------------------------------
#
#     w0 eth0 == p0 +-------------+ p4 == eth0 control: slime-switchd
#     ...           |    asic:    |            |
#     w3 eth0 == p3 |simple_switch| runtime == runtime
#                   +-------------+
#
# The worker with number 1 is behind a relay that delays and reorders what it sends and gets.
workers=4 key=$work/switch.key
mac() { printf '02:00:00:00:01:%02x' "$1"; }
lab_space asic && lab_space control && lab_space r1 || exit 1
for ((i = 0; i < workers; ++i)); do
  lab_space "w$i" || exit 1
  if [ "$i" -eq 1 ]; then
    cable asic p1 r1 far && cable r1 near w1 eth0 "$(mac 1)"
    ip netns exec r1 test/system/relay.py near far --delay-us 0 1000 >"$work/relay" 2>&1 &
    retry 600 grep -qs ready "$work/relay" || not_ok "no relay" "$work/relay"
  else
    cable asic "p$i" "w$i" eth0 "$(mac "$i")"
  fi
  ip -n "w$i" addr add "$(worker_address "$i")/24" dev eth0 || exit 1
done
cable asic "p$workers" control eth0 "$(mac $workers)"
cable asic runtime control runtime
ip -n asic addr add 192.0.2.1/24 dev runtime && ip -n control addr add 192.0.2.2/24 dev runtime &&
  ip -n control addr add 198.18.0.2/24 dev eth0 || exit 1
ports=()
for ((i = 0; i <= workers; ++i)); do ports+=("p$i"); done
start_bmv2 v1model asic "${ports[@]}"

(umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$key")
{
  printf 'device:\n  driver: bmv2\n  runtime: 192.0.2.1:9090\n'
  printf 'data:\n  listen: %s:28880\n  shards: 4\n' $switch_address
  printf 'control:\n  listen: 198.18.0.2:28900\n  key_file: %s\nhosts:\n' "$key"
  for ((i = 0; i < workers; ++i)); do
    printf '  %s: {mac: "%s", port: %d}\n' "$(worker_address "$i")" "$(mac "$i")" "$i"
  done
  printf '  198.18.0.2: {mac: "%s", port: %d}\n' "$(mac $workers)" $workers
} >"$work/switch"
export NCCL_SLIME_SWITCH=198.18.0.2:28900 NCCL_SLIME_SWITCH_KEY_FILE=$key
lab_switchd_again "$work/switch" control || exit 1

# The switch is a switch: ping through it, and to it.
for to in "$(worker_address 2)" $switch_address; do
  if in_worker 0 test/p4/ping.py "$to" >"$work/ping" 2>&1; then ok "$(cat "$work/ping")"; else
    not_ok "no answer from $to" "$work/ping"
  fi
done

right calm 4 -n 1 -b 4 -e 16K -f 4096 -d float,int32
for ((i = 0; i < workers; ++i)); do
  lab_spoil "w$i" eth0 10 10 && lab_spoil asic "p$i" 10 10 || not_ok "packets are not lost"
done
right lossy 3 -n 2 -b 64 -e 16K -f 256 -d float,int8
counted lossy 1 retransmitted
for ((i = 0; i < workers; ++i)); do lab_spoil "w$i" eth0 0 0 && lab_spoil asic "p$i" 0 0; done
right wide 2 -n 1 -b 16K -e 16K -d int64,uint8 -o max

# simple_switch is killed in the middle, and started again: slime-switchd programs it.
begin returned 2 float
stop_bmv2 KILL
sleep 1
start_bmv2 v1model asic "${ports[@]}"
until_said returned 'on the switch at .* again'
# The P4 program counts the rounds of the new job.
counts_rounds() {
  in_worker 0 "$build/bin/slime-switchctl" --switch "$NCCL_SLIME_SWITCH" --key-file "$key" \
    stats --json >"$work/stats.json" 2>"$work/stats.err" && counts=$(python3 -c "import json, sys
r = json.load(open(sys.argv[1]))
jobs = [j['counters'] for j in r['jobs'] if j['counters']]
print(sum(j['contributions'] for j in jobs), 'contributions,', r['data']['restarts'], 'restart')
sys.exit(not (r['data']['restarts'] == 1 and any(j['rounds'] > 0 for j in jobs)))" \
  "$work/stats.json" 2>>"$work/stats.err")
}
if retry 300 counts_rounds; then
  ok "the counters of the P4 program: $counts"
else
  not_ok "the P4 program counted nothing" "$work/stats.json"
fi
end returned

exit $wrong
