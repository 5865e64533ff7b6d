#!/bin/bash
# run.sh [CASE...]: verbs over the kernel's Soft-RoCE devices, in a virtual machine (vm.sh): the
# contract suite, a receiver that sleeps, collectives over several ranks and rails, lost packets,
# ports that go down, a rank that is killed (also one with a child), registrations that run out, rails
# of libfabric, and libslime.
# `make check-rdma` builds what it needs and calls it. cases.sh and more_cases.sh have the cases.
#   SLIME_BUILD_DIR        where the build is (default: build); logs go to its results-rdma/
#   SLIME_TEST_TIMEOUT_S   limit for the machine (default 1500)
#   SLIME_TOTALS_FILE      "passed failed skipped" is appended here
#   SLIME_RDMA_FABRIC      see cases.sh
#   SLIME_RDMA_CACHE, SLIME_RDMA_KERNEL, SLIME_NO_INSTALL: see setup.sh
# Last line: N passed, N failed, N skipped. Exit code: 0, 1, 77 nothing could be run here.
set -u
cd "$(dirname "$0")/../.." || exit 1
. test/finish.sh
export SLIME_BUILD_DIR=${SLIME_BUILD_DIR:-build}
results=$SLIME_BUILD_DIR/results-rdma totals_of_all=${SLIME_TOTALS_FILE:-}
limit_s=${SLIME_TEST_TIMEOUT_S:-1500}
devices=16 # four ranks with four rails each

set_up() {
  local reason
  exec 3>&1
  reason=$(set -o pipefail; test/rdma/setup.sh 2>&1 | tee /dev/fd/3 | tail -n 1) && return
  echo "SKIPPED: ${reason#rdma: }"
  finish 0 0 1
  exit 77
}

for program in test/contract test/engine test/boundary test/peer bin/slime-perf; do
  [ -x "$SLIME_BUILD_DIR/$program" ] || {
    echo "run.sh: $SLIME_BUILD_DIR/$program is not built (make check-rdma builds it)" >&2
    finish 0 1 0
    exit 1
  }
done
set_up
before=$SECONDS
# The user's settings must not decide what the cases see.
for name in "${!NCCL_@}"; do unset "$name"; done
rm -rf "$results" && mkdir -p "$results" || exit 1
touch "$results/totals"
export SLIME_RESULTS_DIR=$results SLIME_TOTALS_FILE=$results/totals
test/rdma/vm.sh --devices $devices --timeout "$limit_s" test/rdma/cases.sh "$@"
code=$?
read -r passed failed skipped < <(
  awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$results/totals")
if [ $code -ne 0 ]; then
  echo "  FAILED: the virtual machine: exit status $code"
  failed=$((failed + 1))
elif [ $((passed + failed + skipped)) -eq 0 ]; then
  echo "  FAILED: no case ran; test/rdma/cases.sh has their names"
  failed=1
fi
echo "time: $before s for the set-up, $((SECONDS - before)) s in the machine; logs in $results/"
finish "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
