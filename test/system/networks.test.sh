#!/bin/bash
# bench/networks.sh, as small as it can be: its rows run, nothing is wrong, and its JSON has what it
# printed. How fast anything is, is not judged here.
. "$(dirname "$0")/perf_support.sh"
[ -x "$build/bin/bench-latency" ] || { echo "skipped: bench-latency is not built"; exit 77; }
rows=uneven,capped,lossy,small

networks() { SLIME_BUILD_DIR=$build timeout -k 5 500 bench/networks.sh "$@" >"$work/out" 2>"$work/err"; }

networks --rows even,nosuch
code=$?
if [ $code -eq 2 ] && grep -q 'no row is called nosuch' "$work/err"; then ok "an unknown row"; else
  not_ok "an unknown row: exit status $code" "$work/err"
fi

networks --rows $rows --rounds 1 --size 256K --sockets 2 --json "$work/networks.json"
code=$?
if [ $code -eq 77 ]; then
  tail -n 1 "$work/out"
  exit 77
fi
if [ $code -eq 0 ]; then ok "exit status 0"; else not_ok "exit status $code, not 0" "$work/err"; fi
python3 - "$work/networks.json" "$work/out" $rows <<'PYTHON' 2>"$work/python"
import json, sys
result, printed, rows = json.load(open(sys.argv[1])), open(sys.argv[2]).read(), sys.argv[3].split(",")
assert result["rounds"] == 1 and result["mtu"] == 9000 and result["congestion"], result
assert sorted({row["row"] for row in result["rows"]}) == sorted(rows), result
for row in result["rows"]:
    assert row["what"] in printed, row
    assert row["better"] in (">=", "<=") and (row["aim"] is None or row["aim"] > 0), row
    if "NCCL" in row["what"]:
        assert row["value"] is None and row["each"] == [], row
    else:
        assert row["value"] > 0 and row["each"] == [row["value"]], row
PYTHON
code=$?
if [ $code -eq 0 ]; then ok "JSON"; else
  not_ok "JSON: $(tail -n 1 "$work/python")" "$work/networks.json"
fi
exit $wrong
