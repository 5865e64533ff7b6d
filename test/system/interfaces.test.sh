#!/bin/bash
# Which interfaces are rails where the user names none, of those that the kernel can make here, in a
# network namespace of the test's own; and that nothing is taken from a /sys of another namespace.
. "$(dirname "$0")/perf_support.sh"
unshare -n true 2>/dev/null || { echo "skipped: no network namespace can be made (root is needed)"; exit 77; }
unset NCCL_SLIME_IFNAME NCCL_SOCKET_IFNAME
export NCCL_SLIME_TRANSPORTS=tcp

# show COMMANDS: these make interfaces; then what slime-info says, in $work/NAME.err
show() {
  local name=$1 code
  unshare -n bash -e -c "ip link set lo up
    $2
    for _ in \$(seq 100); do
      ip -br link | grep -qE ' (DOWN|LOWERLAYERDOWN) ' || break # carriers come a little later
      sleep 0.1
    done
    exec '$build/bin/slime-info' --devices" >"$work/$name.err" 2>&1
  code=$?
  unknown=
  if grep -qE '^(Error: Unknown device type|RTNETLINK answers: Operation not supported)' "$work/$name.err"; then
    unknown=1
    echo "not tried: $name: this kernel has no such interface"
  fi
  [ $code -eq 0 ] || [ -n "$unknown" ] || not_ok "$name: exit status $code" "$work/$name.err"
}
# rails NAME EXPECTED: their names
rails() {
  local found
  found=$(sed -nE 's/^ +rail ([^ ]+) .*/\1/p' "$work/$1.err" | sort | xargs)
  if [ "$found" = "$2" ]; then ok "$1: rails $2"; else
    not_ok "$1: rails '$found', not '$2'" "$work/$1.err"
  fi
}
pair='ip link add vx type veth peer name eth0 index 4242
  ip addr add 10.5.0.1/24 dev eth0
  ip link set vx up
  ip link set eth0 up
'
bridge='ip link add br0 type bridge
  ip link add vy type veth peer name eth7
  ip link set vy master br0
  ip addr add 10.9.0.1/24 dev br0
  ip link set vy up
  ip link set eth7 up
  ip link set br0 up
'

show pod "$pair"
rails pod eth0 # the only interface of a container
show bridge "$pair $bridge"
rails bridge eth0
says bridge 'not used: br0 is a bridge of which no NIC'
show alone "$bridge"
rails alone br0
NCCL_SLIME_IFNAME=br0 show named "$pair $bridge"
rails named br0
show local "${pair/10.5.0.1/169.254.1.1} $bridge"
rails local br0
says local 'eth0 has a link-local address only'
NCCL_SLIME_SOCKET_SUBNET=10.9.0.0/16 show subnet "$pair $bridge"
rails subnet br0
says subnet 'rail br0 +tcp +10.9.0.1'
says subnet 'not used: eth0 has no address in NCCL_SLIME_SOCKET_SUBNET'
# The ranks of one host then use no loopback.
if NCCL_SLIME_SOCKET_SUBNET=10.5.0.0/16 unshare -n bash -e -c "ip link set lo up
  $pair
  exec '$build/bin/slime-perf' all_reduce --ranks 2 -b 8 -e 8 -n 1 -w 0" >"$work/ranks.out" 2>"$work/ranks.err"; then
  ok "two ranks in a subnet"
else
  not_ok "two ranks in a subnet" "$work/ranks.err"
fi
NCCL_SLIME_SOCKET_SUBNET=10.9.0.0 "$build/bin/slime-info" --devices >"$work/wrong.err" 2>&1
says wrong 'NCCL_SLIME_SOCKET_SUBNET="10.9.0.0" is not accepted: .*10.1.0.0/16,fd00::/8'
show macvlan "$pair
  ip link add mv0 link vx type macvlan
  ip addr add 10.6.0.1/24 dev mv0
  ip link set mv0 up"
[ -n "$unknown" ] || rails macvlan 'eth0 mv0'
show tunnel "$pair
  ip link add vxlan.calico type vxlan id 5 dstport 4789
  ip addr add 10.8.0.1/24 dev vxlan.calico
  ip link set vxlan.calico up"
[ -n "$unknown" ] || { rails tunnel eth0 && says tunnel 'vxlan.calico is a tunnel .vxlan.'; }

# A name that the host has too, with another index: its /sys is what this namespace sees.
host=$(basename "$(find /sys/class/net -maxdepth 1 -name '[a-z]*' ! -name lo -exec test -e {}/device \; -print | head -n 1)")
if [ -n "$host" ]; then
  show foreign "${pair//eth0/$host}"
  rails foreign "$host"
  says foreign 'no driver in /sys: virtual'
else
  echo "not tried: foreign: this host has no NIC whose name could be taken"
fi
exit $wrong
