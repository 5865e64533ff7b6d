#!/usr/bin/env python3
"""The ratios of bench/rack.sh, from the results that it left in a directory."""
import argparse
import json
import os
import re

HEADERS = 14 + 20 + 8 + 32  # Ethernet, IPv4, UDP, SAP/2: what the links' shapers count per packet


def algbw(work, name):
    """GB/s of the operation: the better half of the only row."""
    with open(os.path.join(work, f"{name}.0.json")) as file:
        row = json.load(file)["rows"][0]
    halves = [row["out_of_place"], row["in_place"]]
    if any(half.get("wrong") for half in halves):
        raise SystemExit(f"rack: {name}: wrong results")
    best = min(half["time_us"] for half in halves)
    return row["size"] / best / 1e3


def wrong_of(work, name):
    """Elements that were wrong, and operations that were checked, in all rows."""
    with open(os.path.join(work, f"{name}.0.json")) as file:
        rows = json.load(file)["rows"]
    halves = [row[half] for row in rows for half in ("out_of_place", "in_place")]
    return sum(half.get("wrong") or 0 for half in halves), sum(half["checked"] for half in halves)


def bits_per_second(rate):
    number, unit = re.fullmatch(r"(\d+)([kmg]?)bit", rate).groups()
    return int(number) * {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}[unit]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work")
    parser.add_argument("--rate", required=True)
    parser.add_argument("--mtu", type=int, required=True)
    parser.add_argument("--size", required=True)
    parser.add_argument("--json")
    options = parser.parse_args()
    lanes = min((options.mtu - 20 - 8 - 32) // 4, 2048) // 8 * 8
    goodput = bits_per_second(options.rate) / 8e9 * 4 * lanes / (4 * lanes + HEADERS)
    rows = []

    def row(what, value, aim, better=">="):
        rows.append({"what": what, "ratio": round(value, 3), "aim": aim})
        mark = "" if aim is None else f"aim {better} {aim}"
        print(f"{what:<76} {value:6.2f}   {mark}")

    print(f"# links of {options.rate}, {options.size}, packets of {lanes} lanes: goodput {goodput:.4f} GB/s")
    collnet = {n: algbw(options.work, f"collnet-float-{n}") for n in (2, 4, 8)}
    for n, value in collnet.items():
        row(f"float, {n} ranks: algbw / goodput limit of the link", value / goodput, 0.92)
    row("the slowest of these / the fastest", min(collnet.values()) / max(collnet.values()), 0.95)
    for n in (2, 4, 8):
        limit = 2 * (n - 1) / n
        ring = algbw(options.work, f"ring-float-{n}")
        row(f"float, {n} ranks: switch / ring (limit {limit:.2f})", collnet[n] / ring, 1.6 if n == 8 else None)
    half = algbw(options.work, "collnet-bfloat16-8") / algbw(options.work, "ring-bfloat16-8")
    row("bfloat16 in 16 bits, 8 ranks: switch / ring (limit 1.75)", half, 1.6)
    for lost, aim in ((1, 0.85), (10, 0.6), (25, 0.6), (100, None)):
        lossy = algbw(options.work, f"collnet-float-4-lost-{lost}")
        row(f"float, 4 ranks, {lost / 10} % of packets lost at both ends of each link / none lost", lossy / collnet[4], aim)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"rate": options.rate, "size": options.size, "lanes": lanes, "goodput_gbs": goodput, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
