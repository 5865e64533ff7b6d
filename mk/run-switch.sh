#!/bin/bash
# run-switch.sh BUILD [RANKS]: runs all_reduce between local processes twice, in a ring of the ranks
# and by a software switch that it starts, and prints both side by side.
# Exit code: 0: all right; else the first failure: 1: wrong results, 2 or 3: as slime-perf says.
set -u
build=$1
ranks=${2:-2}
perf=$build/bin/slime-perf
switchd=$build/bin/slime-switchd
switchctl=$build/bin/slime-switchctl
sizes=(-b 8 -e 16M -f 2 -d float -c 1)
[ -x "$switchd" ] || {
  echo "run-switch: $switchd is not built" >&2
  exit 2
}
work=$(mktemp -d) || exit 2
switch_pid=
cleanup() {
  [ -z "$switch_pid" ] || { kill "$switch_pid" && wait "$switch_pid"; } 2>/dev/null
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# Starts a switch on random ports. Another program may have them, so this waits until the switch reports
# that it is ready, and tries up to ten ports.
start_switch() {
  local port
  for _ in $(seq 10); do
    port=$((20000 + RANDOM % 12000))
    printf 'data:\n  listen: 127.0.0.1:%d\n  shards: 2\ncontrol:\n  listen: 127.0.0.1:%d\n' \
      "$port" $((port + 10)) >"$work/switch.yaml"
    "$switchd" --config "$work/switch.yaml" >"$work/ready" 2>"$work/log" &
    switch_pid=$!
    for _ in $(seq 100); do
      if grep -qs ready "$work/ready"; then
        switch=127.0.0.1:$((port + 10))
        return 0
      fi
      kill -0 "$switch_pid" 2>/dev/null || break
      sleep 0.05
    done
    { kill "$switch_pid" && wait "$switch_pid"; } 2>/dev/null
    switch_pid=
  done
  echo "run-switch: slime-switchd does not start:" >&2
  cat "$work/log" >&2
  return 1
}

# measure ALGORITHM: prints the table and keeps it. The first failure decides the exit code.
code=0
measure() {
  "$perf" all_reduce --algo "$1" --ranks "$ranks" "${sizes[@]}" | tee "$work/$1"
  local ended=${PIPESTATUS[0]}
  [ "$code" -ne 0 ] || code=$ended
  return "$ended"
}

compare() {
  echo
  echo "# out of place, microseconds per operation, $ranks ranks on this host"
  echo "# On one host the ring wins: ranks and switch share its cores, and a switch spares links between hosts, of which there are none here (docs/switch.md, What it costs and when it pays)."
  awk '
    !/^ / { next }
    FNR == NR { ring[$1] = $6; next }
    !header++ { printf "# %10s  %12s  %12s  %12s\n", "size", "ring", "collnet", "collnet/ring" }
    $1 in ring && ring[$1] > 0 { printf "%12d  %12.1f  %12.1f  %12.2f\n", $1, ring[$1], $6, $6 / ring[$1] }
  ' "$work/ring" "$work/collnet"
}

start_switch || exit 3
head -n 1 "$work/ready"
export NCCL_SLIME_SWITCH=$switch
measure ring
echo
if measure collnet; then compare; fi
if [ -x "$switchctl" ]; then
  printf '\n# slime-switchctl --switch %s stats\n' "$switch"
  "$switchctl" --switch "$switch" stats
fi
exit "$code"
