#!/bin/bash
# The tools under small limits of memory and threads (ulimit -v, -u): each ends with a status that
# --help names and a sentence that names what is missing; none crashes.
. "$(dirname "$0")/perf_support.sh"

# limited NAME LIMITS STATUSES COMMAND...: limits as ulimit takes them ("-v 30000"); the statuses as
# 1|3. Its output is in $work/NAME.err.
limited() {
  local name=$1 limits=$2 want=$3 code
  shift 3
  # shellcheck disable=SC2086 # the option and its value
  (ulimit $limits && exec timeout -k 5 60 "$@") >"$work/$name.out" 2>"$work/$name.err" </dev/null
  code=$?
  [[ $code =~ ^($want)$ ]] || not_ok "$name: exit status $code, not $want" "$work/$name.err"
  if grep -qE 'terminate called|Aborted' "$work/$name.err"; then
    not_ok "$name: crashed" "$work/$name.err"
  fi
}

# What the loader needs differs from machine to machine: below it a program does not begin (127).
for kib in 20000 60000 120000 140000 150000 160000 180000; do
  limited perf "-v $kib" '0|3|127' "${perf[@]}" all_reduce --ranks 2 -b 32M -e 32M -n 1 -c 0
  limited switchctl "-v $kib" '1|127' "$build/bin/slime-switchctl" --switch 127.0.0.1:1 show
  limited info "-v $kib" '2|3|0|127' "$build/bin/slime-info" --devices
done
[ "$wrong" -ne 0 ] || ok "with less and less memory"
limited memory "-v 60000" 3 "${perf[@]}" all_reduce --ranks 2 -b 64M -e 64M -n 1 -c 0
says memory 'out of memory: 64.* MiB for the send buffer, and ulimit -v is 59 MiB, [0-9]+ MiB of it'
says memory 'choose a smaller -e or raise ulimit -v'
limited exception "-v 200000" 3 "${perf[@]}" all_reduce --ranks 2 -b 8 -e 8 -n 10000000 -w 10000000
says exception 'slime-perf: rank [01]: out of memory: ulimit -v is 195 MiB, .* in use; lower -e'
# A thread's stack is as large as ulimit -s says.
if (ulimit -s 4000000) 2>/dev/null; then
  export RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT
  MASTER_PORT=$(any_port)
  limited thread "-s 4000000 -v 3000000" 3 "${perf[@]}" all_reduce -b 8 -e 8
  says thread "cannot start the coordinator's thread: Resource temporarily unavailable .errno 11."
  limited shard "-s 4000000 -v 3000000" 1 "$build/bin/slime-switchd"
  says shard 'slime-switchd: .*thread.*Resource temporarily unavailable'
fi
exit "$wrong"
