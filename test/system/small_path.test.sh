#!/bin/bash
# A path whose MTU is smaller than the hosts': what is longer is lost on the way, and
# nobody says so.
. "$(dirname "$0")/../../bench/lab.sh"
. "$(dirname "$0")/perf_support.sh"
. "$(dirname "$0")/lab_support.sh"
export NCCL_DEBUG=INFO
traffic=(-b 8 -e 1M -f 64 -n 4 -c 1 --quiet)

lab_make 2 9000 - - || { echo "skipped: network namespaces cannot be made here"; exit 77; }
for i in 0 1; do ip -n "w$i" route del "$(lab_net 0).0/24" dev eth1 metric 100 || exit 1; done

# narrow RAIL MTU: of the switch's ports. The hosts cut what they send into packets, as on a cable: the
# kernel lets through what could still be cut.
narrow() {
  local i
  for i in 0 1; do
    in_worker "$i" test/system/relay.py --plain "eth$1" && ip -n switch link set "$(lab_port "$1" "$i")" mtu "$2" || return
  done
}
# ring NAME: nothing is wrong
ring() {
  lab_perf "$1" 2 all_reduce --algo ring "${traffic[@]}"
  finish "$1" 0
  holds "$1.0" "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"
}
small='packets with [0-9]+ bytes of data do not reach'

narrow 0 1500 || exit 1
ring only_rail
says only_rail.0 "$small"
if [ "$(grep -cE "$small" "$work/only_rail.0.err")" -eq 1 ]; then ok "only_rail: said once"; else
  not_ok "only_rail: not said once" "$work/only_rail.0.err"
fi

# The ranks meet over eth0, whose path is as it should be.
narrow 0 9000 && narrow 1 1500 || not_ok "cannot move the small path"
lab_interfaces=eth0,eth1 ring second_rail
says second_rail.0 "rail eth1: TCP $small"

# Hosts with usual packets, and a tunnel on the way.
narrow 1 1400 && for i in 0 1; do ip -n "w$i" link set eth1 mtu 1500; done || not_ok "cannot make the MTUs smaller"
lab_interfaces=eth1 ring tunnel
says tunnel.0 "rail eth1: TCP $small"

# The packets of a switch that are as long as the hosts' MTU allows.
if [ -x "$build/bin/slime-switchd" ]; then
  lab_switchd "$work/switch" || exit 1
  narrow 0 1500 || not_ok "cannot make the path small"
  lab_perf jumbo 2 all_reduce --algo collnet "${traffic[@]}"
  finish jumbo 3
  says jumbo.0 'NCCL_SLIME_SWITCH_LANES=352'
  NCCL_SLIME_SWITCH_LANES=352 right lanes 2 "${traffic[@]}"
fi
exit $wrong
