#!/usr/bin/env python3
"""The ratios of bench/round_trip.sh, from the results that it left in a directory."""
import argparse
import json
import os
import statistics

AIM = 1.5
CLIENTS = {"one": "one client", "two": "two clients at once"}


def load(*path):
    with open(os.path.join(*path)) as file:
        return json.load(file)


def figures(turns, of_turn):
    """The best of all, and the median of the turns' medians, in microseconds."""
    each = [of_turn(turn) for turn in range(1, turns + 1)]
    return {"best": min(best for best, _ in each), "median": statistics.median(median for _, median in each)}


def bare(work, who):
    def of_turn(turn):
        trips = load(work, f"{who}.{turn}")
        return trips["best_us"], trips["median_us"]

    return of_turn


def allreduce(work, kind):
    def of_turn(turn):
        # In place, every sum is the next one's input: floats soon are infinite.
        half = load(work, f"{kind}.{turn}.0.json")["rows"][0]["out_of_place"]
        return half["best_us"], half["median_us"]

    return of_turn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work")
    parser.add_argument("--turns", type=int, required=True)
    parser.add_argument("--mtu", type=int, required=True)
    parser.add_argument("--json")
    options = parser.parse_args()
    trips = {who: figures(options.turns, bare(options.work, who)) for who in CLIENTS}
    print(f"# 4 KiB, MTU {options.mtu}: best, and median of {options.turns} turns' medians")
    for who, name in CLIENTS.items():
        print(f"{'bare UDP round trip, ' + name:<44} {trips[who]['best']:7.1f} us {trips[who]['median']:7.1f} us")
    rows = []
    for kind in ("int32", "float"):
        took = figures(options.turns, allreduce(options.work, kind))
        print(f"{'allreduce of ' + kind + ', 2 ranks':<44} {took['best']:7.1f} us {took['median']:7.1f} us")
        for who, name in CLIENTS.items():
            ratios = {which: round(took[which] / trips[who][which], 2) for which in took}
            print(f"{'  / ' + name:<44} {ratios['best']:7.2f}    {ratios['median']:7.2f}      aim <= {AIM}")
            rows.append({"type": kind, "clients": who, "took_us": took, "bare_us": trips[who], "ratio": ratios, "aim": AIM})
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"mtu": options.mtu, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
