#!/bin/bash
# slime-perf when things go wrong: bad command lines, no plugin, killed and stopped ranks,
# interruption. Every run ends, in time, with the right status and a sentence that says why, and
# leaves no process behind.
. "$(dirname "$0")/perf_support.sh"

# refused NAME TEXT ARGUMENT...: a usage error that mentions TEXT
refused() {
  local name=$1 text=$2
  shift 2
  run "$name" 2 "$@"
  says "$name" "$text"
}
refused no_collective 'collective'
refused unknown_collective 'collective' all_shuffle
refused unknown_flag 'frobnicate' all_reduce --frobnicate
refused option_of_nccl_tests '-g and -t are .* each rank is a process here: give --ranks' -g 2 all_reduce
refused unknown_option 'there is no option -x' -x 2 all_reduce
refused factor_one 'a factor is 2 to' all_reduce -f 1
RANK=5 WORLD_SIZE=2 refused rank_five 'RANK and WORLD_SIZE in the environment say rank 5 of 2' all_reduce
RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=9 run far_port 3 all_reduce --timeout 1
says far_port 'cannot reach rank 0 at 127.0.0.1:10 \(MASTER_PORT \+ 1: torchrun has MASTER_PORT itself\)'
RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=94436 refused no_port \
  'MASTER_PORT=94436 in the environment is no number from 1 to 65535' all_reduce
refused bad_size "'12Q'" all_reduce -b 12Q
refused sizes_swapped '-b .* -e' all_reduce -b 1M -e 1K
refused too_many_sizes 'sizes' all_reduce -b 1 -e 1G -i 1
refused bad_type "'float9'" all_reduce -d float,float9
refused bad_op "'mean'" all_reduce -o mean
refused one_rank '--ranks' all_reduce --ranks 1
refused bad_root '-r 2: there are ranks 0 to 1' broadcast --ranks 2 -r 2
refused staged_and_direct 'excludes' all_reduce --staged --direct
refused bad_api 'api' all_reduce --api 5
refused bad_device '--net-dev 7: there are devices 0 to' all_reduce --ranks 2 --net-dev 7
refused no_plugin '/no/such/libnet.so' all_reduce --ranks 2 --plugin /no/such/libnet.so
refused no_table 'has no ncclNetPlugin' all_reduce --ranks 2 --plugin libm.so.6
refused no_memory 'smaller -e' all_reduce --ranks 2 -b 512G -e 512G
# Before the run, not at its end.
"${perf[@]}" all_reduce --ranks 2 -b 8 -e 8 --json /no/such/file >"$work/no_json.out" 2>"$work/no_json.err"
code=$?
if [ $code -eq 2 ] && ! grep -q elements "$work/no_json.out"; then
  ok "no_json: exit status 2, and nothing was run"
else
  not_ok "no_json: exit status $code, or it was run" "$work/no_json.out"
fi
says no_json '--json /no/such/file: cannot write there: No such file'
NCCL_NET=Socket refused wrong_name 'NCCL_NET=Socket' all_reduce --ranks 2
NCCL_SLIME_DISABLE=1 refused no_device 'no network device' all_reduce --ranks 2
NCCL_SLIME_IFNAME='' NCCL_SOCKET_IFNAME=foo refused no_interface 'lo does not match NCCL_SOCKET_IFNAME="foo"' \
  all_reduce --ranks 2
# As NCCL reads it, with the spaces that follow a value.
printf 'NCCL_PROTO=Fast\nNCCL_SLIME_EAGER_MAX=8K  \n' >"$work/nccl.conf"
NCCL_CONF_FILE=$work/nccl.conf refused conf_file "NCCL_PROTO=Fast: 'Fast'" all_reduce --ranks 2
echo 'NCCL_SLIME_EAGER_MAX=8K  ' >"$work/nccl.conf"
NCCL_CONF_FILE=$work/nccl.conf run conf_spaces 0 all_reduce --ranks 2 -b 8 -e 8
# In a network namespace of its own, where loopback is down at first.
if unshare --user --map-root-user --net true 2>/dev/null; then
  everywhere=("${perf[@]}")
  perf=(unshare --user --map-root-user --net "${perf[@]}")
  run no_loopback 3 all_reduce --ranks 2
  says no_loopback 'ip link set lo up'
  perf=("${everywhere[@]}")
