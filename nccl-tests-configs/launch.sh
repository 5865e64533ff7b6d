# Sourced by run.sh: which program, how many ranks, and the command that starts them.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # variables shared with run.sh and scenario.sh

find_nccl_tests() {
  if [ -n "${NCCL_TESTS_DIR:-}" ]; then
    program=$NCCL_TESTS_DIR/${op}_perf
    [ -x "$program" ]
  else
    program=$(command -v "${op}_perf")
  fi
}

find_slime_perf() {
  program=${SLIME_PERF:-$bin/slime-perf}
  [ -x "$program" ] || { [ -z "${SLIME_PERF:-}" ] && program=$(command -v slime-perf); }
}

choose_tool() {
  tool=${tool:-$scenario_tool}
  case $tool in
  auto) if find_nccl_tests; then tool=nccl-tests; elif find_slime_perf; then tool=slime-perf; else
    die 3 "neither ${op}_perf (set NCCL_TESTS_DIR) nor slime-perf (run make) is here"
  fi ;;
  nccl-tests) find_nccl_tests || die 3 "${op}_perf is not in ${NCCL_TESTS_DIR:-PATH}; build nccl-tests and set NCCL_TESTS_DIR" ;;
  slime-perf) find_slime_perf || die 3 "there is no slime-perf at ${SLIME_PERF:-$bin}; run make" ;;
  *) die 2 "--tool $tool: nccl-tests, slime-perf or auto" ;;
  esac
  [ "$scenario_tool" = auto ] || [ "$scenario_tool" = "$tool" ] ||
    die 2 "scenario $scenario is for $scenario_tool only"
  if [ "$tool" = slime-perf ] && ! [[ $op =~ ^(all_reduce|all_gather|reduce_scatter|broadcast|alltoall|sendrecv)$ ]]; then
    die 2 "slime-perf has no $op; it has all_reduce, all_gather, reduce_scatter, broadcast, alltoall, sendrecv"
  fi
}

# Without what its name speaks of, a scenario would measure something else under that name.
check_needs() {
  local rails
  case $needs in
  gpu)
    [ "$tool" = nccl-tests ] || skip "$scenario is about GPUs, and slime-perf uses none: build nccl-tests and set NCCL_TESTS_DIR"
    "${NVIDIA_SMI:-nvidia-smi}" -L 2>/dev/null | grep -q '^GPU ' || skip "$scenario needs a GPU, and nvidia-smi -L shows none"
    ;;
  rails)
    [ -x "$bin/slime-info" ] || return 0
    rails=$("$bin/slime-info" --devices --json 2>/dev/null | python3 -c '
import json, sys
devices = json.load(sys.stdin)["devices"]["devices"]
print(max([len({r["address"] for r in d["rails"]}) for d in devices], default=0))' 2>/dev/null)
    [ "${rails:-0}" -ge 2 ] || skip "$scenario needs a device of two interfaces, and this host has ${rails:-0} to make one of; slime-info --devices says why"
    ;;
  esac
}

# One name per line; comments and what follows the name (slots=...) are left out.
host_names() { sed -e 's/#.*//' -e 's/^[[:space:]]*//' -e 's/[[:space:]:].*//' -e '/^$/d' "$hosts_file"; }

choose_ranks() {
  local nodes=1
  if [ "$hosts" = many ] && [ "$launcher" = srun ]; then
    nodes=${SLURM_JOB_NUM_NODES:-${SLURM_NNODES:-}}
    [ -n "$nodes" ] || [ -n "$dry_run" ] ||
      die 2 "scenario $scenario runs inside a Slurm allocation: salloc -N 2 $0 $scenario"
    nodes=${nodes:-2}
  elif [ "$hosts" = many ]; then
    [ -r "$hosts_file" ] || die 2 "scenario $scenario needs --hosts FILE with one host per line"
    nodes=$(host_names | wc -l)
  fi
  ranks=${ranks:-${scenario_ranks:-$((nodes * ranks_per_host))}}
  [ "$ranks" -ge 2 ] || die 2 "$ranks rank: at least two are needed (more hosts, or --ranks-per-host)"
}

