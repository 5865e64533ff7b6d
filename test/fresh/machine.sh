#!/bin/bash
# machine.sh ROOT USER DIRECTORY SCRIPT: runs a script of bash in the Debian at ROOT, as USER (root, or
# user, whose home is /home/user), with no more of the host than its kernel, its network and the
# packages that earlier runs downloaded (ROOT/../archives). Mounts and processes are in namespaces, so
# they end with the script. Exit code: the script's.
set -u
root=$1 user=$2 directory=$3
[ "$user" = root ] && home=/root || home=/home/$user
export script=$4
# shellcheck disable=SC2016  # for the shell in the namespaces
exec unshare --mount --pid --fork --kill-child bash -c '
  root=$1 user=$2 home=$3 directory=$4
  mount -t proc proc "$root/proc" && mount -t sysfs -o ro sysfs "$root/sys" &&
    mount -t tmpfs tmpfs "$root/dev/shm" &&
    mount --bind "$root/../archives" "$root/var/cache/apt/archives" || exit 125
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  id=$(chroot "$root" id -u "$user") || exit 125
  exec chroot --userspec="$id:$id" --groups= "$root" env -i HOME="$home" USER="$user" TERM=dumb LANG=C.UTF-8 \
    PATH=/usr/local/bin:/usr/bin:/bin"$([ "$user" != root ] || echo :/usr/local/sbin:/usr/sbin:/sbin)" \
    bash -c "cd $directory || exit 125
$script"
' machine.sh "$root" "$user" "$home" "$directory" </dev/null
