#!/bin/bash
# slime-perf as mpirun, srun and torchrun start it, played by setting the variables they set; and
# strangers on rank 0's port.
. "$(dirname "$0")/perf_support.sh"
port=$(any_port)

# rank NAME NUMBER VARIABLE=VALUE... -- ARGUMENT...: starts one rank in the background
started=()
rank() {
  local name=$1_$2 variables=()
  shift 2
  while [ "$1" != -- ]; do
    variables+=("$1")
    shift
  done
  shift
  env "${variables[@]}" timeout -k 5 60 "${perf[@]}" "$@" -b 8 -e 8 \
    --json "$work/$name.json" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
  started+=($!)
}
# ended NAME STATUS...: in the order in which they were started
ended() {
  local name=$1 code number=0
  shift
  for pid in "${started[@]}"; do
    wait "$pid"
    code=$?
    if [ "$code" -eq "$1" ]; then ok "$name: rank $number ends with $1"; else
      not_ok "$name: rank $number ends with $code, not $1" "$work/${name}_$number.err"
    fi
    shift
    number=$((number + 1))
  done
  started=()
}

for number in 0 1 2; do
  rank torchrun $number RANK=$number WORLD_SIZE=3 LOCAL_RANK=$number MASTER_ADDR=localhost \
    MASTER_PORT=$port TORCHELASTIC_RUN_ID=run$port -- all_reduce
done
ended torchrun 0 0 0
holds torchrun_0 "r['launcher'] == 'torchrun' and r['ranks'] == 3 and r['out_of_bounds'] == 0" "ran"
holds torchrun_0 "[m['devices'] for m in r['members']] == [['lo']] * 3" "the devices of each rank"
[ ! -s "$work/torchrun_1.out" ] && ok "torchrun: only rank 0 prints" ||
  not_ok "torchrun: rank 1 prints" "$work/torchrun_1.out"

for number in 0 1; do
  rank mpirun $number OMPI_COMM_WORLD_RANK=$number OMPI_COMM_WORLD_SIZE=2 \
    OMPI_COMM_WORLD_LOCAL_RANK=$number OMPI_COMM_WORLD_LOCAL_SIZE=2 \
    PMIX_NAMESPACE=job$port -- sendrecv
done
ended mpirun 0 0
holds mpirun_0 "r['launcher'] == 'mpirun' and r['out_of_bounds'] == 0" "ran"

for number in 1 0; do # rank 0 comes last
  rank srun $number SLURM_PROCID=$number SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=$number \
    SLURM_STEP_ID=0 SLURM_JOB_ID=$port SLURM_STEP_NODELIST=localhost -- all_gather
  sleep 0.3
done
ended srun 0 0
holds srun_0 "r['launcher'] == 'srun' and r['out_of_bounds'] == 0" "ran"

# Strangers: a web client, silence, and a rank of another run. The run does not care.
common=(WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 2)))
rank strangers 0 RANK=0 SLIME_PERF_TOKEN=ours "${common[@]}" -- all_reduce
for _ in $(seq 100); do
  exec 9<>"/dev/tcp/127.0.0.1/$((port + 3))" && break
  sleep 0.1
done 2>/dev/null
exec 8<>"/dev/tcp/127.0.0.1/$((port + 3))"
# Rank 0 may hang up after the first line; the shell writes them one by one.
(printf 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n' >&8) 2>/dev/null
env RANK=1 SLIME_PERF_TOKEN=theirs "${common[@]}" timeout 60 "${perf[@]}" all_reduce -b 8 -e 8 \
  --timeout 20 >"$work/other.out" 2>"$work/other.err"
[ $? -eq 2 ] && ok "strangers: a rank of another run is refused" ||
  not_ok "strangers: a rank of another run must be refused" "$work/other.err"
says other 'wrong token'
rank strangers 1 RANK=1 SLIME_PERF_TOKEN=ours "${common[@]}" -- all_reduce
ended strangers 0 0
exec 8>&- 9>&-

# Ranks that do not fit together, or do not come.
rank different 0 RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 4)) -- \
  all_reduce
sleep 0.5
rank different 1 RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 4)) -- \
  all_gather
ended different 2 2
says different_0 'rank 1 on .* was refused: your arguments differ: all_gather'
says different_1 'your arguments differ: all_gather'
rank alone 0 RANK=0 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 6)) -- \
  all_reduce --timeout 8
ended alone 3
says alone_0 'rank 1, 2 of 3 did not come in time'
run nowhere 2 all_reduce --rendezvous 127.0.0.1:4000
says nowhere 'none of them started this one'
RANK=0 WORLD_SIZE=2 run nonsense 2 all_reduce --rendezvous nonsense
says nonsense 'HOST:PORT'
env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 \
  "${perf[@]}" all_reduce >"$work/lost.out" 2>"$work/lost.err"
[ $? -eq 2 ] || not_ok "lost: should be a usage error" "$work/lost.err"
says lost '--rendezvous HOST:PORT'
exit $wrong
