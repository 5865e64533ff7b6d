#!/bin/bash
# All_reduce by a tree of software switches, a root and two leaves: every rank is told its own leaf.
# Right bits, even and uneven leaves; the packets go through the root; refusals say why; and when a
# leaf or the root dies in the middle, nothing is wrong, or every rank says why.
. "$(dirname "$0")/perf_support.sh"
switchd=$build/bin/slime-switchd
[ -x "$switchd" ] || { echo "skipped: $switchd is not built"; exit 77; }
unset NCCL_SLIME_SWITCH NCCL_SLIME_SWITCH_KEY_FILE NCCL_SLIME_SWITCH_TIMEOUT
export NCCL_DEBUG=INFO
declare -A switch_pid control
stop_switch() { # NAME SIGNAL
  [ -z "${switch_pid[$1]:-}" ] || { kill "$2" "${switch_pid[$1]}" && wait "${switch_pid[$1]}"; } \
    2>/dev/null
  unset "switch_pid[$1]"
}
trap 'for name in "${!switch_pid[@]}"; do stop_switch "$name" -KILL; done; clean_up' EXIT
port=$(any_port)
(umask 077 && echo "0123456789abcdef0123456789abcdef" >"$work/root.key")

# start_switch NAME KEY_LINE PARENT_LINE: on ports that nobody has; ${control[NAME]} is where it
# listens. One that was there before comes back to its ports.
start_switch() {
  local name=$1 at
  for _ in $(seq 10); do
    at=${control[$name]:-}
    at=${at#*:}
    [ -n "$at" ] || at=$((port += 20))
    printf 'data:\n  listen: 127.0.0.1:%d\n  shards: 2\ncontrol:\n  listen: 127.0.0.1:%d\n%s\njobs:\n  lease_s: 20\n  tree_s: 4\n%s\n' \
      $((at + 1)) "$at" "$2" "$3" >"$work/$name.yaml"
    rm -f "$work/$name.ready" # that of the one before
    "${launcher[@]}" "$switchd" --config "$work/$name.yaml" >"$work/$name.ready" \
      2>>"$work/$name.log" &
    switch_pid[$name]=$!
    control[$name]=127.0.0.1:$at
    for _ in $(seq 1200); do
      grep -qs ready "$work/$name.ready" && return
      kill -0 "${switch_pid[$name]}" 2>/dev/null || break
      sleep 0.05
    done
    stop_switch "$name" -KILL
    unset "control[$name]"
  done
  not_ok "slime-switchd $name does not start" "$work/$name.log"
  exit 1
}
start_root() { start_switch root "  key_file: $work/root.key" ''; }
start_leaf() {
  start_switch "$1" '' "parent:
  control: ${control[root]}
  key_file: ${2-$work/root.key}"
}

# ctl NAME ARGUMENT...
ctl() {
  local key=() name=$1
  shift
  [ "$name" = root ] && key=(--key-file "$work/root.key")
  "${launcher[@]}" "$build/bin/slime-switchctl" --switch "${control[$name]}" "${key[@]}" --timeout 30 "$@"
}

# begin NAME LEAF,LEAF,... ARGUMENT...: a rank per leaf named, each in a process of its own. $optional
# has NCCL_SLIME_SWITCH_OPTIONAL of each rank, where they are not all the same.
pids=()
optional=()
begin() {
  local name=$1 rank=0 leaf leaves
  IFS=, read -r -a leaves <<<"$2"
  shift 2
  port=$((port + 2))
  pids=()
  for leaf in "${leaves[@]}"; do
    RANK=$rank WORLD_SIZE=${#leaves[@]} LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      SLIME_PERF_TOKEN=tree$port NCCL_SLIME_SWITCH=${control[$leaf]} \
      NCCL_SLIME_SWITCH_OPTIONAL=${optional[rank]:-${NCCL_SLIME_SWITCH_OPTIONAL:-0}} \
      timeout --foreground -k 100 400 "${perf[@]}" all_reduce --algo collnet "$@" \
      --json "$work/$name.$rank.json" >"$work/$name.$rank.out" 2>"$work/$name.$rank.err" \
      </dev/null &
    pids+=($!)
    rank=$((rank + 1))
  done
}
# finish NAME: waits for all; $codes has their exit statuses
finish() {
  codes=()
  for pid in "${pids[@]}"; do
    wait "$pid"
    codes+=($?)
  done
  cat "$work/$1".[0-9].err >"$work/$1.err"
}
# ends NAME STATUS: all ranks
ends() {
  local code
  finish "$1"
  for code in "${codes[@]}"; do
    [ "$code" -eq "$2" ] && continue
    not_ok "$1: exit statuses ${codes[*]}, not all $2" "$work/$1.err"
    return
  done
  ok "$1: all ${#codes[@]} ranks end with $2"
}
# right NAME LEAVES ARGUMENT...
right() {
  local name=$1
  begin "$@"
  ends "$name" 0
  holds "$name.0" "r['algorithm'] == 'collnet' and len(r['rows']) > 0 and
    all(h['wrong'] == 0 for h in halves)" "0 wrong"
}

start_root
start_leaf a
start_leaf b
right even a,a,b,b -d int32,float,bfloat16 -b 4 -e 600K -f 71 -n 2 -w 1
right uneven a,a,a,b -d int32,float,bfloat16 -b 4 -e 300K -f 97 -n 2 -w 1
right mixed b,a,b,a -d half,int64 -b 4 -e 64K -f 97 -n 2 -w 1
right extremes a,a,b,b -d int32 -o max -b 4 -e 64K -f 97 -n 2 -w 1
right one_leaf b,b -d int32 -b 4 -e 64K -f 97 -n 2 -w 1

# What the root counts while a job runs: sums of both leaves, and results that they passed on.
NCCL_SLIME_SWITCH_TIMEOUT=20 begin counted a,a,b,b -d int32 "${endless[@]}"
for _ in $(seq 200); do
  ctl root stats --json >"$work/root.json" 2>/dev/null
  ctl b stats --json >"$work/b.json" 2>/dev/null
  python3 - "$work" "${control[root]}" <<'PY' 2>"$work/counters" && break
import json, sys
root = json.load(open(sys.argv[1] + "/root.json"))["jobs"][0]
leaf = json.load(open(sys.argv[1] + "/b.json"))["jobs"][0]
print(root, leaf, file=sys.stderr)
assert root["level"] == 1 and len(root["children"]) == 2 and root["parent"] is None
assert leaf["level"] == 0 and len(leaf["children"]) == 2
assert root["parent"] is None and leaf["parent"] and leaf["job"] == root["job"] >= 32768
assert leaf["generation"] == root["generation"]
assert root["counters"]["rounds"] > 1000
assert root["counters"]["contributions"] >= 2 * root["counters"]["rounds"]
assert leaf["counters"]["parent_results"] > 1000
PY
  sleep 0.1
done
if grep -q Error "$work/counters"; then
  not_ok "the root sums up what two leaves send" "$work/counters"
else
  ok "the root sums up what two leaves send"
fi
ctl b show >"$work/show"
grep -qE '^327[0-9]+ .* 0 +127.0.0.1:[0-9]+ +1 of 1 +[0-9a-f]{16}$' "$work/show" && grep -q "^parent ${control[root]}" \
  "$work/show" && ok "show names level and parent" || not_ok "show: level and parent" "$work/show"

# A fence at the root ends the tree; the ranks go on without it.
job=
has_job() {
  job=$(ctl root show --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["jobs"][0]["job"])')
} 2>/dev/null
retry 600 has_job || give_up counted "the root has no job"
ctl root fence "$job" >"$work/fence"
grep -q "job $job: ended" "$work/fence" && ok "a fence ends the tree" || not_ok "fence" "$work/fence"
until_said counted 'going on without the switch'
kill "${pids[@]}"
finish counted

export NCCL_SLIME_SWITCH_TIMEOUT=2
# begin_lasting NAME TYPE: a run that goes on until its ranks are told to end
begin_lasting() {
  begin "$1" a,a,b,b -d "$2" "${lasting[@]}"
  under_way "$1"
}
# unharmed NAME: all ranks end when they are told to, and nothing is wrong
unharmed() {
  kill "${pids[@]}"
  ends "$1" 0
  holds "$1.0" "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"
}

# killed NAME SWITCH: in the middle of a run
killed() {
  local name=$1 victim=$2 code rank=0
  begin_lasting "$name" int32
  stop_switch "$victim" -KILL
  until_said "$name" 'going on without the switch|^slime-perf: rank'
  kill "${pids[@]}" 2>/dev/null
  finish "$name"
  if [ "${codes[*]}" = "0 0 0 0" ]; then
    holds "$name.0" "all(h['wrong'] == 0 for h in halves)" "went on without $victim, 0 wrong"
    return
  fi
  for code in "${codes[@]}"; do
    if [ "$code" -eq 3 ]; then
      grep -qE "^slime-perf: rank $rank: .*(switch|gone)" "$work/$name.$rank.err" ||
        not_ok "$name: rank $rank does not say why" "$work/$name.$rank.err"
    else
      not_ok "$name: exit statuses ${codes[*]}, neither all 0 nor all 3" "$work/$name.$rank.err"
    fi
    rank=$((rank + 1))
  done
}
killed killed_leaf b

# A leaf that is there again: all ranks go back, in the middle of an operation.
start_leaf b
begin_lasting leaf_returned float
stop_switch b -KILL
until_said leaf_returned 'going on without the switch'
start_leaf b
until_said leaf_returned "on the switch at ${control[a]} again"
until_said leaf_returned "on the switch at ${control[b]} again"
unharmed leaf_returned

# until_pending NAME: leaf b, which is new, waits for the root to answer
until_pending() {
  retry 300 is_pending || give_up "$1" "$1: the way back does not begin"
  ok "$1: in the middle of the way back"
}
is_pending() { ctl b show --json 2>/dev/null | grep -qE '"trees_pending": *[1-9]'; }
# stuck NAME: as above, but the root does not answer, so that the way back does not end
stuck() {
  begin_lasting "$1" float
  stop_switch b -KILL
  until_said "$1" 'going on without the switch'
  kill -STOP "${switch_pid[root]}"
  start_leaf b
  until_pending "$1"
}
# Trouble in the middle of the way back: they stay without a switch, and try again.
stuck troubled
stop_switch b -KILL
kill -CONT "${switch_pid[root]}"
start_leaf b
until_said troubled "on the switch at ${control[b]} again"
unharmed troubled

# Ranks that are through with their work in the middle of it.
stuck leaving
unharmed leaving
grep -q 'on the switch at .* again' "$work/leaving.err" && not_ok "leaving: the way back is over"
kill -CONT "${switch_pid[root]}"
stop_switch b -KILL

# A leaf that is not there: its ranks say so, and the root tells the others.
begin no_leaf a,b -b 4 -e 4
ends no_leaf 3
says no_leaf "${control[b]}.*nobody listens"
says no_leaf 'the switch of branch 1 did not join the tree in time|rank 1 .*got no part'

start_leaf b
right back_again a,a,b,b -d int32 -b 4 -e 64K -f 97 -n 2 -w 1
killed killed_root root
begin no_root a,b -b 4 -e 4
ends no_root 3
says no_root "${control[root]}.*nobody listens"
NCCL_SLIME_SWITCH_OPTIONAL=1 right optional b,a,a,b -d int32,float -b 4 -e 64K -f 97 -n 2 -w 1
# Ranks that differ in that do what rank 0 says.
optional=(1 0 0 0)
right like_rank_0 b,a,a,b -d int32 -b 4 -e 4
says like_rank_0 'SWITCH_OPTIONAL is 0 at rank 1 and 1 at rank 0'
optional=(0 1)
begin not_like_rank_1 a,b -b 4 -e 4
ends not_like_rank_1 3
says not_like_rank_1 'SWITCH_OPTIONAL is 1 at rank 1 and 0 at rank 0'
optional=()

# The root's key is the leaves'; and a switch without a parent is no leaf.
start_root
stop_switch b -TERM
(umask 077 && echo "another key, as long as the first" >"$work/other.key")
start_leaf b "$work/other.key"
begin wrong_key a,b -b 4 -e 4
ends wrong_key 3
says wrong_key "not signed with this switch's key"
stop_switch b -TERM
start_switch b '' ''
begin no_parent a,b -b 4 -e 4
ends no_parent 3
says no_parent 'no parent \(parent.control\)'
exit $wrong
