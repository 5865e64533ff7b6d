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
            self.content = load(self.path)

    def line(self, row, what, values, aim, better=">="):
        """A figure: one value for each round; None: it was not reached. No values: not run."""
        known = [value for value in values if value is not None]
        middle = statistics.median(known) if known and len(known) == len(values) else None
        self.content["rows"].append({"row": row, "what": what, "value": middle, "each": values, "aim": aim, "better": better})
        shown = f"{middle:8.3f}" if middle is not None else f"{'never' if values else 'not run':>8}"
        spread = f"({min(known):.3f} to {max(known):.3f})" if len(values) > 1 and known else ""
        print(f"{row:8} {what:<62} {shown} {spread:18} {'' if aim is None else f'aim {better} {aim}'}", flush=True)

    def save(self):
        with open(self.path, "w") as file:
            json.dump(self.content, file, indent=1)


def load(path):
    with open(path) as file:
        return json.load(file)


def checked_rows(path):
    """Size and halves of each row."""
    rows = []
    for row in load(path)["rows"]:
        both = [half for half in (row["out_of_place"], row["in_place"]) if half["operations"] or half["checked"]]
        if any(half["wrong"] for half in both) or not any(half["checked"] for half in both):
            raise SystemExit(f"networks: {path}: wrong results, or none checked")
        rows.append((row["size"], both))
    return rows


def halves(path):
    return checked_rows(path)[0]


def busbw(path):
    """Mbit/s that the ring gives the user: the better half of the only row. Each of two ranks sends its size."""
    size, both = halves(path)
    return size * 8 / min(half["time_us"] for half in both)


def rounds_of(work, name):
    """The result of each round; none where it was not run."""
    count = len(glob.glob(os.path.join(work, f"{name}.[0-9]*.0.json")))
    return [os.path.join(work, f"{name}.{n + 1}.0.json") for n in range(count)]


def each(work, name):
    return [busbw(path) for path in rounds_of(work, name)]


def each_nccl(work, name):
    results = [load(path) for path in rounds_of(work, name)]
    return [result["size"] * 8 / result["time_us"] for result in results]


def quotients(these, those):
    return [a / b for a, b in zip(these, those)]


def nccl_lines(report, options, name, aim):
    over_plugin, over_socket = (each_nccl(options.work, f"{name}.{transport}") for transport in ("slime", "socket"))
    report.line(name, "  NCCL over the plugin / NCCL over its Socket", quotients(over_plugin, over_socket), aim)
    if over_socket:
        report.line(name, "  Mbit/s of NCCL over its Socket", over_socket, None)


AIMS = {"even": 1.98, "uneven": 0.95, "four": 0.93}


def links(report, options):
    work, name = options.work, options.name
    alone = {rate: each(work, f"{name}.{rate}") for rate in set(options.rates)}
    together = each(work, f"{name}.all")
    what = " + ".join(map(str, options.rates)) + " Mbit/s"
    if name == "even":
        of, limits = "one alone", alone[options.rates[0]]
    else:
        of, limits = "the sum of each alone", [sum(rates) for rates in zip(*(alone[rate] for rate in options.rates))]
    report.line(name, f"{what} / {of}", quotients(together, limits), AIMS[name])
    for rate in sorted(alone, reverse=True):
        report.line(name, f"  {rate} Mbit/s alone, share of the rate", [got / rate for got in alone[rate]], None)
    if len(options.rates) == 2:
        nccl_lines(report, options, name, 1.45 if name == "uneven" else None)


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


def capped(report, options):
    mtu = report.content["mtu"]
    link = 1000 * (mtu - 52) / (mtu + 14)  # Mbit/s after Ethernet, IPv4 and TCP with timestamps
    report.line("capped", "flows of 250 Mbit/s at most, 1 Gbit/s / the link", [got / link for got in each(options.work, "capped.all")], 0.93)
    report.line("capped", "  one flow alone, share of its 250 Mbit/s", [got / 250 for got in each(options.work, "capped.one")], None)
    nccl_lines(report, options, "capped", 2)


