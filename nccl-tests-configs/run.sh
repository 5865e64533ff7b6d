#!/bin/bash
# Runs one scenario with nccl-tests where it is installed, with slime-perf where it is not: the same
# environment, the same columns. Keeps the result as JSON. run.sh --help says how.
# shellcheck disable=SC2034,SC2154,SC1091  # variables shared with the two files sourced here
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 2
top=$(dirname "$here")
# Installed, this is PREFIX/share/libnet-slime/nccl-tests-configs; in a checkout all is in its build.
bin=$top/../../bin libraries=$top/../../lib results=$PWD/nccl-tests-results
if [ -e "$top/mk/compile.mk" ]; then
  build=$(realpath -m "${SLIME_BUILD_DIR:-$top/build}")
  bin=$build/bin libraries=$build/lib results=$build/nccl-tests
fi
. "$here/scenario.sh"
. "$here/launch.sh"

usage() {
  cat <<'EOF'
usage: run.sh SCENARIO [OPTION]... [-- ARGUMENT...]
       run.sh --list
       run.sh --all [OPTION]...     every scenario for one host in turn, and a count of them
SCENARIO is a name that --list shows, or a file: NAME=VALUE lines for the environment (%r: the rank's
number), and ranks=N, launcher=local|mpirun|srun, hosts=one|many, tool=auto|nccl-tests|slime-perf,
needs=gpu|rails (without it the scenario is skipped: it would measure something else).
compare.py A.json B.json sets two results side by side, tuner_table.py makes a tuner file of them.

  --op NAME          collective (default all_reduce): all_reduce, all_gather, reduce_scatter,
                     broadcast, alltoall, sendrecv; nccl-tests also reduce, gather, scatter
  -b -e -f -i -n -w -c -d -o -r VALUE   sizes, iterations, checks, types: as in nccl-tests
  --tool NAME        nccl-tests, slime-perf or auto (default): nccl-tests where <op>_perf is found
  --ranks N          instead of the scenario's
  --hosts FILE       one host per line, for scenarios over several hosts
  --ranks-per-host N (default 1)
  --set NAME=VALUE   one more variable; wins over the scenario's, which win over the environment's
  --lib DIR          directory of libnet-slime.so (default: lib of the checkout's build, or where
                     this was installed)
  --out DIR          where results go (default: nccl-tests of the checkout's build, or
                     ./nccl-tests-results where this was installed)
  --timeout S        end the run after S seconds (default 3600)
  --dry-run          print variables and command, run nothing
  ARGUMENT...        for the program as they are

environment: SLIME_BUILD_DIR directory of the checkout's build (default: build)
             NCCL_TESTS_DIR  directory of nccl-tests' programs (else PATH)
             SLIME_PERF      path of slime-perf (else of the checkout or installation, else PATH)
             MPIRUN, SRUN    the launchers, with options of your own if need be
exit code:   0 all right, 1 wrong results, 2 usage, 3 the run failed or could not start,
             77 skipped: this host lacks what the scenario is about
EOF
}

die() { # EXIT MESSAGE
  echo "run.sh: $2" >&2
  exit "$1"
}

skip() { # REASON
  echo "run.sh: skipped: $1" >&2
  exit 77
}

# Those for one host; the last line counts them.
run_all() { # OPTION...
  local file name code measured=0 failed=0 skipped=0
  for file in "$here"/*.conf; do
    name=$(basename "$file" .conf)
    { [ "$name" = common ] || grep -q '^hosts=many' "$file"; } && continue
    "$here/run.sh" "$name" "$@"
    code=$?
    case $code in
    0) measured=$((measured + 1)) ;;
    2) return 2 ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
  done
  echo "run.sh: $measured measured, $failed failed, $skipped skipped"
  [ "$failed" = 0 ] || return 3
}

list_scenarios() {
  local file
  for file in "$here"/*.conf; do
    [ "${file##*/}" = common.conf ] && continue
    printf '%-28s %s\n' "$(basename "$file" .conf)" "$(sed -n '1s/^# *//p' "$file")"
  done
}

