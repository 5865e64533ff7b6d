#!/bin/bash
# nccl-tests-configs/tuner_table.py: from measurements to a tuner file. That the plugin accepts what
# it writes is the other half: test/unit/tuner_file_test.cc reads the same file.
set -u
cd "$(dirname "$0")/../.." || exit 1
top=$PWD
expected=$top/test/system/data/tuner.conf
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
cd "$root" || exit 1
wrong=0

# run WHAT EXIT PATTERN COMMAND...: exit status, and a regular expression over all output.
run() {
  local what=$1 want=$2 pattern=$3 output code
  shift 3
  output=$("$@" 2>&1)
  code=$?
  if [ $code -eq "$want" ] && [[ $output =~ $pattern ]]; then
    echo "ok: $what"
  else
    printf 'not ok: %s: exit status %s, not %s, or without "%s":\n%s\n' "$what" $code "$want" "$pattern" "$output"
    wrong=1
  fi
}
# shellcheck disable=SC2317  # called through run
table() { "$top/nccl-tests-configs/tuner_table.py" "$@"; }

# perf FILE ALGORITHM RANKS TYPE SIZE:TIME...: as slime-perf --json writes it.
perf() {
  local file=$1 algorithm=$2 ranks=$3 type=$4 rows='' pair
  shift 4
  for pair in "$@"; do
    rows+=$(printf '%s{"size": %s, "count": 1, "type": "%s", "redop": "sum", "root": -1,
      "out_of_place": {"time_us": %s, "best_us": 1, "wrong": 0},
      "in_place": {"time_us": %s, "best_us": 1, "wrong": 0}}' "${rows:+,}" "${pair%:*}" "$type" "${pair#*:}" "${pair#*:}")
  done
  printf '{"tool": "slime-perf", "collective": "all_reduce", "algorithm": "%s", "ranks": %s, "rows": [%s]}' \
    "$algorithm" "$ranks" "$rows" >"$file"
}
# kept FILE ENVIRONMENT: as run.sh keeps nccl-tests.
kept() {
  printf '{"schema": "slime-run/1", "tool": "nccl-tests", "operation": "all_reduce", "ranks": 2, "environment": {%s},
    "details": null, "rows": [{"size": 64, "type": "float", "redop": "sum", "root": -1,
    "out_of_place": {"time_us": 9}, "in_place": {"time_us": null}}]}' "$2" >"$1"
}

perf ring4 ring 4 float 8:10 1024:20 65536:100 131072:200 1048576:900 8388608:9000
perf coll4 collnet 4 float 8:40 1024:30 65536:80 131072:150 1048576:890 8388608:5000
perf ring2 ring 2 float 1024:20 65536:100
perf coll2 collnet 2 float 1024:10 65536:50
table --ring ring4 ring2 --collnet coll4 coll2 >written
run "wins and losses" 0 '^$' diff "$expected" written
run "a smaller margin" 0 'prefer 65536 8388608 4 4' table --ring ring4 --collnet coll4 --margin 1
run "several GPUs a node" 0 'prefer 1024 65536 2 2' table --ring ring2 --collnet coll2 --nodes 2
run "the fastest instead of the mean" 0 'won..otherwise avoid$' table --ring ring2 --collnet coll2 --best

# Every type and every run has to be won.
perf ring2h ring 2 half 1024:20 65536:100
perf coll2h collnet 2 half 1024:10 65536:110
run "two types" 0 'prefer 1024 1024 2 2.otherwise avoid$' \
  table --ring ring2 ring2h --collnet coll2 coll2h
perf coll2b collnet 2 float 1024:10 65536:110
run "two runs" 0 'prefer 1024 1024 2 2.otherwise avoid$' table --ring ring2 --collnet coll2 coll2b
perf ring2only ring 2 double 1024:20

# What is no measurement of that kind.
run "nothing in common" 3 'nothing that both' table --ring ring4 --collnet coll2
run "no type in common" 3 'nothing that both' table --ring ring2only --collnet coll2
run "sides exchanged" 2 'coll2 was measured by CollNet' table --ring coll2 --collnet coll2
run "rings twice" 2 'ring2 was measured without CollNet' table --ring ring2 --collnet ring2
run "too many nodes" 2 'from 2 to 2' table --ring ring2 --collnet coll2 --nodes 3
sed 's/all_reduce/broadcast/' ring2 >other
run "another collective" 2 'measured broadcast' table --ring other --collnet coll2
sed 's/"wrong": 0/"wrong": 3/' coll2 >bad
run "wrong results" 2 'wrong results at 1024 bytes' table --ring ring2 --collnet bad
sed 's/"ranks": 2/"ranks": "x\\n"/' ring2 >bad
run "strange ranks" 2 'ranks cannot be' table --ring bad --collnet coll2
echo '{"rows": 3}' >bad
run "no result" 2 'no result of run.sh' table --ring bad --collnet coll2
echo '{' >bad
run "no JSON" 2 'bad: ' table --ring bad --collnet coll2
run "no file" 2 'nosuch' table --ring nosuch --collnet coll2
run "a margin that cannot be" 2 'from 0 to 1000' table --ring ring2 --collnet coll2 --margin -1

# nccl-tests does not say what NCCL took: only what it was allowed to take counts.
kept without '"NCCL_DEBUG": "INFO"'
kept by '"NCCL_COLLNET_ENABLE": "1", "NCCL_ALGO": "ring,tree;allreduce:collnetchain"'
kept either '"NCCL_COLLNET_ENABLE": "1", "NCCL_ALGO": "ring,tree;allreduce:collnetchain,ring"'
kept model '"NCCL_COLLNET_ENABLE": "1"'
run "nccl-tests" 0 '64 +1.00  .not won..otherwise avoid$' table --ring without --collnet by
for file in either model; do
  run "nccl-tests with a choice: $file" 2 "$file: NCCL chose" table --ring without --collnet "$file"
done
run "nccl-tests without CollNet" 2 'without was measured without' table --ring without --collnet without
exit $wrong