else
  echo "not tried: no network namespace can be made here"
fi
NCCL_PROTO=Fast refused bad_protocol "NCCL_PROTO=Fast: 'Fast'" all_reduce --ranks 2
NCCL_BUFFSIZE=12345 refused bad_buffer 'NCCL_BUFFSIZE=12345' all_reduce --ranks 2
# The TCP rails cannot keep LL128's order, so the plugin forbids it.
refused ll128_forbidden 'NCCL_PROTO=.* forbids it' all_reduce --ranks 2 --proto ll128
"${perf[@]}" --help >"$work/help.out" 2>&1 && grep -q -- --ranks "$work/help.out" ||
  not_ok "--help fails" "$work/help.out"
# full NAME ARGUMENT...: what could not be written did not go well
full() {
  local name=$1 code
  shift
  "${perf[@]}" "$@" >/dev/full 2>"$work/$name.err" </dev/null
  code=$?
  [ $code -gt 1 ] && ok "$name: exit status $code" || not_ok "$name: exit status $code" "$work/$name.err"
  says "$name" 'No space left|not all of it could be written'
}
full full_help --help
full full_table all_reduce --ranks 2 -b 8 -e 8 -n 1 -w 0
full full_report all_reduce --ranks 2 -b 8 -e 8 -n 1 -w 0 --json "$work/full.json"
grep -q '"exit_code": [1-9]' "$work/full.json" && ok "its report says so, too" ||
  not_ok "its report: exit code 0" "$work/full.json"
full full_dash all_reduce --ranks 2 -b 8 -e 8 -n 1 -w 0 --json -
full full_json all_reduce --ranks 2 -b 8 -e 8 -n 1 -w 0 --json /dev/full --quiet
NCCL_SLIME_STATS=/dev/stdout full full_counters all_reduce --ranks 2 -b 8 -e 8 -n 1 -w 0
"${perf[@]}" --version 2>&1 | grep -q '^slime-perf [0-9]' || not_ok "--version fails"

start killed all_reduce --ranks 3 "${endless[@]}"
kill -9 "${ranks[1]}"
await killed 3 50
says killed "rank 0: rank 1 \(process ${ranks[1]} on .*\) is gone"
says killed "rank 2: rank 1 \(process ${ranks[1]} on .*\) is gone"
says killed "seen here as: .* peer rank 1: ncclRemoteError"
all_gone killed
holds killed "r['exit_code'] == 3 and 'rank 1' in r['error']" "the JSON says it too"

start killed_first all_reduce --ranks 3 "${endless[@]}"
kill -9 "${ranks[0]}"
await killed_first 3 50
says killed_first "rank 1: rank 0, the coordinator, is gone"
says killed_first "rank 2: rank 0, the coordinator, is gone"
all_gone killed_first

start stopped alltoall --ranks 3 --timeout 12 "${endless[@]}"
kill -STOP "${ranks[2]}"
await stopped 3 60
says stopped "rank 0: .*rank 2 \(process ${ranks[2]} on .*\) has not been heard from"
says stopped "rank 1: .*rank 2 \(process ${ranks[2]} on .*\) has not been heard from"
all_gone stopped

start interrupted all_reduce --ranks 2 "${endless[@]}"
kill -INT "$run_pid"
await interrupted 130 50
# It may have said before how far it was, or a plugin that the other rank has ended already.
grep -q '^slime-perf: rank' "$work/interrupted.err" &&
  not_ok "interrupted: it should end quietly" "$work/interrupted.err" ||
  ok "interrupted: no rank complains"
