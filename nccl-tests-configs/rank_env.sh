#!/bin/sh
# rank_env.sh COMMAND...: started by mpirun or srun as one rank, it puts the rank's number in place
# of %r in the variables that SLIME_RUN_PER_RANK names, and becomes the command.
set -u
rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${SLURM_PROCID:-}}}}
[ -n "$rank" ] || {
  echo "rank_env.sh: no rank in the environment; start it with mpirun or srun" >&2
  exit 2
}
for name in ${SLIME_RUN_PER_RANK:-}; do
  value=$(printenv "$name") || continue
  export "$name=$(printf '%s' "$value" | sed "s/%r/$rank/g")"
done
exec "$@"
