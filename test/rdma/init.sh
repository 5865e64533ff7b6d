#!/bin/busybox sh
# shellcheck shell=dash
# shellcheck disable=SC2015  # A && B || fail: fail does not return
# init.sh: the guest's first process, in the initramfs that vm.sh packs. It loads the modules, puts
# the host's files together and hands over to guest.sh. What fails here is on the console.
#   shares by 9p: host (the host's /, read-only), work (the current directory), vm (vm.sh's files)
set -u
bb=/bin/busybox root=/root nine=trans=virtio,version=9p2000.L,msize=512000

fail() {
  echo "init.sh: $1"
  $bb poweroff -f
}

$bb mount -t proc proc /proc && $bb mount -t sysfs sys /sys && $bb mount -t devtmpfs dev /dev ||
  fail "no /proc, /sys or /dev"
while read -r module; do
  $bb insmod "/modules/$module" || echo "init.sh: module $module does not load"
done </modules/list

# Nothing that the guest writes reaches the host, but for the current directory.
$bb mount -t 9p -o "ro,$nine,cache=loose" host /host || fail "no share of the host's files"
$bb mount -t tmpfs tmpfs /changes && $bb mkdir /changes/upper /changes/work &&
  $bb mount -t overlay -o lowerdir=/host,upperdir=/changes/upper,workdir=/changes/work o $root ||
  fail "no overlay over the host's files"
$bb mkdir -p $root/dev $root/proc $root/sys $root/run
for place in dev proc sys; do $bb mount --move "/$place" "$root/$place"; done
$bb mount -t tmpfs tmpfs $root/run && $bb mkdir $root/run/vm &&
  $bb mount -t 9p -o "rw,$nine,cache=none" vm $root/run/vm || fail "no share of vm.sh's files"
exec $bb switch_root $root /bin/bash /run/vm/guest.sh
