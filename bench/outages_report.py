#!/usr/bin/env python3
"""outages_report.py sample DEVICE DEVICE: prints time and bytes received by two interfaces, for ever.
outages_report.py report EVENTS SAMPLES [--json FILE]: the table of bench/outages.sh."""
import argparse
import json
import pathlib
import sys
import time

SAMPLE_S = 0.01
DATA_BYTES = 100_000  # more than the tries to get a rail back send


def sample(devices):
    files = [pathlib.Path(f"/sys/class/net/{d}/statistics/rx_bytes") for d in devices]
    while True:
        print(f"{time.time():.4f}", *(file.read_text().strip() for file in files), flush=True)
        time.sleep(SAMPLE_S)


def longest_stall(samples, begin, end):
    """The longest time in seconds without a byte of data on either device; a few packets of set-up are no data."""
    stall, since, seen = 0.0, begin, None
    for at, first, second in samples:
        if not begin <= at <= end:
            continue
        total = first + second
        if seen is None or total - seen > 9000:
            if seen is not None:
                stall = max(stall, at - since)
            since, seen = at, total
    return max(stall, end - since)


def bytes_at(samples, when, device):
    return next((s[device] for s in samples if s[0] >= when), samples[-1][device])


def rate(samples, begin, seconds, device):
    return (bytes_at(samples, begin + seconds, device) - bytes_at(samples, begin, device)) / seconds


def rows_of(events, samples):
    for down, up in zip(events[::2], events[1::2]):
        begin, end = down[2], up[2]
        at_return = bytes_at(samples, end, 2)
        back = next((s[0] - end for s in samples if s[0] > end and s[2] - at_return > DATA_BYTES), None)
        before = rate(samples, begin - 1.5, 1, 2)
        yield {
            "kind": down[0],
            "stall_s": longest_stall(samples, begin, end + 3),
            "back_s": back,
            "share": rate(samples, end + 2, 1, 2) / before if before else None,
        }


def load(samples_path, events_path):
    events = [(k, w, float(t)) for k, w, t in map(str.split, open(events_path))]
    samples = []
    for line in open(samples_path):
        words = line.split()
        if len(words) == 3:
            samples.append((float(words[0]), int(words[1]), int(words[2])))
    return samples, events


def report(arguments):
    samples, events = load(arguments.samples, arguments.events)
    rows = list(rows_of(events, samples))
    print(f"{'kind':8} {'stall s':>8} {'back s':>8} {'share':>6}")
    for row in rows:
        back = "never" if row["back_s"] is None else f"{row['back_s']:.2f}"
        share = "-" if row["share"] is None else f"{row['share']:.2f}"
        print(f"{row['kind']:8} {row['stall_s']:8.2f} {back:>8} {share:>6}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    if arguments.limit is None:
        return 0
    never = float("inf")
    backs = [never if r["back_s"] is None else r["back_s"] for r in rows if r["kind"] == "carrier"]
    return int(max([r["stall_s"] for r in rows] + backs) > arguments.limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    sampling = actions.add_parser("sample")
    sampling.add_argument("devices", nargs=2)
    reporting = actions.add_parser("report")
    reporting.add_argument("events")
    reporting.add_argument("samples")
    reporting.add_argument("--limit", type=float, help="seconds")
    reporting.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.action == "sample":
        try:
            sample(arguments.devices)
        except (KeyboardInterrupt, BrokenPipeError):
            sys.exit(0)
    sys.exit(report(arguments))


if __name__ == "__main__":
    main()
