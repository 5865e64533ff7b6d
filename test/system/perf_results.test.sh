#!/bin/bash
# slime-perf over the real plugin: every collective, type and operation gives the right bits with 2
# to 8 ranks and 1 to 4 rails, staged and direct, through every version of the table; the checker
# sees one flipped bit; the table and the JSON say what they should.
. "$(dirname "$0")/perf_support.sh"

# correct NAME RANKS ARGUMENT...: nothing is wrong, and everything was checked
correct() {
  local name=$1 count=$2
  shift 2
  run "$name" 0 "$@" --ranks "$count" -n 2 -w 1
  holds "$name" "r['out_of_bounds'] == 0 and len(r['rows']) > 0" "0 wrong"
  holds "$name" "r['collective'] in ('alltoall', 'sendrecv') or all(h['wrong'] == 0 for h in halves)" \
    "every half was checked"
  holds "$name" "all(row['out_of_place']['wrong'] == 0 for row in r['rows'])" "and out of place"
}

all=(-d all -o all)
versions=(6 7 8 9 10 11 12)
# Types differ in a loop over numbers, versions in tables of pointers: a sanitizer need not see all.
[ -z "${SLIME_SAN:-}" ] || { all=(-d float,half,uint8 -o sum,max) && versions=(6 9 12); }
correct all_reduce_2 2 all_reduce -b 4 -e 1M -f 64 "${all[@]}"
correct all_reduce_3 3 all_reduce -b 20 -e 600K -f 97 "${all[@]}" --direct --rails 2
correct all_reduce_4 4 all_reduce -b 4 -e 300K -f 300 "${all[@]}" --rails 4 --channels 2
correct all_reduce_8 8 all_reduce -b 4 -e 200K -f 333 -d half,float,int8,uint64 -o all
correct all_reduce_ll 2 all_reduce -b 4 -e 300K -f 50 "${all[@]:0:2}" --proto ll
correct all_reduce_simple 3 all_reduce -b 4 -e 5M -f 1000 -d int8,double --proto simple
correct reduce_scatter_3 3 reduce_scatter -b 64 -e 300K -f 70 "${all[@]}"
correct reduce_scatter_2 2 reduce_scatter -b 1M -e 9M -f 9 --direct --rails 4 -o avg
correct all_gather_4 4 all_gather -b 64 -e 2M -f 180 "${all[@]:0:2}" --rails 2
correct all_gather_8 8 all_gather -b 1K -e 1M -f 1000 --direct
correct broadcast_3 3 broadcast -b 4 -e 3M -f 900 "${all[@]:0:2}" -r -1
correct broadcast_8 8 broadcast -b 4 -e 1M -f 500 --direct -r 5
correct alltoall_4 4 alltoall -b 64 -e 2M -f 180 "${all[@]:0:2}" --channels 2
correct alltoall_8 8 alltoall -b 1K -e 1M -f 1000 --direct --rails 2
correct sendrecv_2 2 sendrecv -b 4 -e 2M -f 700 "${all[@]:0:2}"
correct sendrecv_3 3 sendrecv -b 4 -e 2M -f 700 --direct --proto simple
NCCL_PROTO=LL128 correct all_reduce_ll128 2 all_reduce -b 8 -e 2M -f 64 -d double --proto ll128
holds all_reduce_ll128 "all(row['protocol'] == 'LL128' for row in r['rows'])" "LL128 was used"
for api in "${versions[@]}"; do
  correct "api_$api" 2 all_reduce -b 8 -e 1M -f 131072 --api $api
  holds "api_$api" "r['plugin']['api_version'] == $api" "version $api was used"
done

# The checker is no rubber stamp: one flipped bit is one wrong element in every checked half.
run injected 1 all_reduce --ranks 3 -b 4 -e 64K -f 128 -d float,int8 --inject-error
holds injected "all(h['wrong'] == 1 for h in halves)" "exactly one wrong element each"
run injected_alltoall 1 alltoall --ranks 2 -b 64K -e 64K --inject-error
holds injected_alltoall "[h['wrong'] for h in halves] == [1, None]" "in place is not checked"
run unchecked 0 all_reduce --ranks 2 -b 64K -e 64K -c 0 --inject-error
holds unchecked "[h['wrong'] for h in halves] == [None, None]" "-c 0 checks nothing and says so"

# What people and scripts read.
run table 0 all_reduce --ranks 2 -b 8 -e 128 -f 4 --rails 2
shape='^ +[0-9]+ +[0-9]+ +float +sum +-1( +[0-9.]+ +[0-9.]+ +[0-9.]+ +0){2}$'
if [ "$(grep -cE "$shape" "$work/table.out")" -eq 3 ]; then ok "table: three rows"; else
  not_ok "table: not three rows as nccl-tests prints them" "$work/table.out"
