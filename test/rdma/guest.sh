#!/bin/bash
# guest.sh: the guest's first process once the host's files are there. It makes the Soft-RoCE
# devices, runs vm.sh's command and ends the machine.
#   /run/vm/settings   devices=N, directory=DIR
#   /run/vm/command    a bash script: environment, directory and command of vm.sh's caller
#   /run/vm/status     written here: the command's exit status
# bash /run/vm/guest.sh up I: for the command, to bring rvI up again, as the kernel forgets the
# routes of an interface that goes down.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
run=/run/vm
devices=0 directory=/
# shellcheck source=/dev/null
. $run/settings

# Device I: rxeI on rvI, which has the address 10.77.0.(I+1) and is a port of one bridge.
address() { echo "10.77.0.$(($1 + 1))"; }
route() { echo "route add 10.77.0.0/24 dev rv$1 src $(address "$1") table $((100 + $1))"; }

# All devices are in one network namespace, as rxe listens in the first one only. The kernel would
# take packets from one of its addresses to another over lo, and no fault of an interface would be
# felt. So the table of local addresses comes after rules that send what has a source address, or
# an interface, out there; only what arrives, and what a device sends to itself, is local before.
# 4200 bytes is room for RoCE's largest packet, 4096 bytes.
network() {
  local i own mac
  echo "link set lo up"
  echo "link add rbr mtu 4200 type bridge forward_delay 0 mcast_snooping 0"
  for ((i = 0; i < devices; ++i)); do
    own=$(address "$i")
    mac=$(printf 02:00:0a:4d:00:%02x $((i + 1)))
    echo "link add rv$i mtu 4200 address $mac type veth peer name rp$i mtu 4200"
    echo "link set rp$i master rbr up"
    echo "link set rv$i up"
    echo "addr add $own/24 dev rv$i"
    route "$i"
    echo "rule add pref 10 iif rv$i lookup local"
    echo "rule add pref 20 from $own to $own lookup local"
    echo "rule add pref 30 from $own lookup $((100 + i))"
    echo "rule add pref 30 oif rv$i lookup $((100 + i))"
  done
  echo "link set rbr up"
  echo "rule add pref 100 lookup local"
  echo "rule del pref 0"
}

# Packets from own addresses are welcome, and only the interface that has an address answers for it.
allow_own_packets() {
  local conf
  for conf in /proc/sys/net/ipv4/conf/{all,default}; do
    echo 1 >"$conf/accept_local"
    echo 0 >"$conf/rp_filter"
    echo 1 >"$conf/arp_ignore"
    echo 2 >"$conf/arp_announce"
  done
  echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
}

make_devices() {
  local i
  [ "$devices" -gt 0 ] || { ip link set lo up; return; }
  allow_own_packets
  ip -batch <(network) || return
  for ((i = 0; i < devices; ++i)); do echo "link add rxe$i type rxe netdev rv$i"; done >/run/rxe
  rdma -b /run/rxe || return
  for ((i = 0; i < devices; ++i)); do [ -e "/sys/class/infiniband/rxe$i" ] || return; done
}

# rxe works in the kernel's softirq threads: processes that poll must not keep them from it.
prefer_softirqs() {
  local pid
  for pid in $(pgrep ksoftirqd); do chrt -f -p 1 "$pid"; done
}

port() { # NAME: the device of that virtio port
  local name
  name=$(grep -lx "$1" /sys/class/virtio-ports/*/name) && echo "/dev/$(basename "${name%/name}")"
}

# The exit device of QEMU ends the machine at once. Should it not: a power-off.
end() {
  sync
  umount "$directory"
  printf '\1' | dd of=/dev/port bs=1 seek=$((0xf4)) status=none
  echo o >/proc/sysrq-trigger
  sleep 60
}

if [ "${1:-}" = up ]; then
  ip link set "rv$2" up && eval "ip $(route "$2")"
  exit
fi
mkdir -p /dev/pts /dev/shm "$directory"
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t 9p -o rw,trans=virtio,version=9p2000.L,msize=512000,cache=mmap work "$directory" ||
  echo "guest.sh: $directory cannot be mounted"
hostname slime-rdma
ulimit -l unlimited -c 0
if make_devices; then
  prefer_softirqs
  bash $run/command </dev/null >"$(port out)" 2>"$(port err)"
  echo $? >$run/status.new && mv $run/status.new $run/status
else
  echo "guest.sh: not all of $devices rxe devices could be made; the kernel says:"
  dmesg | tail -n 10
fi
end
