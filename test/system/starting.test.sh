#!/bin/bash
# The start over networks that are not ready: routes and neighbours that come seconds later, lost
# packets, hosts with IPv6 only, and names with addresses that lead nowhere.
. "$(dirname "$0")/../../bench/lab.sh"
. "$(dirname "$0")/perf_support.sh"
. "$(dirname "$0")/lab_support.sh"
export NCCL_DEBUG=INFO
[ -x "$build/bin/slime-switchd" ] || { echo "skipped: slime-switchd is not built"; exit 77; }
later=6 # seconds until a path is there: longer than a kernel looks for a neighbour
small=(-b 8 -e 4K -f 8 -n 2 -c 1)

lab_make 4 1500 - - || { echo "skipped: network namespaces cannot be made here"; exit 77; }
lab_switchd "$work/switch" || exit 1
# No way round by the other network.
for i in 0 1 2 3; do ip -n "w$i" route del "$(lab_net 0).0/24" dev eth1 metric 100 || exit 1; done

# ring NAME RANKS ARGUMENT...: nothing is wrong
ring() {
  local name=$1 ranks=$2
  shift 2
  lab_perf "$name" "$ranks" all_reduce --algo ring -w 0 "${small[@]}" "$@"
  finish "$name" 0
  holds "$name.0" "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"
}
# switch_shown NAME SPACE SWITCH: an operator there sees the switch
switch_shown() {
  if in_worker "$2" "${launcher[@]}" "$build/bin/slime-switchctl" --switch "$3" --timeout 60 \
    --key-file "$NCCL_SLIME_SWITCH_KEY_FILE" show >"$work/$1.out" 2>"$work/$1.err"; then
    ok "$1: slime-switchctl reaches the switch"
  else not_ok "$1: slime-switchctl does not reach the switch" "$work/$1.err"; fi
}
# for_a_while CUT MEND: the path is gone now, and there again $later seconds from now
for_a_while() {
  $1 || not_ok "$1 failed"
  { sleep $later && $2; } &
  mending=$!
}

# Rank 1's network of rail 1, over which the ranks connect; they meet over rail 0.
no_route() { ip -n w1 route del "$(lab_net 1).0/24" dev eth1; }
route() { ip -n w1 route add "$(lab_net 1).0/24" dev eth1 src "$(worker_address 1 1)"; }
no_neighbour() { ip -n switch link set "$(lab_port 1 1)" nomaster; }
neighbour() { ip -n switch link set "$(lab_port 1 1)" master br1; }
for path in route neighbour; do
  for_a_while no_$path $path
  lab_interfaces=eth1 ring "late_$path" 2
  wait "$mending"
done

# The network of the switch, and of the rendezvous.
no_network() { ip -n w1 link set eth0 down; }
network() { ip -n w1 link set eth0 up; }
for_a_while no_network network
switch_shown late_network 1 "$NCCL_SLIME_SWITCH"
for_a_while no_network network
lab_interfaces=eth1 ring late_rendezvous 2

# Rank 0 asks the switch, to which it has no route at first.
no_switch() { ip -n w0 route add unreachable $switch_address; }
switch() { ip -n w0 route del unreachable $switch_address; }
for_a_while no_switch switch
right late_switch 2 "${small[@]}"

# The switch's control channel answers, and its data port does not: at all, or to one rank.
drop() { # WHERE PORTS
  ip netns exec "$1" nft -f - <<END
add table ip silent
add chain ip silent input { type filter hook input priority 0; }
add rule ip silent input udp $2 28880 drop
END
}
for where in switch w1; do
  drop $where "$([ $where = switch ] && echo dport || echo sport)" || not_ok "nft failed"
  NCCL_SLIME_SWITCH_OPTIONAL=1 right "silent_$where" 2 "${small[@]}"
  says "silent_$where.1" 'the switch has not answered'
  ip netns exec $where nft delete table ip silent
done

