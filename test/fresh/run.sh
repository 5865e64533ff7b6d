#!/bin/bash
# run.sh: what README and docs say of a fresh Debian 12, on one: a minimal Debian in a directory, in
# which the lines of README are run as they stand, from a clone of the last commit. Root is needed, and
# debootstrap. `make check-fresh` calls it; cases.sh has the cases.
#   SLIME_FRESH_CACHE    where the Debian and its packages are kept (default: build/fresh)
#   SLIME_FRESH_COMMIT   what is cloned (default: HEAD)
#   FRESH_CHECK=1        runs `make check` there too
#   SLIME_TOTALS_FILE    "passed failed skipped" is appended here
#   SLIME_NO_INSTALL=1   installs nothing on this machine
# Last line: N passed, N failed, N skipped. Exit code: 0, 1, 77 nothing could be run here.
set -u
cd "$(dirname "$0")/../.." || exit 1
export PATH=$PATH:/usr/sbin:/sbin
. test/finish.sh
. test/doc_block.sh
. test/fresh/cases.sh
totals_of_all=${SLIME_TOTALS_FILE:-}
cache=$(realpath -m "${SLIME_FRESH_CACHE:-build/fresh}")
clone=/root/libnet-slime user_clone=/home/user/libnet-slime
limit_s=1800 # for one case
passed=0 failed=0

skip() {
  echo "SKIPPED: $1"
  finish 0 0 1
  exit 77
}

# machine NAME: a new Debian with a user, and a clone for root and one for the user
machine() {
  make_machine "$cache/$1" && return
  echo "FAILED: the machine $1 cannot be made in $cache; is the disk full?"
  finish $passed $((failed + 1)) 0
  exit 1
}
make_machine() {
  local root=$1
  rm -rf "$root"
  cp -a "$cache/root" "$root" && chroot "$root" useradd --create-home user || return
  git clone --quiet --no-hardlinks . "$root$clone" &&
    git -C "$root$clone" checkout --quiet --detach "$commit" || return
  cp -a "$root$clone" "$root$user_clone" && chown -R 1000:1000 "$root$user_clone"
}

# The user's tree as it is after somebody built it there.
give_user_the_build() {
  cp -a "$cache/builder$clone/build" "$cache/builder$user_clone/" &&
    chown -R 1000:1000 "$cache/builder$user_clone/build"
}

# attempt WHAT MACHINE USER DIRECTORY SCRIPT: leaves what it printed in $log, and its exit code in $code
attempt() {
  local started=$SECONDS
  log=$logs/$((passed + failed)).log
  timeout -k 10 "$limit_s" test/fresh/machine.sh "$cache/$2" "$3" "$4" "$5" >"$log" 2>&1
  code=$?
  took=$((SECONDS - started))
}

# judge WHAT TROUBLE: counts, and shows the log of a failure. No TROUBLE: it passed.
judge() {
  if [ -z "$2" ]; then
    passed=$((passed + 1))
    printf 'ok      %4d s  %s\n' "$took" "$1"
  else
    failed=$((failed + 1))
    printf 'FAILED  %4d s  %s: %s\n' "$took" "$1" "$2"
    tail -n 40 "$log" | sed 's/^/  | /'
  fi
}

# lacking PATTERN...: the first that no line of the log has
lacking() {
  local pattern
  for pattern in "$@"; do
    grep -qE -- "$pattern" "$log" || { echo "no line like $pattern"; return; }
  done
}

# does WHAT MACHINE USER DIRECTORY SCRIPT [PATTERN]...: it succeeds, and prints these
does() {
  attempt "${@:1:5}"
  if [ "$code" -eq 0 ]; then judge "$1" "$(lacking "${@:6}")"; else judge "$1" "exit status $code"; fi
}

# refuses WHAT MACHINE USER DIRECTORY SCRIPT PATTERN...: it fails, and prints these
refuses() {
  attempt "${@:1:5}"
  if [ "$code" -ne 0 ] && [ "$code" -lt 124 ]; then judge "$1" "$(lacking "${@:6}")"; else
    judge "$1" "exit status $code"
  fi
}

[ "$(id -u)" -eq 0 ] || skip "a fresh Debian has a root of its own, which only root can make"
mk/ensure-tools.sh fresh || skip "packages are missing (above)"
unshare --mount --pid --fork true 2>/dev/null || skip "no mounts of its own here (unshare fails)"
commit=$(git rev-parse --verify "${SLIME_FRESH_COMMIT:-HEAD}^{commit}") || {
  echo "FAILED: git finds no commit ${SLIME_FRESH_COMMIT:-HEAD} here (see above)"
  finish 0 1 0
  exit 1
}
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
  echo "fresh: changes that are not committed are not tried"
reason=$(test/fresh/root.sh "$cache" 2>&1 >/dev/null) || skip "${reason##*fresh: }"
logs=$cache/logs
rm -rf "$logs" && mkdir -p "$logs" || exit 1
trap 'rm -rf "$cache/builder" "$cache/runner"' EXIT
before=$SECONDS
cases
echo "time: $before s for the Debian, $((SECONDS - before)) s for the cases; logs in $logs"
finish $passed $failed 0
[ $failed -eq 0 ]
