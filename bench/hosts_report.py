#!/usr/bin/env python3
"""The ratios of bench/hosts.sh, from the results that it left in a directory."""
import argparse
import json

from rack_report import algbw, bits_per_second, wrong_of


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
    n, rows = options.ranks, []

    def row(what, value, aim):
        rows.append({"what": what, "ratio": round(value, 3), "aim": aim})
        print(f"{what:<76} {value:6.2f}   {'' if aim is None else f'aim >= {aim}'}")

    print(f"# {n} ranks, links of {options.rate}, {options.size}, MTU {options.mtu}")
    ring = algbw(options.work, "ring")
    for k in (1, 2, 4, 8):
        value = algbw(options.work, f"hosts-{k}")
        row(f"float, {k} switch hosts: algbw / min(R, k R / n)", value / min(link, k * link / n), 0.95)
        row(f"float, {k} switch hosts: algbw / the ranks' ring", value / ring, None)
    wrong, checked = wrong_of(options.work, "killed")
    print(f"one of four hosts killed and back: {wrong} wrong in {checked} operations that were checked")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"rate": options.rate, "mtu": options.mtu, "size": options.size, "ranks": n,
                       "rows": rows, "killed": {"wrong": wrong, "checked": checked}}, file, indent=1)
    if wrong or not checked:
        raise SystemExit("hosts: wrong results, or none was checked")


if __name__ == "__main__":
    main()
