#!/usr/bin/env python3
"""The ratios of bench/p2p.sh, row by row, from the results that it left in a directory. What was said so
far is kept there, in report.json."""
import argparse
import os
import statistics

import networks_report
import outages_report

AIMS = {"even": 0.97, "uneven": 0.95, "four": 0.97}


def rate(path):
    """Mbit/s of the last size."""
    result = networks_report.load(path)
    if any(row["wrong"] for row in result["rows"]):
        raise SystemExit(f"p2p: {path}: wrong bytes")
    return result["rows"][-1]["engine"]["megabytes_per_second"] * 8


def each(options, name):
    return [rate(path) for path in networks_report.rounds_of(options.work, name)]


def links(report, options):
    name = f"{options.name}.{options.op}.{options.size}"
    alone = {mbit: each(options, f"{name}.{mbit}") for mbit in set(options.rates)}
    sums = [sum(got) for got in zip(*(alone[mbit] for mbit in options.rates))]
    what = f"{'+'.join(map(str, options.rates))} Mbit/s, {options.op}, {options.batch} x {options.size}: all / sum"
    report.line(options.name, what, networks_report.quotients(each(options, f"{name}.all"), sums), AIMS[options.name])
    for mbit in sorted(alone, reverse=True):
        report.line(options.name, f"  {mbit} Mbit/s alone, share of the rate", [got / mbit for got in alone[mbit]], None)


def seconds_of(samples, begin, end):
    """Bytes a second over both links, of each whole second from begin to end."""
    return [sum(outages_report.rate(samples, begin + n, 1, device) for device in (1, 2)) for n in range(int(end - begin))]


def outages(report, options):
    samples, events = outages_report.load(*(os.path.join(options.work, f"outages.{part}") for part in ("samples", "events")))
    before = statistics.median(seconds_of(samples, events[0][2] - 6, events[0][2]))
    shares, backs, stalls = [], [], []
    for begin, up, down in zip(events[::2], events[1::2], events[2::2]):
        stalls.append(outages_report.longest_stall(samples, begin[2], down[2]))
        back = networks_report.first_time(samples, up[2], down[2], lambda now: now[1] > before / 8)
        backs.append(back)
        if back is not None:
            shares += [second / before for second in seconds_of(samples, up[2] + back + 0.5, down[2])]
    report.line("outages", "requests that failed", [options.failures], 0, "<=")
    report.line("outages", "both links, seconds after it is used again / before", shares, 0.95)
    report.line("outages", "  seconds without a byte on either link", stalls, None)
    report.line("outages", "  Mbit/s before the first outage", [before * 8 / 1e6], None)
    report.line("outages", "  seconds from the carrier to a quarter of the link's rate", backs, None)


def restarts(report, options):
    before, during, after = (each(options, f"restarts.{when}") for when in ("before", "during", "after"))
    alone = [(a + b) / 2 for a, b in zip(before, after)]
    with open(os.path.join(options.work, "restarts.ends")) as lines:
        ends = [line.split(maxsplit=3) for line in lines]
    report.line("restarts", "steady writes among pairs that die / alone", networks_report.quotients(during, alone), 0.95)
    report.line("restarts", "  Mbit/s alone", alone, None)
    wrong = sum(int(e[0]) != 3 for e in ends)
    report.line("restarts", f"  of {len(ends)} other ranks, those that did not end with an error", [wrong], 0, "<=")
    report.line("restarts", "  seconds from a kill to the end of the other rank, 7 of waiting for the dead one included", [float(e[2]) - float(e[1]) for e in ends], 10, "<=")
    report.content["ends"] = sorted({e[3].strip() for e in ends if len(e) > 3})


def begin(report, options):
    report.content.update(mtu=options.mtu, rounds=options.rounds, concurrency=options.concurrency)
    print(f"# MTU {options.mtu}, requests at once: {options.concurrency}, rounds: {options.rounds}, the median (least to most)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work")
    parsers = parser.add_subparsers(dest="action", required=True)
    beginning = parsers.add_parser("begin")
    for name in ("mtu", "rounds", "concurrency"):
        beginning.add_argument(f"--{name}", type=int)
    linking = parsers.add_parser("links")
    for name in ("name", "op", "size", "batch"):
        linking.add_argument(name)
    linking.add_argument("rates", nargs="+", type=int)
    parsers.add_parser("outages").add_argument("failures", type=int)
    parsers.add_parser("restarts")
    parsers.add_parser("missed").add_argument("name")
    options = parser.parse_args()
    report = networks_report.Report(options.work)
    actions = {"begin": begin, "links": links, "outages": outages, "restarts": restarts, "missed": networks_report.missed}
    actions[options.action](report, options)
    report.save()


if __name__ == "__main__":
    main()
