#!/usr/bin/env python3
"""The ratios of bench/networks.sh, row by row, from the results that it left in a directory. What was
said so far is kept there, in report.json."""
import argparse
import glob
import json
import os
import statistics

import outages_report

WINDOW_S = 0.25  # over which a rate is taken, where the time until it is reached is the figure


class Report:
    def __init__(self, work):
        self.path = os.path.join(work, "report.json")
        self.content = {"rows": []}
        if os.path.exists(self.path):
            with open(self.path) as file:
                self.content = json.load(file)

    def line(self, row, what, values, aim, better=">="):
        """A figure: one value for each round. None: there was none."""
        known = [value for value in values if value is not None]
        middle = statistics.median(known) if len(known) == len(values) else None
        self.content["rows"].append({"row": row, "what": what, "value": middle, "each": values, "aim": aim, "better": better})
        shown = f"{'never':>8}" if middle is None else f"{middle:8.3f}"
        spread = f"({min(known):.3f} to {max(known):.3f})" if len(values) > 1 and known else ""
        print(f"{row:8} {what:<62} {shown} {spread:18} {'' if aim is None else f'aim {better} {aim}'}", flush=True)

    def save(self):
        with open(self.path, "w") as file:
            json.dump(self.content, file, indent=1)


def halves(path):
    with open(path) as file:
        result = json.load(file)
    row = result["rows"][0]
    both = [half for half in (row["out_of_place"], row["in_place"]) if half["operations"] or half["checked"]]
    if any(half["wrong"] for half in both) or not any(half["checked"] for half in both):
        raise SystemExit(f"networks: {path}: wrong results, or none checked")
    return row["size"], both


def busbw(work, name):
    """Mbit/s that the ring gives the user: the better half of the only row. Each of two ranks sends its size."""
    size, both = halves(os.path.join(work, f"{name}.0.json"))
    return size * 8 / min(half["time_us"] for half in both)


def rounds_of(work, name):
    return range(1, len(glob.glob(os.path.join(work, f"{name}.[0-9]*.0.json"))) + 1)


def each(work, name, rounds):
    return [busbw(work, f"{name}.{n}") for n in rounds]


AIMS = {"even": 1.98, "uneven": 0.95, "four": 0.93}


def links(report, options):
    work, name = options.work, options.name
    rounds = rounds_of(work, f"{name}.all")
    alone = {rate: each(work, f"{name}.{rate}", rounds) for rate in set(options.rates)}
    together = each(work, f"{name}.all", rounds)
    what = " + ".join(map(str, options.rates)) + " Mbit/s"
    if name == "even":
        of, limits = "one alone", alone[options.rates[0]]
    else:
        of, limits = "the sum of each alone", [sum(alone[rate][n] for rate in options.rates) for n in range(len(rounds))]
    report.line(name, f"{what} / {of}", [a / b for a, b in zip(together, limits)], AIMS[name])
    for rate in sorted(alone, reverse=True):
        report.line(name, f"  {rate} Mbit/s alone, share of the rate", [got / rate for got in alone[rate]], None)


def first_time(samples, begin, end, reached):
    """Seconds from begin until it is reached in the window that then ends; None: not before the end."""
    at = begin
    while at + WINDOW_S <= end:
        if reached([outages_report.rate(samples, at, WINDOW_S, device) for device in (1, 2)]):
            return at + WINDOW_S - begin
        at += outages_report.SAMPLE_S
    return None


def slowed(report, options):
    samples, events = outages_report.load(os.path.join(options.work, "slowed.samples"), os.path.join(options.work, "slowed.events"))
    shares, found, back = [], [], []
    rate = outages_report.rate
    for n, (down, up) in enumerate(zip(events[::2], events[1::2])):
        begin, end = down[2], up[2]
        until = events[2 * n + 2][2] if 2 * n + 2 < len(events) else samples[-1][0]
        before = [rate(samples, begin - 2, 2, device) for device in (1, 2)]
        left = before[0] + before[1] / 10
        shares.append(sum(rate(samples, begin + 1, 2, device) for device in (1, 2)) / left)
        found.append(first_time(samples, begin, end, lambda now: sum(now) >= 0.9 * left))
        back.append(first_time(samples, end, until, lambda now: all(a >= 0.9 * b for a, b in zip(now, before))))
    halves(os.path.join(options.work, "slowed.0.json"))
    report.line("slowed", "500 + 50 Mbit/s, from 1 s to 3 s after the fall / what is left", shares, 0.9)
    report.line("slowed", "  seconds from the fall to 0.9 of what is left", found, 1, "<=")
    report.line("slowed", "  seconds from the recovery to 0.9 of each link", back, 2, "<=")


def begin(report, options):
    report.content.update(mtu=options.mtu, rounds=options.rounds, congestion=options.congestion)
    print(f"# MTU {options.mtu}, {options.congestion}: rounds: {options.rounds}, the median (least to most)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work")
    actions = parser.add_subparsers(dest="action", required=True)
    beginning = actions.add_parser("begin")
    beginning.add_argument("--mtu", type=int)
    beginning.add_argument("--rounds", type=int)
    beginning.add_argument("--congestion")
    linking = actions.add_parser("links")
    linking.add_argument("name")
    linking.add_argument("rates", nargs="+", type=int)
    actions.add_parser("slowed")
    options = parser.parse_args()
    report = Report(options.work)
    {"begin": begin, "links": links, "slowed": slowed}[options.action](report, options)
    report.save()


if __name__ == "__main__":
    main()