mpirun_command() {
  local words name first
  read -ra words <<<"${MPIRUN:-mpirun}"
  command -v "${words[0]}" >/dev/null || die 3 "${words[0]} is not installed (apt-get install openmpi-bin)"
  command=("${words[@]}" -n "$ranks")
  if [ "$hosts" = many ]; then # slime-perf's ranks meet there
    first=$(host_names | head -n 1)
    share MASTER_ADDR "${MASTER_ADDR:-$first}"
  fi
  if "${words[0]}" --version 2>&1 | grep -qi 'open.mpi\|openrte\|prte'; then
    [ "$hosts" = many ] && command+=(--hostfile "$hosts_file" --map-by "ppr:$ranks_per_host:node")
    [ "$hosts" = one ] && command+=(--oversubscribe)
    [ "$(id -u)" -ne 0 ] || command+=(--allow-run-as-root)
    for name in "${variables[@]}"; do command+=(-x "$name"); done
  else # Hydra: MPICH, Intel MPI
    [ "$hosts" = many ] && command+=(-f "$hosts_file" -ppn "$ranks_per_host")
    command+=(-genvlist "$(IFS=,; echo "${variables[*]}")")
  fi
}

share() { # NAME VALUE: set here and on the other hosts
  export "$1=$2"
  case " ${variables[*]} " in *" $1 "*) ;; *) variables+=("$1") ;; esac
}

per_rank_variables() {
  local name names=()
  for name in "${variables[@]}"; do
    [[ ${!name} == *%r* ]] && names+=("$name")
  done
  echo "${names[*]}"
}

# slime-perf is told what NCCL_COLLNET_ENABLE tells NCCL, unless the arguments say something else.
choose_algorithm() {
  [ "$tool" = slime-perf ] && [ "$op" = all_reduce ] && [ "${NCCL_COLLNET_ENABLE:-0}" = 1 ] || return
  [[ " ${arguments[*]} " == *" --algo"* ]] || arguments+=(--algo collnet)
}

make_command() {
  local per_rank words name
  lib=${lib:-$libraries}
  if [ -d "$lib" ]; then
    lib=$(cd "$lib" && pwd)
    share LD_LIBRARY_PATH "$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  fi
  # What the user set reaches the other hosts too; NCCL_DEBUG=VERSION makes NCCL name its version.
  [ "$tool" = slime-perf ] || share NCCL_DEBUG "${NCCL_DEBUG:-VERSION}"
  for name in $(compgen -e | grep '^NCCL_'); do share "$name" "${!name}"; done
  per_rank=$(per_rank_variables)
  # On one host slime-perf starts its ranks itself; they share one environment, and only NCCL would
  # need what differs.
  if [ "$hosts" = one ] && [ "$tool" = slime-perf ]; then
    launcher=local
    for name in $per_rank; do unset "$name"; done
    drop_unset
    command=("$program" "$op" --ranks "$ranks" "${arguments[@]}")
    return
  fi
  [ -z "$per_rank" ] || share SLIME_RUN_PER_RANK "$per_rank"
  command=()
  case $launcher in
  mpirun) mpirun_command ;;
  srun)
    read -ra words <<<"${SRUN:-srun}"
    [ -n "$dry_run" ] || command -v "${words[0]}" >/dev/null || die 3 "${words[0]} is not here; this scenario runs under Slurm"
    command=("${words[@]}" --ntasks "$ranks" --ntasks-per-node "$ranks_per_host" --export=ALL)
    ;;
  esac
  [ -z "$per_rank" ] || command+=("$here/rank_env.sh")
  command+=("$program")
  [ "$tool" = nccl-tests ] || command+=("$op")
  # Without a launcher nccl-tests runs all ranks in one process, on one GPU each.
  [ "$tool" = nccl-tests ] && command+=(-g "$([ "$launcher" = local ] && echo "$ranks" || echo 1)")
  command+=("${arguments[@]}")
}

drop_unset() {
  local name kept=()
  for name in "${variables[@]}"; do [ -z "${!name+set}" ] || kept+=("$name"); done
  variables=("${kept[@]}")
}
