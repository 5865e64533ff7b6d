#!/bin/bash
# setup.sh [CACHE]: what vm.sh needs, once: a stock kernel as an uncompressed image, and the modules
# of it that Soft-RoCE takes. Half a minute and a download of 70 MB; the cache has 70 MB then, and
# 550 MB are needed for a moment.
# It installs packages (mk/ensure-tools.sh rdma), but not the kernel's.
#   CACHE                where it goes (default: $SLIME_RDMA_CACHE, or build/rdma)
#   SLIME_RDMA_KERNEL    a kernel package (.deb) that is there already, instead of the download
#   SLIME_NO_INSTALL=1   installs and downloads nothing
# Exit code: 0 all is there, 77 it cannot be had here (the last line says why).
# shellcheck disable=SC2015  # A && B || cannot: cannot does not return
set -u
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 77
cache=${1:-${SLIME_RDMA_CACHE:-$top/build/rdma}}
export PATH=$PATH:/usr/sbin:/sbin

# Modules in order of need: 9p and overlay for the files, then rxe. rxe asks for crc32 by name,
# which no list of dependencies has; rdma_ucm is for librdmacm, netem for losses.
modules=(virtio_pci virtio_console 9pnet_virtio 9p overlay crc32_generic crc32_pclmul crc32c_generic
  ib_uverbs rdma_ucm rdma_rxe veth bridge sch_netem)
made=$cache/made.1 # with another number where the layout of the cache changes

step() { echo "rdma: $1" >&2; }
cannot() {
  echo "rdma: $1" >&2
  exit 77
}

machine_fits() {
  [ "$(uname -s) $(uname -m)" = "Linux x86_64" ] ||
    cannot "the virtual machine is for x86-64 Linux, and this is $(uname -s) $(uname -m)"
  "$top/mk/ensure-tools.sh" rdma ||
    cannot "packages are missing (above); install them, or run this where they are"
}

kernel_name() {
  apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-/ { print $2; exit }'
}

# get_kernel: leaves the package's file name in $package
get_kernel() {
  local name
  package=${SLIME_RDMA_KERNEL:-}
  if [ -n "$package" ]; then
    [ -r "$package" ] || cannot "SLIME_RDMA_KERNEL=$package cannot be read"
    return
  fi
  [ "${SLIME_NO_INSTALL:-0}" != 1 ] || cannot "no kernel in $cache, and SLIME_NO_INSTALL=1 forbids \
the download; unset it, or name a linux-image package with SLIME_RDMA_KERNEL"
  name=$(kernel_name)
  if [ -z "$name" ]; then
    step "reading the package lists"
    apt-get -qq update >"$temp/log" 2>&1
    name=$(kernel_name)
  fi
  [ -n "$name" ] || cannot "apt-get knows no linux-image-amd64 (the name is Debian's); name a \
kernel package that has rdma_rxe and 9p with SLIME_RDMA_KERNEL"
  step "downloading $name (70 MB)"
  # A list that is older than the archive names packages that are gone.
  (
    cd "$temp" || exit
    apt-get -qq download "$name" || { apt-get -qq update && apt-get -qq download "$name"; }
  ) >"$temp/log" 2>&1 || {
    tail -n 5 "$temp/log" >&2
    cannot "$name cannot be downloaded (above); see whether apt-get reaches its archive, or name a \
file with SLIME_RDMA_KERNEL"
  }
  package=$(echo "$temp"/*.deb)
}

number() { od -An -v -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '; } # FILE OFFSET BYTES

# The kernel's payload, where the header says it is (the kernel's Documentation/x86/boot.rst,
# payload_offset). Without its own decompressor in front it boots in half the time.
unpack_image() { # VMLINUZ TO
  local start length unpack
  start=$((($(number "$1" $((0x1f1)) 1) + 1) * 512 + $(number "$1" $((0x248)) 4)))
  length=$(number "$1" $((0x24c)) 4)
  tail -c "+$((start + 1))" "$1" | head -c "$length" >"$temp/payload"
  for unpack in 'xz -dc --single-stream' 'gzip -dc' 'zstd -dcq'; do
    $unpack <"$temp/payload" >"$2" 2>/dev/null && return
  done
  cp "$1" "$2" # boots as well
}

# take_modules ROOT TO: the modules, decompressed, and a list in the order in which they load
take_modules() {
  local version name file
  version=$(basename "$1"/lib/modules/*) || return
  depmod -b "$1" "$version" || return
  for name in "${modules[@]}"; do
    modprobe -d "$1" -S "$version" --show-depends "$name" 2>"$temp/log" || {
      tail -n 3 "$temp/log" >&2
      cannot "$(basename "$package") has no module $name; name another one with SLIME_RDMA_KERNEL"
    }
  done >"$temp/order" || exit
  mkdir -p "$2" || return
  awk '$1 == "insmod" && !seen[$2]++ { print $2 }' "$temp/order" | while read -r file; do
    name=$(basename "$file" .xz)
    case $file in
    *.xz) xz -dc "$file" ;;
    *) cat "$file" ;;
    esac >"$2/$name" && echo "$name" >>"$2/list" || exit 1
  done
}

set_up() {
  temp=$cache/new
  rm -rf "$temp" && mkdir -p "$temp" || cannot "$cache cannot be written"
  trap 'rm -rf "$temp"' EXIT
  get_kernel
  step "unpacking $(basename "$package")"
  dpkg -x "$package" "$temp/root" || cannot "$package cannot be unpacked"
  step "taking the kernel and its modules"
  unpack_image "$(echo "$temp"/root/boot/vmlinuz-*)" "$temp/vmlinux" &&
    take_modules "$temp/root" "$temp/modules" || cannot "$package is no kernel package as expected"
  rm -rf "$cache/modules" && mv "$temp/vmlinux" "$temp/modules" "$cache" && touch "$made" ||
    cannot "$cache cannot be written"
  step "set up in $cache after $SECONDS s"
}

machine_fits
[ -e "$made" ] && exit 0
mkdir -p "$cache" || cannot "$cache cannot be written"
exec 9>"$cache/lock" && flock 9 # two at a time are one too many
[ -e "$made" ] || set_up
exit 0