all_gone interrupted

# With --duration the same is a request: the rest is left out, and what was measured is reported.
start enough all_reduce --ranks 3 -b 4K -e 64M -d all --duration 1000
kill -INT "$run_pid"
await enough 0 60
holds enough "len(r['rows']) == 1 and r['ended_early'] and r['duration_s'] == 1000 and r['error'] is None and all(
  h['wrong'] == 0 for h in halves)" \
  "what it has done is reported"
says enough 'stopping after this operation; a second request stops at once'
grep -qE '^#   out of place: [0-9]+ operations of .* us, p99 .* us, max .* us$' "$work/enough.out" ||
  not_ok "enough: no p99 and max" "$work/enough.out"

# What lasts as long as it should ends by itself, and says meanwhile how far it is.
run shown 0 all_reduce --ranks 2 -b 4K -e 4K -c 1 --duration 11
says shown '^slime-perf: 1[01] s of 11 s, row 1 of 1: all_reduce float sum 4 KiB, .* [0-9]+ operations'
says shown 'operations of [0-9.]+ us, [0-9.]+ GB/s, [0-9]+ checked, 0 elements wrong$'
began=$SECONDS
run again 0 all_reduce --ranks 2 -b 4K -e 16K -f 4 -n 3 -w 0 --duration 2.5
holds again "len(r['rows']) == 2 and not r['ended_early'] and
  sum(h['operations'] for h in halves) > 3 * len(halves)" "again and again"
[ $((SECONDS - began)) -ge 4 ] || not_ok "again: it lasted $((SECONDS - began)) s, not 5"
run again_checks 0 alltoall --ranks 2 -b 4K -e 4K -n 0 --duration 2
holds again_checks "any(h['checked'] > 8 for h in halves)" "checks alone, again and again"
refused nothing_again 'nothing to repeat' all_reduce -n 0 -c 0 --duration 5

# One rank is told, as timeout(1) does it: twice. All end.
start told all_reduce --ranks 3 "${lasting[@]}"
kill -TERM "${ranks[1]}" "${ranks[1]}"
await told 0 60
holds told "r['ended_early']" "it says that it ended early"
# Also in the middle of so many operations.
start prompt all_reduce --ranks 2 "${endless[@]}" --duration 1000
kill -INT "$run_pid"
await prompt 0 60
holds prompt "r['ended_early'] and len(halves) == 1 and halves[0]['wrong'] == 0 and
  halves[0]['max_us'] >= halves[0]['p99_us'] >= halves[0]['median_us'] > 0" "the rest is left out"
# Who cannot answer a first request ends by a second one.
start impatient all_reduce --ranks 2 "${endless[@]}" --duration 1000
kill -STOP "${ranks[1]}"
kill -INT "$run_pid"
sleep 3
kill -INT "$run_pid" || not_ok "impatient: the first signal has ended it"
# Where the launcher was held up, both were one to it, or came too soon after each other.
for _ in $(seq 10); do
  retry 30 has_ended "$run_pid" && break
  kill -INT "$run_pid" 2>/dev/null
done
await impatient 130 50
all_gone impatient
# A rank that dies of something else meanwhile is named, and so is that the run has failed.
start crashing all_reduce --ranks 2 "${endless[@]}" --duration 1000
kill -STOP "${ranks[1]}"
kill -INT "$run_pid"
sleep 0.1
kill -KILL "${ranks[1]}"
await crashing 3 50
says crashing "rank 1 \(process ${ranks[1]}\) was killed by signal 9"
all_gone crashing

mkdir "$work/tmp"
TMPDIR=$work/tmp start orphaned all_reduce --ranks 2 "${endless[@]}"
kill -9 "$run_pid"
wait "$run_pid" 2>/dev/null
all_gone orphaned
rmdir "$work/tmp" 2>/dev/null && ok "orphaned: no file is left" ||
  not_ok "orphaned: files are left: $(ls "$work/tmp")"
exit $wrong
