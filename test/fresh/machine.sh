#!/bin/bash
# machine.sh ROOT USER DIRECTORY SCRIPT: runs a script of bash in the Debian at ROOT, as USER (root, or
# user, whose home is /home/user), with no more of the host than its kernel, its network and the
# packages that earlier runs downloaded (ROOT/../archives). Mounts and processes are in namespaces, so
# they end with the script. Exit code: the script's.
set -u
root=$(realpath "$1") user=$2 directory=$3
[ "$user" = root ] && home=/root || home=/home/$user
export script=$4
# As an installed Debian has it. resolv.conf and the packages are the host's.
write_etc() {
  cp -L /etc/resolv.conf "$root/etc/resolv.conf" &&
    printf '%s\n' '127.0.0.1 localhost' "127.0.1.1 $(hostname)" '::1 localhost ip6-localhost' >"$root/etc/hosts"
}
write_etc || exit 125
# With pivot_root, because a process in a chroot may make no namespaces.
# shellcheck disable=SC2016  # for the shell in the namespaces
exec unshare --mount --pid --fork --kill-child bash -c '
  root=$1 user=$2 home=$3 directory=$4
  mount --bind "$root" "$root" && cd "$root" &&
    mount -t proc proc proc && mount -t sysfs -o ro sysfs sys && mount -t tmpfs tmpfs dev/shm &&
    mount -t devpts -o newinstance,ptmxmode=0666,gid=5,mode=620 devpts dev/pts &&
    mount --bind "$root/../archives" var/cache/apt/archives &&
    pivot_root . . && umount -l . && cd / || exit 125
  id=$(id -u "$user") || exit 125
  exec chroot --userspec="$id:$id" --groups= / env -i HOME="$home" USER="$user" TERM=dumb LANG=C.UTF-8 \
    PATH=/usr/local/bin:/usr/bin:/bin"$([ "$user" != root ] || echo :/usr/local/sbin:/usr/sbin:/sbin)" \
    bash -c "cd $directory || exit 125
$script"
' machine.sh "$root" "$user" "$home" "$directory" </dev/null