def lossy(report, options):
    clean, spoilt = each(options.work, "lossy.clean"), each(options.work, "lossy.spoilt")
    limits = [a + b for a, b in zip(clean, spoilt)]
    what = "500 + 500 Mbit/s, one loses 0.1 % / the sum of each alone"
    report.line("lossy", what, quotients(each(options.work, "lossy.all"), limits), 0.9)
    report.line("lossy", "  the lossy link alone, share of the rate", [got / 500 for got in spoilt], None)


def times_us(work, name, which):
    """Microseconds of an operation in each round, of the better half: median_us or best_us."""
    return [min(half[which] for half in halves(path)[1]) for path in rounds_of(work, name)]


def small(report, options):
    kinds = (("free", "links as fast as they are"), ("500mbit", "links of 500 Mbit/s"))
    protocols = (("simple", "Simple", 1), ("auto", "protocol as chosen", None))
    for kind, links in kinds:
        for protocol, words, aim in protocols:
            for which in ("median", "best"):
                name = f"small.{protocol}.{kind}"
                two, one = (times_us(options.work, f"{name}.{count}", f"{which}_us") for count in (2, 1))
                what = f"64 KiB, {words}, {links}, {which}: two rails / one"
                report.line("small", what, quotients(two, one), aim, "<=")
                report.line("small", "  microseconds over one", one, None)


TRIP_AIMS = {8: 0.75, 4096: 0.75, 65536: 0.95}


def trips(report, options):
    """Of each round of the script: the median of the program's rounds, and the best of all."""
    results = [load(path) for path in rounds_of(options.work, "trips")]

    def ratio(result, size, key, of):
        sockets, plugin = next(row["networks"] for row in result["rows"] if row["size"] == size)
        return of(plugin[key]) / of(sockets[key])

    for size, aim in TRIP_AIMS.items():
        name = f"{size} B" if size < 1024 else f"{size // 1024} KiB"
        for what, key, of in (("median", "median_us", statistics.median), ("best", "best_us", min)):
            values = [ratio(result, size, key, of) for result in results]
            report.line("trips", f"{name}, half round trip, {what}: plugin / Socket's calls", values, aim, "<=")
    values = [ratio(result, 16 << 20, "cpu_ns_per_byte", statistics.median) for result in results]
    report.line("trips", "16 MiB, processor time per byte: plugin / Socket's calls", values, 1, "<=")


def size_name(size):
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if size >> shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def grouped(report, options):
    """Of each round and size: the better half's median time, with a device for each link and with one for all."""
    for kind in ("free", "500+500", "500+250", "400+200+200+100"):
        for channels in (2, 8):
            ratios = {}  # by size
            for part in ("small", "large"):
                name = f"grouped.{kind}.{channels}"
                for apart, one in zip(*(rounds_of(options.work, f"{name}.{each}.{part}") for each in (1, 0))):
                    for (size, two), (_, together) in zip(checked_rows(apart), checked_rows(one)):
                        best = [min(half["median_us"] for half in both) for both in (two, together)]
                        ratios.setdefault(size, []).append(best[0] / best[1])
            for size, values in ratios.items():
                what = f"{kind}, {channels} channels, {size_name(size)}: time apart / as one device"
                report.line("grouped", what, values, None)


def begin(report, options):
    report.content.update(mtu=options.mtu, rounds=options.rounds, congestion=options.congestion)
    print(f"# MTU {options.mtu}, {options.congestion}: rounds: {options.rounds}, the median (least to most)", flush=True)


def missed(report, options):
    report.content.setdefault("missed", []).append(options.name)
    print(f"{options.name:8} failed", flush=True)


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
    missing = actions.add_parser("missed")
    missing.add_argument("name")
    for row in (slowed, capped, lossy, small, trips, grouped):
        actions.add_parser(row.__name__)
    options = parser.parse_args()
    report = Report(options.work)
    globals()[options.action](report, options)
    report.save()


if __name__ == "__main__":
    main()
