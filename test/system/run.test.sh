#!/bin/bash
# What `make run RAIL=name` does once everything is built.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${SLIME_BUILD_DIR:-build}
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
export NCCL_SLIME_IFNAME=lo
unset NCCL_SLIME_TRANSPORTS NCCL_SLIME_FABRIC_PROVIDER
wrong=0

# expect WHAT EXIT RAIL PATTERN...: runs a command that prints the transport; each line must be there.
expect() {
  local what=$1 want=$2 rail=$3 code pattern
  shift 3
  # shellcheck disable=SC2016  # for the shell that is run
  mk/run.sh "$build" "$rail" \
    sh -c 'echo "ran over <${NCCL_SLIME_TRANSPORTS-}${NCCL_SLIME_FABRIC_PROVIDER:+ }${NCCL_SLIME_FABRIC_PROVIDER-}>"' \
    >"$out" 2>&1
  code=$?
  [ $code -eq "$want" ] || { echo "not ok: $what: exit status $code"; wrong=1; }
  for pattern in "$@"; do
    if grep -qE -- "$pattern" "$out"; then echo "ok: $what: $pattern"; else
      echo "not ok: $what: no line like $pattern"
      sed 's/^/  | /' "$out"
      wrong=1
    fi
  done
}

expect "a transport" 0 tcp '^  tcp +wanted +rail lo$' '^ran over <tcp>$'
expect "a provider of libfabric" 0 shm '^  libfabric +wanted +rail shm$' '^ran over <libfabric shm>$'
expect "a provider that does not exist" 3 'libfabric:pigeon' \
  '^  libfabric +wanted +no rail here: .*provider pigeon has no NIC here'
expect "none is named" 0 '' '^ran over <>$'
expect "a name that does not exist" 3 carrier-pigeon '^  carrier-pigeon +wanted +there is no such' \
  '^  tcp +rail lo$' '^  libfabric +no rail here: no EFA NIC' '^  verbs +(no rail here: .|rails? .)'
if grep -q '^ran over' "$out"; then
  echo "not ok: the command was run all the same"
  wrong=1
fi
NCCL_SLIME_IFNAME=none expect "a transport that finds nothing" 3 tcp \
  '^  tcp +wanted +no rail here: .*lo does not match NCCL_SLIME_IFNAME'
exit $wrong
