#!/usr/bin/env python3
"""The ratios of bench/rack.sh, from the results that it left in a directory."""
import argparse
import json
import os
import re

HEADERS = 14 + 20 + 8 + 32  # Ethernet, IPv4, UDP, SAP/2: what the links' shapers count per packet


class Missed(Exception):
    """A run that failed: it left no result, or a wrong one."""


def rows_of(work, name):
    try:
        with open(os.path.join(work, f"{name}.0.json")) as file:
            rows = json.load(file)["rows"]
    except (FileNotFoundError, ValueError, KeyError) as error:
        raise Missed(name) from error
    if not rows:
        raise Missed(name)
    return rows


def algbw(work, name):
    """GB/s of the operation: the better half of the only row."""
    row = rows_of(work, name)[0]
    halves = [row["out_of_place"], row["in_place"]]
    if any(half.get("wrong") for half in halves):
        raise Missed(f"{name} (wrong results)")
    best = min(half["time_us"] for half in halves)
    return row["size"] / best / 1e3


class Table:
    """The rows of a report, which it prints. A row whose run failed has no ratio."""

    def __init__(self):
        self.rows = []
        self.missed = set()

    def row(self, what, ratio, aim, better=">="):
        """`ratio` is called for it: a run that it needs may have failed."""
        try:
            value, shown = round(ratio(), 3), f"{ratio():6.2f}"
        except Missed as run:
            value, shown = None, f"failed: {run}"
            self.missed.add(str(run))
        self.rows.append({"what": what, "ratio": value, "aim": aim})
        print(f"{what:<76} {shown}   {'' if aim is None else f'aim {better} {aim}'}")

    def end(self):
        if self.missed:
            raise SystemExit(f"runs that failed: {', '.join(sorted(self.missed))}")


def wrong_of(work, name):
    """Elements that were wrong, and operations that were checked, in all rows."""
    rows = rows_of(work, name)
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
    table = Table()
    print(f"# links of {options.rate}, {options.size}, packets of {lanes} lanes: goodput {goodput:.4f} GB/s")

    def run(name):
        return algbw(options.work, name)

    def collnet():
        return [run(f"collnet-float-{n}") for n in (2, 4, 8)]

    for n in (2, 4, 8):
        table.row(f"float, {n} ranks: algbw / goodput limit of the link", lambda: run(f"collnet-float-{n}") / goodput, 0.92)
    table.row("the slowest of these / the fastest", lambda: min(collnet()) / max(collnet()), 0.95)
    for n in (2, 4, 8):
        limit = 2 * (n - 1) / n
        table.row(f"float, {n} ranks: switch / ring (limit {limit:.2f})",
                  lambda: run(f"collnet-float-{n}") / run(f"ring-float-{n}"), 1.6 if n == 8 else None)
    table.row("bfloat16 in 16 bits, 8 ranks: switch / ring (limit 1.75)",
              lambda: run("collnet-bfloat16-8") / run("ring-bfloat16-8"), 1.6)
    for lost, aim in ((1, 0.85), (10, 0.6), (25, 0.6), (100, None)):
        table.row(f"float, 4 ranks, {lost / 10} % of packets lost at both ends of each link / none lost",
                  lambda: run(f"collnet-float-4-lost-{lost}") / run("collnet-float-4"), aim)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"rate": options.rate, "size": options.size, "lanes": lanes, "goodput_gbs": goodput, "rows": table.rows}, file, indent=1)
    table.end()


if __name__ == "__main__":
    main()
