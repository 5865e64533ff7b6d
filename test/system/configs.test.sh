#!/bin/bash
# nccl-tests-configs: scenarios, run.sh, record.py and compare.py, with programs that stand in for
# nccl-tests and mpirun, and with slime-perf itself.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$PWD/${SLIME_BUILD_DIR:-build}
configs=$PWD/nccl-tests-configs
data=$PWD/test/system/data
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
unset MASTER_ADDR NCCL_TESTS_DIR MPIRUN SRUN "${!SLURM@}" "${!OMPI@}"
export SLIME_PERF=$build/bin/slime-perf
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

# result WHAT CONDITION: the newest file of $root/out, as r.
result() {
  local file
  # shellcheck disable=SC2012  # the names are ours
  file=$(ls -t "$root/out" | head -n 1)
  run "$1" 0 '' python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert eval("(" + sys.argv[2] + ")"), r' \
    "$root/out/$file" "$2"
}

mkdir "$root/tests" "$root/bin" "$root/out"
# Stand-ins: each prints a recorded table, keeps its arguments and the variables it saw.
for op in all_reduce broadcast; do
  cat >"$root/tests/${op}_perf" <<'EOF'
#!/bin/bash
echo "$0 $*" >>"$FAKE_LOG"
env | grep -E '^(NCCL|SLIME|MASTER)_' | sort >>"$FAKE_LOG"
cat "$FAKE_TABLE"
exit "${FAKE_EXIT:-0}"
EOF
  chmod +x "$root/tests/${op}_perf"
done
# A launcher that runs one rank, as mpirun would with rank 1.
cat >"$root/bin/mpirun" <<'EOF'
#!/bin/bash
[ "$1" != --version ] || { echo "mpirun ($FAKE_MPI)"; exit 0; }
echo "mpirun $*" >>"$FAKE_LOG"
until [[ $1 == */*_perf || $1 == */rank_env.sh ]]; do shift; done
OMPI_COMM_WORLD_RANK=1 exec "$@"
EOF
chmod +x "$root/bin/mpirun"
export FAKE_LOG=$root/log FAKE_TABLE=$data/nccl-tests-modern.txt FAKE_MPI="Open MPI 4.1.4"
# shellcheck disable=SC2317  # called through run
go() { "$configs/run.sh" "$@" --out "$root/out"; }
logged() { run "$1" 0 "$2" cat "$root/log"; }