# The sums come at one rank at once, and at the other when its time for the first one is over.
answers_again() {
  retry 600 grep -qs 'sums came at 1 of 2 ranks' "$work/late_sums.0.err" &&
    ip netns exec w1 nft delete table ip silent
}
drop w1 sport || not_ok "nft failed"
answers_again &
mending=$!
right late_sums 2 "${small[@]}"
wait "$mending" || not_ok "late_sums: rank 0 did not say that the other rank waits"

# Of 1000 packets 200 are lost on each way, until the ranks begin. Later losses would test the kernel's
# TCP, which doubles the pause before it sends a lone packet again: now and then that takes minutes.
lossy() { # COMMAND NAME ARGUMENT...
  lab_spoil_all 4 106 0 || not_ok "$2: no packets are lost"
  { retry 3000 stands_in '\(elements\)' "$work/$2.0.out" && lab_spoil_all 4 0 0; } &
  mending=$!
  "$@"
  kill "$mending" 2>/dev/null # it waits still if the run failed before
  wait "$mending" 2>/dev/null
  lab_spoil_all 4 0 0 || not_ok "$2: packets are still lost"
}
export NCCL_SLIME_CONNECT_TIMEOUT=300 NCCL_SLIME_PEER_TIMEOUT=300
for turn in 1 2; do
  lossy ring "lossy_$turn" 4 --timeout 300
  lossy right "lossy_collnet_$turn" 4 --timeout 300 "${small[@]}"
done
unset NCCL_SLIME_CONNECT_TIMEOUT NCCL_SLIME_PEER_TIMEOUT

# IPv6 beside IPv4, and names for both.
six() { echo "fd00:18::$((10 + $1))"; }
ip -n switch addr add fd00:18::1/64 dev br0 nodad || {
  echo "not tried: this kernel has no IPv6"
  exit $wrong
}
for i in 0 1; do ip -n "w$i" addr add "$(six $i)/64" dev eth0 nodad || exit 1; done
cat >"$work/hosts" <<END
127.0.0.1 localhost
$(six 0) head
fd00:18::1 the-switch
fd00:18::dead two-versions
$switch_address two-versions
END
mount --bind "$work/hosts" /etc/hosts || { echo "not tried: /etc/hosts cannot be replaced"; exit $wrong; }
# The first address of the name does not answer.
switch_shown two_versions 1 two-versions:28900
# The resolver cannot be reached at first.
echo "nameserver 127.0.0.1" >"$work/resolv.conf"
no_resolver() { mount --bind "$work/resolv.conf" /etc/resolv.conf; }
resolver() { echo "$switch_address later-switch" >>"$work/hosts"; }
for_a_while no_resolver resolver
switch_shown late_resolver 1 later-switch

export lab_interfaces=eth0
NCCL_SOCKET_FAMILY=AF_INET6 ring family_6 2
if grep -qF "$(six 0)" "$work/family_6.0.err"; then ok "family_6: over IPv6"; else
  not_ok "family_6: not over IPv6" "$work/family_6.0.err"
fi
for i in 0 1; do
  ip -n "w$i" -4 addr flush dev eth1 && ip -n "w$i" addr add "fd00:19::$((10 + i))/64" dev eth1 nodad || exit 1
done
lab_interfaces=eth0,eth1
NCCL_SOCKET_FAMILY=AF_INET ring family_4 2
says family_4.0 'eth1 .*AF_INET \(NCCL_SLIME_SOCKET_FAMILY\)'
lab_interfaces=eth0

# Hosts without IPv4, and a rendezvous by name.
kill "$switchd_pid"
wait "$switchd_pid" 2>/dev/null
for i in 0 1; do ip -n "w$i" -4 addr flush dev eth0 && ip -n "w$i" -4 addr flush dev eth1 || exit 1; done
ip -n switch -4 addr flush dev br0
worker_address() { echo head; } # rank 0's
ring only_ipv6 2
lab_switchd_in switch '[fd00:18::1]' "$work/switch6" || exit 1
export NCCL_SLIME_SWITCH=the-switch
switch_shown only_ipv6 1 the-switch
right only_ipv6_collnet 2 "${small[@]}"

exit $wrong
