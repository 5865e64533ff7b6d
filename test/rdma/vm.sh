#!/bin/bash
# vm.sh: runs a command in a virtual machine that has Soft-RoCE devices, so that RDMA's verbs are
# the kernel's own and no NIC is needed. QEMU computes every instruction (no KVM): things take three
# to ten times as long as outside.
#
# The guest sees the host's files, read-only; what it writes is gone with it, but for the current
# directory. Its network is its own: rxeI is on rvI, with the address 10.77.0.(I+1).
# shellcheck disable=SC2054  # the commas are QEMU's
# shellcheck disable=SC2317  # traps do reach it
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 125
top=$(cd "$here/../.." && pwd)
cache=${SLIME_RDMA_CACHE:-$top/build/rdma}
cpus=2 memory_mb=2048

usage() {
  cat <<'EOF2'
usage: test/rdma/vm.sh [--devices N] [--timeout S] COMMAND [ARGUMENT...]

Runs COMMAND as root in a virtual machine with N Soft-RoCE devices: rxe0, rxe1 ... on rv0, rv1 ...
with the addresses 10.77.0.1, 10.77.0.2 ... Directory, environment and files are those of the
caller; only the current directory can be changed. stdin is empty.

  --devices N   0 to 64 (default 4)
  --timeout S   end the machine after S seconds (default 300)
environment: SLIME_RDMA_CACHE (default build/rdma) and what else test/rdma/setup.sh names: the first
use installs packages and downloads a kernel.
Exit code: the command's; 124 out of time, 125 the machine failed, 77 it cannot be set up here,
2 usage.
EOF2
}

bad_usage() {
  echo "vm.sh: $1" >&2
  usage >&2
  exit 2
}

read_options() {
  devices=4 limit_s=300
  while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) usage; exit 0 ;;
    --devices | --timeout)
      [[ ${2:-} =~ ^[0-9]{1,6}$ ]] || bad_usage "$1 needs a number"
      if [ "$1" = --devices ]; then devices=$((10#$2)); else limit_s=$((10#$2)); fi
      shift 2
      ;;
    --) shift; break ;;
    -*) bad_usage "there is no option $1" ;;
    *) break ;;
    esac
  done
  [ $# -gt 0 ] || bad_usage "a command is missing"
  [ "$devices" -le 64 ] || bad_usage "--devices is 64 at most"
  [ "$limit_s" -gt 0 ] || bad_usage "--timeout is 1 at least"
  [ "$PWD" != / ] || bad_usage "the current directory cannot be /"
  command=("$@")
}

# What the guest reads: guest.sh says more.
write_run_files() {
  printf 'devices=%q directory=%q\n' "$devices" "$PWD" >"$run/settings"
  {
    export -p | grep -vE '^declare -x (OLDPWD|PWD|SHLVL|TERM)(=|$)'
    printf 'cd %q || exit 126\nexec' "$PWD"
    printf ' %q' "${command[@]}"
    echo
  } >"$run/command"
  cp "$here/guest.sh" "$run"
}

# Packed for each start: 0.1 s, and never older than init.sh.
pack_initramfs() {
  local tree=$run/tree busybox
  busybox=$(PATH=/usr/bin:/bin command -v busybox) || return
  mkdir -p "$tree"/{bin,dev,proc,sys,host,changes,root} &&
    cp "$busybox" "$tree/bin/busybox" && cp "$here/init.sh" "$tree/init" &&
    chmod +x "$tree/init" && cp -r "$cache/modules" "$tree" &&
    (cd "$tree" && find . | cpio -o -H newc --quiet) >"$run/initramfs" && rm -rf "$tree"
}

share() { # TAG DIRECTORY MORE
  machine+=(-fsdev "local,id=$1,path=${2//,/,,},security_model=none,multidevs=remap$3"
    -device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}
port() { # NAME DESCRIPTOR
  machine+=(-chardev "file,id=$1,path=/dev/fd/$2,append=on"
    -device "virtserialport,chardev=$1,name=$1")
}

# The kernel's options leave out what takes time; panic=-1 and -no-reboot end it on a panic.
describe_machine() {
  machine=(-accel tcg,thread=multi,tb-size=512 -cpu max -M q35,usb=off,smbus=off,sata=off
    -smp "$cpus" -m "$memory_mb" -nodefaults -no-user-config -display none -no-reboot
    -pidfile "$run/pid" -kernel "$cache/vmlinux" -initrd "$run/initramfs"
    -append "console=ttyS0 quiet loglevel=3 panic=-1 nokaslr mitigations=off tsc=reliable \
no_timer_check random.trust_cpu=on rcupdate.rcu_expedited=1 audit=0 apparmor=0 cryptomgr.notests"
    -serial "file:$run/console" -device isa-debug-exit,iobase=0xf4,iosize=0x4
    -device virtio-serial-pci)
  port out 8
  port err 9
  share host / ,readonly=on
  share work "$PWD" ''
  share vm "$run" ''
}

# The guest's stdout and stderr come by pipes, which are empty before this ends.
boot() {
  {
    {
      timeout --foreground -k 5 "$limit_s" qemu-system-x86_64 "${machine[@]}" \
        8>&3 9>&1 3>&- >"$run/qemu" 2>&1 </dev/null
      echo $? >"$run/qemu_status"
    } | cat >&2
  } 3>&1 | cat
}

stop() { # EXIT
  [ ! -s "$run/pid" ] || kill "$(cat "$run/pid")" 2>/dev/null
  wait
  exit "$1"
}

# result: the command's exit status, or what became of the machine
result() {
  local ended
  [ ! -s "$run/status" ] || exit "$(cat "$run/status")"
  ended=$(cat "$run/qemu_status")
  if [ "$ended" -eq 124 ] || [ "$ended" -eq 137 ]; then
    echo "vm.sh: not over after $limit_s s (--timeout); the console's last lines:" >&2
    tail -n 10 "$run/console" >&2
    exit 124
  fi
  echo "vm.sh: the machine failed (QEMU's exit status $ended); the last lines of its console, and" \
    "what QEMU says:" >&2
  tail -n 60 "$run/console" "$run/qemu" >&2
  exit 125
}

read_options "$@"
"$here/setup.sh" "$cache" || exit
run=$(mktemp -d "${TMPDIR:-/tmp}/slime-rdma.XXXXXX") || exit 125
trap 'rm -rf "$run"' EXIT
trap 'stop 130' INT
trap 'stop 143' TERM HUP
if ! write_run_files || ! pack_initramfs; then
  echo "vm.sh: no initramfs could be packed; is ${TMPDIR:-/tmp} full? (busybox, cpio)" >&2
  exit 125
fi
describe_machine
boot &
wait $!
result