# Usage.
run "help" 0 'usage: run.sh SCENARIO' go --help
for file in "$configs"/*.conf; do
  name=$(basename "$file" .conf)
  [ "$name" = common ] || run "listed: $name" 0 "(^|[[:space:]])$name +[A-Z]" go --list
done
for bad in "" "nosuch" "common" "loopback-2ranks --op ../x" "loopback-2ranks --op nosuch" \
  "loopback-2ranks -b 8;id" "loopback-2ranks -n -1" "loopback-2ranks -r x" "loopback-2ranks -d Float" \
  "loopback-2ranks --ranks 1" "loopback-2ranks --tool mpi" "loopback-2ranks --set PATH=/" \
  "loopback-2ranks --set NCCL_NET" "loopback-2ranks -e" "loopback-2ranks --nosuch 1" \
  "loopback-2ranks loopback-4rails" "hosts-mpirun" "hosts-mpirun --hosts /nonexistent" \
  "socket-2ranks --tool slime-perf" "loopback-2ranks --all"; do
  # shellcheck disable=SC2086  # words of one command line
  run "refused: $bad" 2 '^run.sh: ' "$configs/run.sh" --dry-run --tool slime-perf $bad
done
printf 'ranks=2\nNCCL_NET\n' >"$root/bad.conf"
run "a bad line of a scenario" 2 "bad.conf:2: 'NCCL_NET' is neither" go "$root/bad.conf"
printf 'colour=red\n' >"$root/bad.conf"
run "an unknown name in a scenario" 2 "bad.conf:1: 'colour' is no variable" go "$root/bad.conf"
run "no program at all" 3 'neither all_reduce_perf .* nor slime-perf' \
  env SLIME_PERF=/nonexistent PATH=/usr/bin:/bin "$configs/run.sh" loopback-2ranks

# nccl-tests, and what is kept of it.
export NCCL_TESTS_DIR=$root/tests PATH=$root/bin:$PATH
run "nccl-tests where it is installed" 0 'by nccl-tests' go loopback-4rails -b 8 -e 32K -f 64
logged "its arguments" "all_reduce_perf -g 2 -b 8 -e 32K -f 64"
logged "the scenario's variables" "NCCL_NET=SLIME.*NCCL_SLIME_RAILS_PER_IF=4.*NCCL_SOCKET_IFNAME=lo"
result "the rows of a new nccl-tests" 'len(r["rows"]) == 3 and r["rows"][2] == {"size": 32768, "count": 8192,
  "type": "float", "redop": "sum", "root": -1,
  "out_of_place": {"time_us": 87.4, "algbw_GBps": 0.37, "busbw_GBps": 0.37, "wrong": 0},
  "in_place": {"time_us": 86.92, "algbw_GBps": 0.38, "busbw_GBps": 0.38, "wrong": 0}}'
result "what describes the run" 'r["scenario"] == "loopback-4rails" and r["ranks"] == 2 and
  r["nccl_version"] == "2.30.7" and r["average_busbw_GBps"] == 0.131667 and r["tool"] == "nccl-tests" and
  r["environment"]["NCCL_SLIME_RAILS_PER_IF"] == "4" and r["machine"]["cores"] > 0 and
  r["date"].endswith("Z") and r["exit_code"] == 0 and "commit" in r'
FAKE_TABLE=$data/nccl-tests-legacy.txt run "an old nccl-tests" 0 'kept' go loopback-4rails --set NCCL_DEBUG=WARN
logged "variables by --set" "NCCL_DEBUG=WARN"
result "has other columns" 'r["nccl_version"] == "2.18.5" and r["rows"][0]["redop"] == "sum" and
  r["rows"][0]["in_place"] == {"time_us": 41, "algbw_GBps": 0.02, "busbw_GBps": 0.02, "error": 1e-7} and
  r["rows"][1]["out_of_place"]["error"] is None'
FAKE_TABLE=$data/nccl-tests-wrong.txt FAKE_EXIT=1 run "wrong results" 1 'kept' go loopback-2ranks --op broadcast
result "are kept, from labelled lines with time stamps" 'r["out_of_bounds"] == 2 and
  r["rows"][1]["in_place"]["wrong"] == 2000000 and r["rows"][1]["out_of_place"]["time_us"] == 1.2e6'
FAKE_EXIT=7 run "a run that fails in the end" 3 'kept' go loopback-2ranks
FAKE_TABLE=/dev/null run "a run without a table" 3 'no result: .* printed no row' go loopback-2ranks

# Launchers.
: >"$root/log"
printf '#!/bin/sh\necho "GPU 0: none"\n' >"$root/bin/nvidia-smi" && chmod +x "$root/bin/nvidia-smi"
run "two ranks on one GPU" 0 'kept' go two-ranks-one-gpu
NVIDIA_SMI=/nonexistent run "no GPU: skipped" 77 'skipped: two-ranks-one-gpu needs a GPU' go two-ranks-one-gpu
logged "by mpirun" "mpirun -n 2 --oversubscribe .*-x NCCL_HOSTID .*all_reduce_perf -g 1"
logged "each with a host id" "NCCL_HOSTID=slime1"
printf 'one slots=4\n# two\ntwo:4\n\n' >"$root/hosts"
: >"$root/log"
run "several hosts" 0 'kept' go hosts-mpirun --hosts "$root/hosts" --ranks-per-host 3
logged "Open MPI" "mpirun -n 6 --hostfile $root/hosts --map-by ppr:3:node .*-x NCCL_NET .*-x MASTER_ADDR"
logged "the meeting point" "MASTER_ADDR=one"
FAKE_MPI="HYDRA build details" run "MPICH" 0 'kept' go hosts-mpirun --hosts "$root/hosts"
logged "in its own words" "mpirun -n 2 -f $root/hosts -ppn 1 -genvlist [A-Z_0-9,]*NCCL_NET,"
run "Slurm" 0 'srun --ntasks 8 --ntasks-per-node 2 .*all_reduce_perf -g 1' \
  env SLURM_JOB_NUM_NODES=4 "$configs/run.sh" hosts-slurm --ranks-per-host 2 --dry-run
run "no allocation" 2 'salloc -N 2' "$configs/run.sh" hosts-slurm
run "no rank in the environment" 2 'no rank' "$configs/rank_env.sh" true

# slime-perf, the real one.
launcher=()
[ "${SLIME_SAN:-}" = tsan ] && launcher=(setarch "$(uname -m)" -R)
unset NCCL_TESTS_DIR
run "slime-perf where nccl-tests is not" 0 'by slime-perf.*#wrong.*kept' \
  "${launcher[@]}" "$configs/run.sh" loopback-4rails --lib "$build/lib" --out "$root/out" -b 8 -e 8K -f 32 -n 3 -w 1
result "is kept with its details" 'r["tool"] == "slime-perf" and [x["size"] for x in r["rows"]] == [8, 256, 8192] and
  all(x["out_of_place"]["wrong"] == 0 for x in r["rows"]) and r["details"]["tool"] == "slime-perf" and
  r["rows"][0]["out_of_place"]["best_us"] > 0 and r["details"]["plugin"]["name"] == "SLIME"'

run "a scenario about GPUs, and slime-perf" 77 'skipped: two-ranks-one-gpu is about GPUs' go two-ranks-one-gpu
run "several interfaces: not on loopback alone" 77 'skipped: .* has 1 to make one of' \
  go one-device-all-interfaces --set NCCL_SLIME_IFNAME=lo
run "its interfaces are not slime-perf's choice" 0 $'\nNCCL_SLIME_IFNAME=\n' "$configs/run.sh" \
  one-device-all-interfaces --dry-run
# What --all does with each outcome; the scenarios themselves are measured above.
mkdir "$root/all"
cp "$configs"/*.sh "$configs"/*.py "$configs"/common.conf "$root/all"
printf 'ranks=2\nNCCL_SOCKET_IFNAME=lo\n' >"$root/all/a.conf"
printf 'ranks=2\nneeds=gpu\n' >"$root/all/b.conf"
printf 'ranks=2\nNCCL_SLIME_DISABLE=1\n' >"$root/all/c.conf"
printf 'hosts=many\n' >"$root/all/d.conf"
run "all scenarios, counted" 3 'run.sh: 1 measured, 1 failed, 1 skipped$' "${launcher[@]}" \
  "$root/all/run.sh" --all --lib "$build/lib" --out "$root/out" -b 8 -e 8 -n 1 -w 0

# compare.py
result_of() { # SCENARIO TIME BUSBW
  printf '{"schema": "slime-run/1", "scenario": "%s", "operation": "all_reduce", "ranks": 2, "commit": "c%s",
    "machine": {"host": "h"}, "rows": [{"size": 8, "count": 2, "type": "float", "redop": "sum", "root": -1,
    "out_of_place": {"time_us": %s, "busbw_GBps": %s, "wrong": 0},
    "in_place": {"time_us": null, "busbw_GBps": null, "wrong": null}}]}' "$1" "$2" "$2" "$3"
}
result_of x 40 1.5 >"$root/a.json"
result_of x 10 6 >"$root/b.json"
result_of y 10 6 >"$root/c.json"
# shellcheck disable=SC2317  # called through run
compare() { "$configs/compare.py" "$@"; }
run "compare" 0 ' 8 +float +sum +-1 +40.00 +10.00 +0.25 +1.50 +6.00 +4.00 +0 +0' compare "$root/a.json" "$root/b.json"
run "what else differs" 0 'differs: commit: A "c40", B "c10"' compare "$root/a.json" "$root/b.json"
run "the mean ratio" 0 'geometric mean of time B/A over 1 rows: 0.250' compare --place out "$root/a.json" "$root/b.json"
run "different scenarios" 3 'scenario differs: x and y' compare "$root/a.json" "$root/c.json"
run "are compared by force" 0 '0.25' compare --force "$root/a.json" "$root/c.json"
run "nothing in common" 3 'no row that both' compare --place in "$root/a.json" "$root/b.json"
echo '{"rows": 3}' >"$root/d.json"
run "no result of ours" 2 'no schema' compare "$root/a.json" "$root/d.json"
run "no JSON" 2 'hosts' compare "$root/a.json" "$root/hosts"
run "no file" 2 'nonexistent' compare "$root/a.json" "$root/nonexistent"
run "no arguments" 2 'usage' compare
exit $wrong