number() { # OPTION VALUE LEAST MOST
  if ! [[ $2 =~ ^[0-9]{1,9}$ ]] || [ "$((10#$2))" -lt "$3" ] || [ "$((10#$2))" -gt "$4" ]; then
    die 2 "$1 $2: a number from $3 to $4 is wanted"
  fi
}

# The options that nccl-tests and slime-perf share are checked here: a word that is no size must
# not reach a shell on another host.
program_option() { # OPTION VALUE
  case $1 in
  -b | -e | -i) [[ $2 =~ ^[0-9]+(\.[0-9]+)?[KkMmGgTt]?(i?[Bb])?$ ]] || die 2 "$1 $2 is no size; write 64K, 1.5M, 1G" ;;
  -r) [[ $2 =~ ^(-1|[0-9]{1,5})$ ]] || die 2 "$1 $2 is no rank" ;;
  -d | -o) [[ $2 =~ ^[a-z0-9_,]+$ ]] || die 2 "$1 $2: a name such as float or sum, or all" ;;
  *) number "$1" "$2" 0 100000000 ;;
  esac
  arguments+=("$1" "$2")
}

op=all_reduce tool='' ranks='' hosts_file='' ranks_per_host=1 lib='' out='' dry_run='' limit_s=3600
scenario='' arguments=() settings=()
while [ $# -gt 0 ]; do
  option=$1
  case $option in
  --help | -h) usage; exit 0 ;;
  --list) list_scenarios; exit 0 ;;
  --all) [ -z "$scenario" ] || die 2 "--all, or a scenario"; shift; run_all "$@"; exit ;;
  --dry-run) dry_run=1; shift; continue ;;
  --) shift; arguments+=("$@"); break ;;
  -*) [ $# -ge 2 ] || die 2 "$option wants a value" ;;
  *) [ -z "$scenario" ] || die 2 "one scenario, please: $scenario or $option"
    scenario=$option; shift; continue ;;
  esac
  value=$2
  shift 2
  case $option in
  --op) op=$value ;;
  --tool) tool=$value ;;
  --ranks) number "$option" "$value" 2 65536; ranks=$value ;;
  --hosts) hosts_file=$value ;;
  --ranks-per-host) number "$option" "$value" 1 1024; ranks_per_host=$value ;;
  --set) settings+=("$value") ;;
  --lib) lib=$value ;;
  --out) out=$value ;;
  --timeout) number "$option" "$value" 1 604800; limit_s=$value ;;
  -[befinwcdor]) program_option "$option" "$value" ;;
  *) die 2 "unknown option $option; --help lists them" ;;
  esac
done

[ -n "$scenario" ] || die 2 "no scenario; --list names them"
[[ $op =~ ^[a-z_]{1,32}$ ]] || die 2 "--op $op is no name of a collective"
read_scenario "$scenario"
choose_tool
choose_ranks
choose_algorithm
make_command
[ -n "$dry_run" ] || check_needs

if [ -n "$dry_run" ]; then
  for name in "${variables[@]}"; do printf '%s=%s\n' "$name" "${!name}"; done
  printf '%q ' "${command[@]}"
  echo
  exit 0
fi

command -v python3 >/dev/null || die 3 "python3 is needed to keep the result (apt-get install python3)"
out=${out:-$results}
mkdir -p "$out" || die 3 "cannot create $out; name another directory with --out"
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
[ "$tool" = slime-perf ] && command+=(--json "$work/slime-perf.json")
echo "# scenario $scenario, $op, $ranks ranks, by $tool" >&2
timeout --foreground -k 10 "$limit_s" "${command[@]}" | tee "$work/output"
code=${PIPESTATUS[0]}
[ "$code" -ne 124 ] || echo "run.sh: ended after $limit_s s (--timeout)" >&2
SLIME_RUN_VARIABLES="${variables[*]}" python3 "$here/record.py" --scenario "$scenario" --op "$op" \
  --tool "$tool" --ranks "$ranks" --launcher "$launcher" --exit-code "$code" --work "$work" \
  --out "$out" -- "${command[@]}"
