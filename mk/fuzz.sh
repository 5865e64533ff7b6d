#!/bin/bash
# fuzz.sh TARGET...: runs the fuzzers of build/fuzz/bin, two at a time, each from its kept corpus
# (test/fuzz/corpus/TARGET.tar.gz) and from the inputs of earlier runs (build/fuzz/corpus). Ends with
# a line per target. Fails if one of them found a failing input, which is then in build/fuzz/findings.
#   FUZZ_SECONDS   for each target; by default all together take ten minutes
#   FUZZ_MERGE=1   instead: reduces the kept corpora to the smallest inputs, in test/fuzz/corpus
set -u
cd "$(dirname "$0")/.." || exit 1
readonly jobs=2
build=build/fuzz
seconds=${FUZZ_SECONDS:-$((600 * jobs / $#))}
mkdir -p $build/findings
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}

# unpack TARGET: unpacks its kept corpus to build/fuzz/kept
unpack() {
  rm -rf "${build:?}/kept/$1"
  mkdir -p "$build/kept/$1" "$build/corpus/$1"
  [ ! -e "test/fuzz/corpus/$1.tar.gz" ] || tar -xzf "test/fuzz/corpus/$1.tar.gz" -C "$build/kept/$1"
}

run() {
  local name=$1 log=$build/findings/$1.log code=0
  unpack "$name" || return 1
  "$build/bin/fuzz-$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2500 \
    -print_final_stats=1 -artifact_prefix="$build/findings/$name-" \
    "$build/corpus/$name" "$build/kept/$name" >"$log" 2>&1 || code=$?
  printf '%-18s %10s runs  %s\n' "$name" "$(awk '/number_of_executed_units/ { print $2 }' "$log")" \
    "$([ $code = 0 ] && echo clean || echo "FOUND something: see $log")"
  return $code
}

# Only edges of the code count, not how often each was taken. That keeps a few files for each target.
merge() {
  local name=$1 kept=$build/kept/$1 fresh
  fresh=$(mktemp -d) || return 1
  unpack "$name" || return 1
  "$build/bin/fuzz-$name" -set_cover_merge=1 -use_counters=0 "$fresh" "$kept" "$build/corpus/$name" \
    >"$build/findings/$name-merge.log" 2>&1 || return 1
  # Regressions have names and stay; the others are named by their content.
  find "$kept" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
  # The longest inputs reach the most code. 40 of them keep the corpus small.
  find "$fresh" -type f -printf '%s %p\n' | sort -rn | head -n 40 | cut -d' ' -f2 | xargs -r mv -t "$kept"
  rm -rf "$fresh"
  mk/pack-corpus.sh "$kept" "test/fuzz/corpus/$name.tar.gz" || return 1
  printf '%-18s %4d files %7d bytes\n' "$name" "$(find "$kept" -type f | wc -l)" \
    "$(cat "$kept"/* | wc -c)"
}

action=run
[ -z "${FUZZ_MERGE:-}" ] || action=merge
export build seconds
export -f unpack run merge
printf '%s\n' "$@" | xargs -P $jobs -I '{}' bash -c "$action {}"
