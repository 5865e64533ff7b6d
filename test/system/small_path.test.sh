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
# ring NAME [ARGUMENT...]: nothing is wrong
ring() {
  lab_perf "$1" 2 all_reduce --algo ring "${traffic[@]}" "${@:2}"
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

# The same lengths, on a path that takes them: the acknowledgement and the answer are lost, not the hello.
# Of the first connection for data, the first segment gets through at the fourth time, and nothing comes back
# for a while after that. The second one, of another channel, gets nothing through for as long: so
# the peer still listens, and refuses a second hello for the first channel.
hello_magic=0x736c696d # "slim" (transports/tcp/frames/wire.h), as it is sent
lose_answers() {
  in_switch nft -f - <<END
table netdev lost {
  set first { type inet_service; flags dynamic; size 1; }
  set passed { type inet_service; flags dynamic; size 1; }
  set silent { type inet_service; flags dynamic; size 1; timeout 6s; }
  set second { type inet_service; flags dynamic; size 1; }
  set held { type inet_service; flags dynamic; size 1; timeout 6s; }
  set ports { type inet_service; flags dynamic; size 16; }
  chain hello {
    add @ports { tcp dport }
    add @first { tcp sport }
    tcp sport != @first tcp sport != @second add @second { tcp sport } add @held { tcp sport }
    tcp sport != @first return
    tcp sport @passed return
    numgen inc mod 4 < 3 drop
    add @passed { tcp sport } add @silent { tcp sport }
  }
  chain from_w0 { type filter hook ingress device p0 priority 0;
    ip length > 4000 @th,256,32 $hello_magic jump hello
    tcp dport @ports tcp sport @held drop
  }
  chain from_w1 { type filter hook ingress device p1 priority 0;
    tcp flags & (syn | fin | rst) == 0 tcp sport @ports tcp dport @silent drop
  }
}
END
}
narrow 0 9000 || not_ok "cannot widen the path"
if lose_answers; then
  ring lost_answer --channels 2
  says lost_answer.1 'its nonce is of no channel that waits here'
  if grep -qE "$small" "$work/lost_answer.0.err"; then not_ok "lost_answer: the path is not small" "$work/lost_answer.0.err"; fi
  in_switch nft delete table netdev lost
else
  left_out="skipped: lost_answer: nft cannot match the first bytes of a connection here"
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
if [ "$wrong" -eq 0 ] && [ -n "${left_out:-}" ]; then
  echo "$left_out"
  exit 77
fi
exit $wrong
