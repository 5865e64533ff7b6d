#!/usr/bin/env python3
"""The ratios of bench/hosts.sh, from the results that it left in a directory."""
import argparse
import json

from rack_report import Missed, Table, algbw, bits_per_second, wrong_of


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--rate", required=True)
    parser.add_argument("--mtu", type=int, required=True)
    parser.add_argument("--size", required=True)
    parser.add_argument("--json")
    options = parser.parse_args()
    link = bits_per_second(options.rate) / 8e9  # GB/s, headers and all
    n, table = options.ranks, Table()
    print(f"# {n} ranks, links of {options.rate}, {options.size}, MTU {options.mtu}")

    def run(name):
        return algbw(options.work, name)

    for k in (1, 2, 4, 8):
        table.row(f"float, {k} switch hosts: algbw / min(R, k R / n)",
                  lambda: run(f"hosts-{k}") / min(link, k * link / n), 0.95)
        table.row(f"float, {k} switch hosts: algbw / the ranks' ring", lambda: run(f"hosts-{k}") / run("ring"), None)
    killed = None
    try:
        wrong, checked = wrong_of(options.work, "killed")
        killed = {"wrong": wrong, "checked": checked}
        print(f"one of four hosts killed and back: {wrong} wrong in {checked} operations that were checked")
    except Missed as run_name:
        table.missed.add(str(run_name))
        print("one of four hosts killed and back: failed")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"rate": options.rate, "mtu": options.mtu, "size": options.size, "ranks": n,
                       "rows": table.rows, "killed": killed}, file, indent=1)
    if killed and (killed["wrong"] or not killed["checked"]):
        raise SystemExit("hosts: wrong results, or none was checked")
    table.end()


if __name__ == "__main__":
    main()
