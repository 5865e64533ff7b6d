# Shared by perf_*.test.sh: where things are, and how a check reports. To be sourced.
# shellcheck shell=bash
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
build=${SLIME_BUILD_DIR:-build}
work=$(mktemp -d) || exit 1
# What a script has started and not waited for ends with it: it would disturb the next one.
# Twice, as the first signal is a request to a run with --duration; ranks whose launcher is killed
# would stay, so nothing is killed.
clean_up() {
  # shellcheck disable=SC2046 # words
  kill $(jobs -pr) 2>/dev/null && ! retry 12 all_ended && kill $(jobs -pr) 2>/dev/null &&
    retry 50 all_ended
  rm -rf "$work"
}
all_ended() { [ -z "$(jobs -pr)" ]; }
# retry TENTHS COMMAND...: until it works, for so many tenths of a second
retry() {
  local tenths=$1
  shift
  for _ in $(seq "$tenths"); do
    "$@" && return
    sleep 0.1
  done
  return 1
}
trap clean_up EXIT
wrong=0
launcher=()
# GCC 12's ThreadSanitizer needs a layout without randomisation (see test/run.sh).
[ "${SLIME_SAN:-}" = tsan ] && launcher=(setarch "$(uname -m)" -R)
perf=("${launcher[@]}" "$build/bin/slime-perf")
export NCCL_SLIME_IFNAME=lo NCCL_CONF_FILE=/dev/null # the same devices and settings on every machine
unset NCCL_NET NCCL_NET_PLUGIN NCCL_PROTO NCCL_DEBUG NCCL_SLIME_STATS NCCL_SLIME_RAILS_PER_IF
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID
for name in $(compgen -v | grep -E '^(OMPI_|PMI_|PMIX_|SLURM_)'); do unset "$name"; done

# The first of some 20 that likely nobody has; the kernel gives none below 32768 by itself.
any_port() { echo $((${SLIME_TEST_PORTS:-20000} + RANDOM % 5800)); }

ok() { echo "ok: $1"; }
not_ok() {
  printf 'not ok: %s\n' "$1"
  [ $# -lt 2 ] || tail -n 20 "$2" | sed 's/^/  | /'
  wrong=1
}

# run NAME EXIT ARGUMENT...: runs slime-perf; its output is in $work/NAME.{out,err,json}
run() {
  local name=$1 want=$2 code
  shift 2
  timeout -k 5 120 "${perf[@]}" "$@" --json "$work/$name.json" \
    >"$work/$name.out" 2>"$work/$name.err" </dev/null
  code=$?
  if [ "$code" -eq "$want" ]; then ok "$name: exit status $want"; else
    not_ok "$name: exit status $code, not $want ($*)" "$work/$name.err"
  fi
}

# says NAME TEXT: what the run printed to stderr contains TEXT (an extended regular expression)
says() {
  if grep -qE -- "$2" "$work/$1.err"; then ok "$1 says: $2"; else
    not_ok "$1 does not say: $2" "$work/$1.err"
  fi
}

# holds NAME CONDITION WHAT: a Python condition on the run's JSON, which it sees as r, and on the
# halves of rows that were run: after a request to end the rest is left out
holds() {
  if python3 -c "import json, sys
r = json.load(open(sys.argv[1]))
halves = [row[h] for row in r['rows'] for h in ('out_of_place', 'in_place')
          if row[h]['operations'] or row[h]['checked']]
if r.get('ended_early'):  # before anything of a half was checked, on a slow machine
    halves = [h for h in halves if h['checked']]
sys.exit(0 if ($2) else 1)" "$work/$1.json" 2>"$work/$1.python"; then ok "$1: $3"; else
    not_ok "$1: $3" "$work/$1.json"
  fi
}

# For a run that goes on until its ranks are told to end (kill), whatever happens meanwhile and
# however fast the machine is: operations, and more that are checked, eight at a time. Rounds are
# short, as the last one is waited for.
lasting=(-b 256K -e 2M -f 8 -n 10 -w 0 -c 2 --duration 300)
# For one that neither ends by itself nor well.
endless=(-b 64K -e 64K -n 10000000)
# under_way NAME: its ranks are connected and begin
under_way() {
  retry 600 stands_in '\(elements\)' "$work/$1".out "$work/$1".0.out ||
    give_up "$1" "$1: the ranks do not begin"
  sleep 0.3
}
# until_said NAME TEXT: a rank says so
until_said() {
  retry 600 stands_in "$2" "$work/$1".err "$work/$1".[0-9].err ||
    give_up "$1" "$1 does not say: $2"
  ok "$1 says: $2"
}
# stands_in TEXT FILE...: in one of those that are there
stands_in() {
  local text=$1
  shift
  cat "$@" 2>/dev/null | grep -qE -- "$text"
}
# give_up NAME SENTENCE: what follows depends on this run
give_up() {
  not_ok "$2"
  tail -n 20 "$work/$1".err "$work/$1".[0-9].err 2>/dev/null | sed 's/^/  | /'
  exit 1
}

# all_operate: the ranks' progress threads have had work for a while
all_operate() {
  local pid
  [ ${#ranks[@]} -gt 0 ] || return
  for pid in "${ranks[@]}"; do operates "$pid" || return; done
}
operates() { # PID
  local task used
  for task in /proc/"$1"/task/*; do
    grep -qs '^slime-progress' "$task/comm" || continue
    # "id (name) state ...", user and system time as words 14 and 15: proc(5)
    read -r -a used <"$task/stat" && [ $((used[13] + used[14])) -gt 0 ] && return
  done 2>/dev/null
  return 1
}

# start NAME ARGUMENT...: starts a run, and waits until its ranks are at it. Sets $run_pid (the
# launcher) and the array $ranks (process ids).
start() {
  local name=$1
  shift
  "${perf[@]}" "$@" --json "$work/$name.json" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
  run_pid=$!
  under_way "$name"
  mapfile -t ranks < <(sed -n 's/^#  Rank .* Pid *\([0-9]*\) on .*/\1/p' "$work/$name.out")
  retry 600 all_operate || give_up "$name" "$name: the ranks do not operate"
}

has_ended() { ! kill -0 "$1" 2>/dev/null; }
# await NAME EXIT SECONDS: the run started last ends in this time, and with such a status (0, or
# 0|3), which then is $code
await() {
  local began=$EPOCHREALTIME took
  retry $((10 * $3)) has_ended "$run_pid" || kill -9 "$run_pid" 2>/dev/null
  wait "$run_pid" 2>/dev/null
  code=$?
  took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  if [[ $code =~ ^($2)$ ]]; then ok "$1: exit status $code after $took s"; else
    not_ok "$1: exit status $code, not $2, after $took s" "$work/$1.err"
  fi
}

# all_gone NAME: no rank is left
all_gone() {
  for _ in $(seq 600); do
    local left=0 pid
    for pid in "${ranks[@]}"; do
      grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$pid/status" 2>/dev/null && left=1
    done
    [ $left -eq 0 ] && break
    sleep 0.1
  done
  if [ "$left" -eq 0 ]; then ok "$1: no rank is left"; else not_ok "$1: rank $pid is left"; fi
}
