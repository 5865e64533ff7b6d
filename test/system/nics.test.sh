#!/bin/bash
# Hosts with several NICs: in one subnet, with one of them in another network, in another order, and
# fewer of them. Every run is right, and the interfaces themselves say what they have sent.
. "$(dirname "$0")/../../bench/lab.sh"
. "$(dirname "$0")/perf_support.sh"
. "$(dirname "$0")/lab_support.sh"
export NCCL_DEBUG=INFO
lab_interfaces=eth0,eth1
traffic=(-b 1M -e 2M -f 2 -n 3 -w 2 -c 1 --quiet)

# The links are what is slow: where the cores are, one NIC may carry all.
lab_make 2 1500 200mbit 200mbit || { echo "skipped: network namespaces cannot be made here"; exit 77; }
for i in 0 1; do ip -n "w$i" route del "$(lab_net 0).0/24" dev eth1 metric 100 || exit 1; done

sent() { ip netns exec "w$1" cat "/sys/class/net/$2/statistics/tx_bytes"; }
mark() {
  local i
  for i in 0 1; do before[2 * i]=$(sent $i eth0) before[2 * i + 1]=$(sent $i eth1); done
}
# ring NAME ARGUMENT...: nothing is wrong
ring() {
  local name=$1
  shift
  mark
  lab_perf "$name" 2 all_reduce --algo ring "${traffic[@]}" "$@"
  finish "$name" 0
  holds "$name.0" "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"
}
# share NAME I LEAST MOST: of 100 bytes that worker I has sent since mark, eth1 sent so many
share() {
  local one=$(($(sent "$2" eth0) - before[2 * $2])) two=$(($(sent "$2" eth1) - before[2 * $2 + 1]))
  local part=$((100 * two / (one + two + 1)))
  if [ $part -ge "$3" ] && [ $part -le "$4" ] && [ $((one + two)) -gt 1000000 ]; then
    ok "$1: $part % over eth1 of worker $2"
  else
    not_ok "$1: $part % of $((one + two)) bytes over eth1 of worker $2, not $3 to $4"
  fi
}
# shown NAME TEXT: slime-info of worker 0 says so
shown() {
  in_worker 0 env NCCL_SLIME_IFNAME=$lab_interfaces "${launcher[@]}" "$build/bin/slime-info" --devices >"$work/$1.err" 2>&1
  says "$1" "$2"
}
# place I DEVICE ADDRESS: its only address
place() { ip -n "w$1" addr flush dev "$2" && ip -n "w$1" addr add "$3/24" dev "$2"; }

ring apart
for i in 0 1; do share apart $i 10 90; done

shown default 'one device: 2 NICs without a PCI function'
says apart.0 'one device: 2 NICs without a PCI function'

# In another order: eth0 of one host is in the network of the other's eth1.
swap() {
  ip -n switch link set "$(lab_port 0 1)" master "$1" && ip -n switch link set "$(lab_port 1 1)" master "$2" &&
    place 1 eth0 "$3" && place 1 eth1 "$4" && ip -n w0 neigh flush all && ip -n w1 neigh flush all
}
swap br1 br0 "$(worker_address 1 1)" "$(worker_address 1 0)" || not_ok "cannot swap"
ring swapped
for i in 0 1; do share swapped $i 10 90; done
swap br0 br1 "$(worker_address 1 0)" "$(worker_address 1 1)" || not_ok "cannot swap back"

# One NIC in another network: the link starts without it, and says so; it joins when it can.
ip -n switch link set "$(lab_port 1 1)" master br0
ring elsewhere
says elsewhere.0 'the link starts with 1 of 2 rails: .*rail eth1'
says elsewhere.1 'the link starts with 1 of 2 rails'
share elsewhere 0 0 5
lab_perf joins 2 all_reduce --algo ring "${lasting[@]}"
under_way joins
ip -n switch link set "$(lab_port 1 1)" master br1
until_said joins 'rail eth1 joins the link'
kill "${rank_pids[@]}"
finish joins 0
holds joins.0 "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"

# One host has one NIC less.
ip -n w1 link set eth1 down
ring fewer
ip -n w1 link set eth1 up

# Both NICs in one subnet. What comes in for eth1 comes in there, as cautious operators set it.
one_subnet() {
  local i
  for i in 0 1; do
    ip -n switch link set "$(lab_port 1 $i)" master br0 && place $i eth1 "198.18.0.$((20 + i))" &&
      in_worker $i sh -c "cd /proc/sys/net/ipv4/conf/all && echo $1 >arp_ignore && echo $2 >arp_announce" &&
      ip -n w$i neigh flush all || return
  done
}
one_subnet 1 2 || not_ok "cannot put both into one subnet"
shown bound 'packets to .* are routed over eth0, so connections are bound to this interface$'
shown first 'packets to .* leave by it'
ring together
says together.0 'interface eth1, all programs: sent [1-9][0-9]{6,} bytes'
for i in 0 1; do share together $i 10 90; done
lab_interfaces='=eth1'
ring only_second
for i in 0 1; do share only_second $i 90 100; done
lab_interfaces=eth0,eth1
# With the kernel's defaults either interface answers for both addresses: nothing is wrong.
one_subnet 0 0 || not_ok "cannot change arp_ignore"
shown unbound 'arp_ignore=0 lets any interface answer for its address'
ring by_luck

exit $wrong