fi
for text in '^# +size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw +busbw' \
  '^# +\(B\) +\(elements\) +\(us\) +\(GB/s\) +\(GB/s\) ' '^# Out of bounds values : 0 OK$' \
  '^# Avg bus bandwidth    : [0-9.e-]+$' '^# rail lo.0 on .* works [1-9][0-9]* bytes_sent [1-9]' \
  '^# rail lo.1 on .* works [1-9]'; do
  if grep -qE "$text" "$work/table.out"; then ok "table has $text"; else
    not_ok "table lacks $text" "$work/table.out"
  fi
done
holds table "{'version', 'commit', 'time', 'command', 'machine', 'environment', 'plugin', 'rows',
  'rails', 'processes', 'error', 'exit_code'} <= r.keys()" "all parts are there"
holds table "r['machine']['host'] and r['machine']['kernel'] and r['machine']['cores'] > 0" "machine"
holds table "r['environment']['NCCL_SLIME_IFNAME'] == 'lo'" "environment"
holds table "[row['size'] for row in r['rows']] == [8, 32, 128]" "sizes"
holds table "[row['count'] for row in r['rows']] == [2, 8, 32]" "counts"
holds table "all(0 < h['best_us'] <= h['median_us'] for h in halves)" "best <= median"
holds table "all(abs(h['busbw_GBps'] - row['size'] / h['time_us'] / 1e3) < 1e-9 for row in r['rows']
  for h in (row['out_of_place'], row['in_place']))" "busbw of 2 ranks is size / time"
holds table "len(r['rails']) == 4 and {x['rank'] for x in r['rails']} == {0, 1}" "rails of each rank"
# Who closes last may have sent control works (a CTS for what came eagerly, a probe of up to 16 KiB)
# that the other one no longer reads; payload is not among them.
total() { echo "sum(x['$1'] for x in r['rails'])"; }
holds table "0 <= $(total bytes_sent) - $(total bytes_received) <=
  16384 * ($(total works) - $(total arrivals))" "what was sent was received, or is a control work"
holds table "$(total bytes_received) >= 2 * 2 * r['iterations'] * sum(h['size'] for h in r['rows'])" \
  "all payload was received"
"${perf[@]}" sendrecv --ranks 2 -b 8 -e 8 --json - >"$work/dash.json" 2>"$work/dash.err"
holds dash "len(r['rows']) == 1" "--json - writes only JSON to stdout"
# What is for programs is alone on stdout, by whatever name, in a file and in a pipe.
alone() { # FILE VALUES CONDITION WHAT: it holds so many JSON values, v, and nothing else
  if python3 -c "import json, sys
text, v, decoder = open(sys.argv[1]).read().strip(), [], json.JSONDecoder()
while text:
  value, end = decoder.raw_decode(text)
  v, text = v + [value], text[end:].strip()
sys.exit(0 if len(v) == $2 and ($3) else 1)" "$work/$1" 2>"$work/$1.python"; then ok "$1: $4"; else
    not_ok "$1: $4" "$work/$1"
  fi
}
small=(sendrecv --ranks 2 -b 8 -e 8)
echo '"before"' >"$work/own.file"
"${perf[@]}" "${small[@]}" --json /dev/stdout >>"$work/own.file" 2>"$work/own.err"
alone own.file 2 "v[0] == 'before' and v[1]['exit_code'] == 0" "--json /dev/stdout adds only JSON"
NCCL_SLIME_STATS=/dev/stdout "${perf[@]}" "${small[@]}" 2>"$work/stats.err" | cat >"$work/stats.pipe"
alone stats.pipe 2 "all(x['rails'] for x in v)" "NCCL_SLIME_STATS=/dev/stdout: each rank's JSON only"
grep -q '^# rail lo' "$work/stats.err" && ok "stats: the table is on stderr, with the rails" ||
  not_ok "stats: no table on stderr, or no rails" "$work/stats.err"
NCCL_SLIME_STATS=/dev/stdout "${perf[@]}" "${small[@]}" --json - >"$work/both.file" 2>"$work/both.err"
alone both.file 1 "v[0]['rails']" "both: one report, with the counters in it"
"${perf[@]}" sendrecv --ranks 2 -b 8 -e 8 --quiet >"$work/quiet.out" 2>&1
if [ ! -s "$work/quiet.out" ]; then ok "--quiet prints nothing"; else
  not_ok "--quiet prints something" "$work/quiet.out"
fi
exit $wrong
