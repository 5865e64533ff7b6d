# shellcheck shell=bash disable=SC2154,SC2034  # cases.sh has the variables
# more_cases.sh: what cases.sh runs besides, read by it: libfabric's rails, and limits that the
# kernel sets a process.

# libfabric's rails over the same devices, each rank with one. FI_UNIVERSE_SIZE keeps the provider's
# queues small enough for Soft-RoCE. libfabric's main has the mend of 2.6's crash (its commit
# 697688386) and calls itself 2.6, too: for that there is SLIME_RDMA_FABRIC.
fabric_collective() { # COLLECTIVE
  local version newer="install 2.7 or later, or name its directory in LD_LIBRARY_PATH"
  transport=libfabric
  export NCCL_SLIME_TRANSPORTS=$transport NCCL_SLIME_FABRIC_PROVIDER='verbs;ofi_rxm'
  export FI_UNIVERSE_SIZE=16
  NCCL_SLIME_HCA='=rxe0' "$build/bin/slime-info" >"$results/$name.info" 2>&1
  version=$(sed -n 's/.*provider verbs;ofi_rxm of libfabric \([0-9.]*\)$/\1/p' "$results/$name.info")
  [ -z "$version" ] || [ "${SLIME_RDMA_FABRIC:-}" != any ] || version=any
  case $version in
  '') skip "$(grep -m 1 'not used: .*libfabric' "$results/$name.info" || echo "no libfabric rail")" ;;
  1.* | 2.[0-6]) skip "libfabric $version: its ofi_rxm uses connections that it has freed when an \
endpoint closes (rxm_close_conn), and processes crash; $newer" ;;
  *) collective 2 1 "$1" ;;
  esac
  transport=verbs
  export NCCL_SLIME_TRANSPORTS=$transport
  unset NCCL_SLIME_FABRIC_PROVIDER FI_UNIVERSE_SIZE
}

# p2p ARGUMENT...: libslime between two processes with two rails each, or $rails, whose link carries
# some bytes when it is made, and more for each request.
p2p() {
  start 2 "${rails:-2}" p2p --seconds 1 "$@"
  finish
  ended_well || return
  [ "$(sent $((2 * ${rails:-2})))" -gt "$sent_before" ] || not_ok "the interfaces have not carried it"
}

# Without what is about interfaces (Meet, Rails) or about processes (Restarts), and without lives in
# virtual time.
peer_tests='CAbi.*:Completion*:CppTest.*:Deadline.*:MessagesTest.*:Plan*:Pages*:Quiet.*:Remove*:TaggedTest.*'

# exhaustion SIZE TRY COMMAND...: rank 0 runs under the limit that COMMAND sets. Both ranks end, and
# rank 0's warning names its rail, the size and what to try. Without the limit they work again.
exhaustion() {
  local size=$1 try=$2 began=$SECONDS
  limited=("${@:3}")
  start 2 1 all_reduce -b 64K -e 256K -f 4 -n 2 -w 1
  limited=()
  finish
  [ $((SECONDS - began)) -le 60 ] || not_ok "the ranks end after $((SECONDS - began)) s"
  failed 0 && failed 1 || return
  says 0 "NCCL WARN .*rail rxe0: .*$size.*$try" || not_ok "rank 0 does not name rail, size, limit"
  mkdir -p "$results/$name.limited" && mv "$results/$name".[01].* "$results/$name.limited"
  collective 2 1 all_reduce
}

# As of a user whose RLIMIT_MEMLOCK is small, without the capability that lifts it.
memory_exhausted() {
  # shellcheck disable=SC2016  # not a command
  exhaustion '[0-9]+ bytes at 0x[0-9a-f]+ cannot be registered' 'see `ulimit -l`' \
    prlimit --memlock=2097152 setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock
}

# As in a container that has few objects of a NIC: queues and registrations. A rank takes more than 12.
objects_exhausted() {
  local root=$results/cgroup group
  group=$root/few
  {
    mkdir -p "$root" && mount -t cgroup2 cgroup "$root" && mkdir "$group" &&
      echo +rdma >"$root/cgroup.subtree_control" && echo "rxe0 hca_object=$1" >"$group/rdma.max"
  } || not_ok "no rdma controller of cgroups" || return
  # shellcheck disable=SC2016  # the other shell's
  exhaustion '[0-9]+ (bytes|completions|sends)' "see .*rdma.max of this process's cgroup" \
    bash -c 'echo $$ >"$0" && exec "$@"' "$group/cgroup.procs"
  { rmdir "$group" && umount "$root"; } || not_ok "the cgroup is not empty at the end"
}
