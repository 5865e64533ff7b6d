#!/bin/bash
# Ranks that are processes of their own, over a software provider of the libfabric that is installed:
# nothing is wrong, and a rank that is killed is noticed by the others.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${SLIME_BUILD_DIR:-build}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export NCCL_SLIME_TRANSPORTS=libfabric NCCL_SLIME_FABRIC_PROVIDER=shm NCCL_SLIME_IFNAME=lo
wrong=0

if ! "$build/bin/slime-info" --transports >"$work/transports"; then
  grep libfabric "$work/transports"
  echo "skipped: libfabric has no provider shm here"
  exit 77
fi

fail() {
  echo "not ok: $1"
  sed 's/^/  | /' "$work/out"
  wrong=1
}

for collective in all_reduce alltoall; do
  if timeout 120 "$build/bin/slime-perf" $collective --ranks 3 -b 8 -e 1M -f 16 -c 1 >"$work/out" 2>&1; then
    echo "ok: $collective"
  else
    fail "$collective: exit status $?"
  fi
  grep -qE '^# rail shm .*libfabric' "$work/out" || fail "$collective: it did not go over shm"
done

# Rank 1 ends in the middle; the exit status says that a rank failed, within the time-out.
timeout 120 "$build/bin/slime-perf" all_reduce --ranks 2 -b 1M -e 1M --duration 60 >"$work/out" 2>&1 &
perf=$!
for _ in $(seq 300); do
  rank=$(sed -n 's/^#  Rank  1 Pid *\([0-9]*\) .*/\1/p' "$work/out")
  [ -n "$rank" ] && break
  sleep 0.1
done
if [ -n "$rank" ]; then kill -9 "$rank"; fi
wait $perf
code=$?
rm -f "/dev/shm/$rank:"*  # of the provider, which a killed process cannot remove
if [ -n "$rank" ] && [ $code -ne 0 ] && [ $code -ne 124 ]; then
  echo "ok: a rank that is killed"
else
  fail "a rank that is killed: exit status $code"
fi
exit $wrong
