#!/bin/bash
# slime-perf p2p, and the example in C: two processes, over the loopback interface.
. "$(dirname "$0")/perf_support.sh"

# Few bytes at a time: a machine may be ten times as slow.
short=(--seconds 0.05 --size 8,4K,1M --timeout 60)
for op in read write; do
  run "$op" 0 p2p --op "$op" "${short[@]}"
  says_out() { grep -qE -- "$2" "$work/$1.out" && ok "$1 prints: $2" || not_ok "$1 does not print: $2" "$work/$1.out"; }
  says_out "$op" '^#Channels Message Size Batch Size Num Concurrency Avg Latency\(ms\) Bandwidth\(MB/s\)'
  python3 - "$work/$op.json" <<'END' && ok "$op: 3 rows, 0 wrong" || not_ok "$op: rows" "$work/$op.json"
import json, sys
r = json.load(open(sys.argv[1]))
rows = r["rows"]
ok = [row["size"] for row in rows] == [8, 4096, 1 << 20]
ok &= all(row["wrong"] == 0 and row["engine"]["requests"] > 0 for row in rows)
ok &= all(row["doorbells_per_work"] > 0 and row["engine"]["target_cpu_ns_per_byte"] > 0 for row in rows)
sys.exit(not ok)
END
done
run batches 0 p2p --op write --batch 16 --concurrency 4 --raw --turns 2 "${short[@]}"
says_out batches 'bandwidth/raw'
run immediates 0 p2p --op write --immediate --concurrency 64 "${short[@]}"
run plans 0 p2p --op read --iovs 5000 --plan --size 8 --seconds 0.05 --timeout 60
says_out plans 'prepare\(ns\)'
run sends 0 p2p --op send --concurrency 8 --raw "${short[@]}"
run notices 0 p2p --op notify --concurrency 8 --raw "${short[@]}"
says_out notices 'doorbells/work'
run signals 0 p2p --op signal --concurrency 8 --seconds 0.05 --timeout 60
run usage 2 p2p --op swap
run piece 2 p2p --op send --batch 2
run planned 2 p2p --op signal --plan
run sizes 2 p2p --size 0
says sizes "'0' is no size of 1 byte to 64 GiB"
run notice 2 p2p --op notify --size 65M
says notice 'a notification has 64 MiB at most'
run told 2 p2p --op read --immediate --raw
says told 'the plain loop tells nobody of its reads'
run three 2 p2p --ranks 3
run help 0 p2p --help

# Two engines that are open while others ask.
timeout -k 5 150 "${launcher[@]}" "$build/bin/slime-perf" p2p --seconds 100 --size 8 >"$work/open.out" 2>&1 &
open=$!
asked() {
  "${launcher[@]}" "$build/bin/slime-info" --peers >"$work/peers.out" 2>&1 &&
    "${launcher[@]}" "$build/bin/slime-info" --peers --json >"$work/peers.json" 2>"$work/peers.err" &&
    python3 - "$work/peers.json" <<'END'
import json, sys
engines = json.load(open(sys.argv[1]))["engines"]
ids = {engine["engine"] for engine in engines}
linked = [peer for engine in engines for peer in engine["peers"]
          if peer["state"] == "up" and peer["engine"] in ids and peer["rails_up"] >= 1]
sys.exit(len(linked) < 2)
END
}
for ((i = 0; i < 100; ++i)); do
  asked && break
  sleep 0.1
done
asked && ok "slime-info --peers shows two engines that are linked" ||
  not_ok "slime-info --peers" "$work/peers.json"
grep -qE 'process [0-9]+, [0-9]+ NICs, 1 regions' "$work/peers.out" &&
  grep -qE '^  .* up .*rails .*requests' "$work/peers.out" && ok "also for people" || not_ok "for people" "$work/peers.out"
kill -0 $open && ok "asking disturbs nobody" || not_ok "slime-perf ended" "$work/open.out"
kill $open
wait $open

example() { # NAME WORDS: it ends well, and says these
  if timeout -k 5 120 "${launcher[@]}" "$build/bin/example-$1" >"$work/$1.out" 2>"$work/$1.err" &&
    grep -q "^$2" "$work/$1.out"; then
    ok "example-$1"
  else not_ok "example-$1" "$work/$1.err"; fi
}
example read '1048576 of 1048576 bytes are right'
example notify 'the peer says: request 12, page 3'
example send 'page 12 has 1048576 bytes'
example signal '100 of 100 pages were whole when they were counted'
example plan '256 of 256 pages are right'
example coroutine '64 pages, 64 were told of, 262144 bytes are right'
exit $wrong
