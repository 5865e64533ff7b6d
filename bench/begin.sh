# shellcheck shell=bash
# begin.sh: how a benchmark of this directory begins. To be sourced.

# bench_options NAMES ARGUMENT...: --NAME VALUE sets the variable of that name. Anything else prints
# the comment at the script's beginning, and the script ends.
bench_options() {
  local names=" $1 "
  shift
  while [ $# -gt 0 ]; do
    if [ "$1" = --help ]; then
      bench_usage
      exit 0
    fi
    if [[ $1 != --* || $names != *" ${1#--} "* || $# -lt 2 ]]; then
      bench_usage >&2
      exit 2
    fi
    printf -v "${1#--}" %s "$2"
    shift 2
  done
}

bench_usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }

# say WORDS: progress, for who waits
say() { echo "$(basename "$0" .sh): [$SECONDS s] $*" >&2; }

# row_failed WORDS: ends a row, which is a subshell; the others go on.
row_failed() {
  echo "$0: $1" >&2
  tail -n 5 "$work"/*.err >&2
  # shellcheck disable=SC2046 # words
  kill $(jobs -pr) 2>/dev/null
  exit 1
}

# bench_missed NAME: that run failed. Its end is shown, it leaves no result, and the others go on: the
# report says so of the rows that need it, and fails in the end.
bench_missed() {
  echo "$0: $1 failed; the other rows go on" >&2
  tail -n 5 "$work/$1".*.err >&2
  rm -f "$work/$1".*.json
}

# bench_begin PROGRAM...: what a benchmark needs: these programs, $build, $work, and nothing of the
# user's settings.
bench_begin() {
  local name
  build=${SLIME_BUILD_DIR:-$(dirname "$0")/../build}
  for name in "${!NCCL_@}"; do unset "$name"; done
  for name in "$@"; do
    [ -x "$build/bin/$name" ] || {
      echo "$0: $build/bin/$name is missing; run 'make bench' once" >&2
      exit 1
    }
  done
  work=$(mktemp -d) || exit 1
  trap 'rm -rf "$work"' EXIT
}
