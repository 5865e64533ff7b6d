#!/bin/sh
# ensure-tools.sh GROUP...: installs with apt the packages that the named groups need and the machine
# lacks. Prints one line for each missing package, and nothing when none is missing.
# SLIME_NO_INSTALL=1: never installs; lists the missing packages and fails.
set -u
missing=

# has_header FILE: true if g++ finds it by itself or in the directories that the user added.
has_header() {
  for dir in $(printf %s "${CPATH:-}:${CPLUS_INCLUDE_PATH:-}" | tr : ' ') \
    /usr/local/include /usr/include; do
    [ -e "$dir/$1" ] && return 0
  done
  return 1
}

# has_library NAME: true if programs find it when they run. Not every user's PATH has ldconfig.
has_library() {
  PATH=$PATH:/usr/sbin:/sbin ldconfig -p | grep -qF "$1 "
}

# has_program NAME: also finds programs for administrators
has_program() {
  PATH=$PATH:/usr/sbin:/sbin command -v "$1"
}

# is_static NAME: true for a program that needs no libraries
is_static() {
  program=$(command -v "$1") && ! ldd "$program"
}

# has_provider NAME: true if verbs has a provider for these devices; libibverbs reads these files
has_provider() {
  [ -e "/etc/libibverbs.d/$1.driver" ]
}

# need PACKAGE WHY PROBE...: remembers the package when the probe fails.
need() {
  package=$1 why=$2
  shift 2
  "$@" >/dev/null 2>&1 && return
  printf '%-20s missing: %s\n' "$package" "$why" >&2
  missing="$missing $package"
}

for group in "$@"; do
  case $group in
  build)
    need g++ "compiles everything (C++20)" command -v "${CXX:-g++}"
    need libexpected-dev "tl::expected, the result type" has_header tl/expected.hpp
    need libibverbs-dev "headers of verbs; the library is loaded at run time" \
      has_header infiniband/verbs.h
    need libhwloc-dev "header of hwloc; the library is loaded at run time" has_header hwloc.h
    need libfabric-dev "headers of libfabric; the library is loaded at run time" \
      has_header rdma/fi_endpoint.h
    need nlohmann-json3-dev "JSON output of the tools" has_header nlohmann/json.hpp
    need libcli11-dev "command lines of the tools" has_header CLI/CLI.hpp
    need libyaml-cpp-dev "configuration of slime-switchd" has_header yaml-cpp/yaml.h
    need libmicrohttpd-dev "metrics of slime-switchd" has_header microhttpd.h
    ;;
  test)
    need libgtest-dev "GoogleTest, runs the tests" has_header gtest/gtest.h
    need libgmock-dev "GoogleMock, fakes in the tests" has_header gmock/gmock.h
    need libssl3 "keys of a switch's control channel" has_library libcrypto.so.3
    need binutils "nm and readelf, check the plugin's symbols" command -v readelf
    need python3 "reads JSON in the system tests" command -v python3
    need iproute2 "network namespaces of the rack test" has_program tc
    need nftables "loses and doubles packets there" has_program nft
    need pkgconf "finds the installed library, as its users do" command -v pkg-config
    ;;
  bmv2)
    need thrift-compiler "the runtime interface of bmv2" command -v thrift
    need libthrift-dev "calls it" has_header thrift/Thrift.h
    need libboost-dev "what Thrift's headers include" \
      has_header boost/numeric/conversion/cast.hpp
    ;;
  tofino)
    need protobuf-compiler "messages of BFRuntime, the runtime interface of Tofino" \
      command -v protoc
    need protobuf-compiler-grpc "its calls" command -v grpc_cpp_plugin
    need libprotobuf-dev "sends the messages" has_header google/protobuf/message_lite.h
    need libgrpc++-dev "makes the calls" has_header grpcpp/grpcpp.h
    ;;
  fuzz) need clang "libFuzzer, and the sanitizers that go with it" command -v clang++ ;;
  rdma)
    need qemu-system-x86 "the virtual machine with RDMA devices" has_program qemu-system-x86_64
    need busybox-static "its first programs" is_static busybox
    need kmod "finds the kernel modules it loads" has_program modprobe
    need cpio "packs them" command -v cpio
    need xz-utils "unpacks them" command -v xz
    need iproute2 "makes the devices: ip, tc and rdma" has_program rdma
    need libibverbs1 "verbs" has_library libibverbs.so.1
    need ibverbs-providers "verbs of Soft-RoCE" has_provider rxe
    ;;
  fresh)
    need debootstrap "makes a minimal Debian" has_program debootstrap
    need debian-archive-keyring "proves that its packages are Debian's" \
      test -e /usr/share/keyrings/debian-archive-keyring.gpg
    ;;
  ci) need ccache "finds again what another clone compiled" command -v ccache ;;
  bench) need python3 "prints the ratios" command -v python3 ;;
  format) need clang-format "checks the layout of the sources" command -v clang-format ;;
  tidy) need clang-tidy "checks names and common mistakes" command -v clang-tidy ;;
  *)
    echo "ensure-tools: unknown group '$group' (build, test, bmv2, tofino, fuzz, rdma, fresh, ci, bench, format, tidy)" >&2
    exit 2
    ;;
  esac
done
[ -n "$missing" ] || exit 0

as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
refuse() {
  echo "$1; install by hand: ${as_root:+sudo }apt-get install$missing" >&2
  exit 1
}
[ "${SLIME_NO_INSTALL:-0}" != 1 ] || refuse "not installing ('make run' and 'make check' do, plain 'make' and SLIME_NO_INSTALL=1 do not)"
command -v apt-get >/dev/null || refuse "no apt-get on this machine (names are Debian's)"
[ -z "$as_root" ] || command -v sudo >/dev/null || refuse "not root and no sudo"

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 "$@" \
    >>"$log" 2>&1
}
echo "installing with apt-get:$missing" >&2
# The package lists are refreshed only when the first try fails: they may be absent or stale.
# shellcheck disable=SC2086  # a list of names
apt install --no-install-recommends $missing || { apt update && : >"$log" &&
  apt install --no-install-recommends $missing; } || {
  tail -n 15 "$log" >&2
  refuse "apt-get failed (see above)"
}
