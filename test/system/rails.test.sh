#!/bin/bash
# A CollNet communicator over two rails: workers with two interfaces each, in network namespaces.
# Both carry half; ranks with fewer rails, a rail that never works, and one that dies in the middle.
. "$(dirname "$0")/../../bench/lab.sh"
. "$(dirname "$0")/perf_support.sh"
export NCCL_DEBUG=INFO NCCL_SLIME_SWITCH_TIMEOUT=20 NCCL_SLIME_RAILS_PER_DEVICE=2
lab_interfaces=eth0,eth1
[ -x "$build/bin/slime-switchd" ] || { echo "skipped: slime-switchd is not built"; exit 77; }

lab_make 2 9000 - - || {
  echo "skipped: network namespaces cannot be made here"
  exit 77
}
lab_switchd "$work/switch" || exit 1

# finish NAME: the run ends well, and nothing is wrong
finish() {
  local code
  lab_wait 2>/dev/null
  code=$?
  if [ $code -eq 0 ]; then ok "$1: exit status 0"; else
    not_ok "$1: exit status $code" "$work/$1.0.err"
  fi
  holds "$1.0" "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"
}
# right NAME ARGUMENT...: nothing is wrong, and the switch did it
right() {
  local name=$1
  shift
  lab_perf "$name" 2 all_reduce --algo collnet "$@"
  finish "$name"
  says "$name.0" 'results [1-9]'
}
# silent NAME TEXT: neither rank says it
silent() {
  if ! grep -hE "$2" "$work/$1".[01].err; then ok "$1: nothing of '$2'"; else
    not_ok "$1: says '$2'"
  fi
}
# mark: what every interface has sent until now
mark() {
  local at
  marks=()
  for at in w{0,1}:eth{0,1} switch:br{0,1}; do marks+=("$at=$(sent "${at%:*}" "${at#*:}")"); done
}
sent() { ip netns exec "$1" cat "/sys/class/net/$2/statistics/tx_bytes"; }
# since SPACE DEVICE: bytes that it has sent since mark
since() {
  local one
  for one in "${marks[@]}"; do
    [ "${one%=*}" != "$1:$2" ] || echo $(($(sent "$1" "$2") - ${one#*=}))
  done
}
# shares NAME SPACE DEVICE DEVICE FEWEST MOST: of 100 bytes since mark, the second sent so many
shares() {
  local first second sum share
  first=$(since "$2" "$3") second=$(since "$2" "$4")
  sum=$((first + second)) share=$((100 * second / (first + second)))
  if [ $share -ge "$5" ] && [ $share -le "$6" ] && [ $sum -gt 1000000 ]; then
    ok "$1: $share % of $sum bytes over $4 in $2"
  else
    not_ok "$1: $share % of $sum bytes over $4 in $2, not $5 to $6"
  fi
}
# cut I DEVICE, mend I: what worker I sends there by UDP is lost; the engine's own links stay
cut() {
  in_worker "$1" nft "add table inet cut; add chain inet cut out { type filter hook output priority 0; }; \
    add rule inet cut out oifname $2 meta l4proto udp drop"
}
mend() { in_worker "$1" nft delete table inet cut; }

# Both carry half, up and down.
mark
right two -w 1 -n 4 -b 4 -e 4M -f 64 -d float,int32
says two.0 'rail 1 to the switch is eth1 \(198.19.0.10\)'
shares two w0 eth0 eth1 45 55
shares two w1 eth0 eth1 45 55
shares two switch br0 br1 45 55
silent two 'so CollNet does without|going on without'

# A rank that has one rail only, so all use one.
ip -n w1 link set eth1 down
ip -n w1 route add 198.19.0.0/24 via 198.18.0.1 dev eth0
in_switch sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
mark
right uneven -w 1 -n 4 -b 4 -e 4M -f 64 -d float,int32
says uneven.0 '1 of 2 rails to the switch are used; another rank has no more'
shares uneven w0 eth0 eth1 0 5
ip -n w1 route del 198.19.0.0/24 dev eth0
ip -n w1 link set eth1 up
lab_route 1 1

# A rail that nothing gets through from the start.
cut 1 eth1 || not_ok "cannot cut a rail"
mark
right deaf -w 1 -n 4 -b 4 -e 4M -f 64 -d float,int32
says deaf.1 'nothing came back from the switch.s data address, .* over eth1 .*, so CollNet does without it'
says deaf.0 '1 of 2 rails to the switch are used'
shares deaf w0 eth0 eth1 0 5
mend 1

# One that dies in the middle: the ranks leave the switch, and come back without it.
NCCL_SLIME_SWITCH_TIMEOUT=2 lab_perf dying 2 all_reduce --algo collnet -d float "${lasting[@]}"
under_way dying
cut 0 eth1
mark
until_said dying 'on the switch at .* again'
sleep 1 # and all that follows goes over the other
kill "${rank_pids[@]}"
finish dying
says dying.0 'going on without eth1 .*, which does not reach the switch any more'
says dying.1 'going on without eth1 .*, which does not reach the switch any more'
shares dying w1 eth0 eth1 0 20

exit $wrong
