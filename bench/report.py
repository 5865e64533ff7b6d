#!/usr/bin/env python3
"""Reads what bench/run.sh has collected and prints it as ratios, with the aim beside each."""

import argparse
import glob
import json
import os
import platform
import statistics
import sys

MIB = 1 << 20


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def load_rounds(directory, name):
    """Rounds in order: results/NAME.1.json, results/NAME.2.json ..."""
    rounds = []
    while os.path.exists(path := os.path.join(directory, f"{name}.{len(rounds) + 1}.json")):
        rounds.append(load(path))
    return rounds


def spread(values):
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def show_spread(values, form="{:.2f}"):
    parts = spread(values)
    return " / ".join(form.format(parts[key]) for key in ("min", "median", "max"))


def verdict(met):
    return "met" if met else "MISSED"


class Report:
    """The table, and the same as JSON."""

    def __init__(self):
        self.summary = []

    def title(self, text):
        print(f"\n{text}")

    def line(self, text):
        print(f"  {text}")

    def conclude(self, part, what, value, aim, met, form="{:.2f}"):
        self.summary.append({"part": part, "what": what, "value": value, "aim": aim, "met": met,
                             "shown": form.format(value)})

    def print_summary(self):
        self.title("Summary")
        for row in self.summary:
            aim = f"aim {row['aim']:8}" if row["aim"] else " " * 12
            met = verdict(row["met"]) if row["met"] is not None else ""
            self.line(f"({row['part']}) {row['what']:64} {row['shown']:>7}   {aim} {met}")


def stream_best(round_data, walking):
    """Microseconds by size: the best variant of programming it, and its name."""
    best = {}
    for row in round_data["rows"]:
        if row["walks_memory"] != walking:
            continue
        size = row["size"]
        if size not in best or row["best_us"] < best[size][0]:
            best[size] = (row["best_us"], row["variant"])
    return best


def perf_rounds(directory, name):
    """Best microseconds by size, for each round: results/perf.NAME.ROUND.MIB.json."""
    rounds = []
    while paths := glob.glob(os.path.join(directory, f"perf.{name}.{len(rounds) + 1}.*.json")):
        rounds.append({row["size"]: row["out_of_place"]["best_us"]
                       for path in paths for row in load(path)["rows"]})
    return rounds


def gbps(size, us):
    return size / us / 1e3


def report_stream(report, directory):
    streams = load_rounds(directory, "stream")
    perfs = {name: perf_rounds(directory, name)
             for name in ("rails1", "rails2", "rails4", "direct", "pure")}
    limits = [stream_best(r, walking=False) for r in streams]
    walking = [stream_best(r, walking=True) for r in streams]
    sizes = sorted(limits[0])

    report.title(f"(a) 2 ranks on loopback against a plain TCP stream, both directions at once; "
                 f"{len(streams)} rounds, best time of each")
    report.line(f"{'size':>7} {'limit':>7} {'bus bw':>7}  {'ratio':>6}  aim >= 0.85   "
                f"{'by round: min / median / max':28}  limit reached by")
    for size in sizes:
        limit_us, variant = min(limit[size] for limit in limits)
        perf_us = min(perf[size] for perf in perfs["rails1"])
        ratio = limit_us / perf_us
        by_round = [limit[size][0] / perf[size] for limit, perf in zip(limits, perfs["rails1"])]
        report.line(f"{size // MIB:3} MiB {gbps(size, limit_us):7.2f} {gbps(size, perf_us):7.2f}  "
                    f"{ratio:6.2f}  {verdict(ratio >= 0.85):11}   {show_spread(by_round):28}  "
                    f"{variant}")
        report.conclude("a", f"all_reduce of {size // MIB} MiB, bus bandwidth / limit", ratio,
                        ">= 0.85", ratio >= 0.85)
    report.line("limit, bus bw: GB/s per direction")

    report.title("    The same limit against other work")
    report.line(f"{'':7} {'plain TCP, every byte':>22} {'all_reduce':>11} {'sendrecv':>9}")
    report.line(f"{'size':>7} {'in its own place':>22} {'--direct':>11} {'--direct':>9}")
    for size in sizes:
        limit_us = min(limit[size][0] for limit in limits)
        walking_us = min(w[size][0] for w in walking)
        share = {name: limit_us / min(p[size] for p in perfs[name]) for name in ("direct", "pure")}
        report.line(f"{size // MIB:3} MiB {limit_us / walking_us:22.2f} {share['direct']:11.2f} "
                    f"{share['pure']:9.2f}")
        report.conclude("a", f"sendrecv --direct of {size // MIB} MiB / plain TCP with the same "
                        "memory", share["pure"] * walking_us / limit_us, "", None)

    report_rails(report, perfs, sizes)
    return {"limit": streams, "perf": perfs}


def report_rails(report, perfs, sizes):
    report.title("(e) The same all_reduce over more rails, as a ratio to 1 rail (best time; by "
                 "round: min / median / max)")
    report.line(f"{'size':>7} {'2 rails':>8}  {'':24} {'4 rails':>8}")
    for size in sizes:
        cells = []
        for name in ("rails2", "rails4"):
            one, more = perfs["rails1"], perfs[name]
            ratio = min(p[size] for p in one) / min(p[size] for p in more)
            by_round = [a[size] / b[size] for a, b in zip(one, more)]
            cells.append(f"{ratio:8.2f}  ({show_spread(by_round)})".ljust(35))
            report.conclude("e", f"all_reduce of {size // MIB} MiB, {name[-1]} rails / 1 rail",
                            ratio, "", None)
        report.line(f"{size // MIB:3} MiB " + "".join(cells))


def report_latency(report, directory):
    data = load(os.path.join(directory, "latency.json"))
    modes = {row["mode"]: row for row in data["rows"]}
    base, plugin = modes["TCP, polling"], modes["plugin, isend/irecv"]
    report.title("(b) 8 B, half round trip between two processes, microseconds")
    report.line(f"{'':22} {'best':>7} {'best median of a round':>23} {'median':>8} {'p99':>9}")
    for row in data["rows"]:
        report.line(f"{row['mode']:22} {row['half_round_trip_us']['min']:7.2f} "
                    f"{row['round_median_us']['min']:23.2f} "
                    f"{row['half_round_trip_us']['median']:8.2f} {row['p99_us']:9.2f}")
    aim = data["aim_ratio"]
    for what, key in (("best", "half_round_trip_us"), ("best median of a round",
                                                       "round_median_us")):
        ratio = plugin[key]["min"] / base[key]["min"]
        report.conclude("b", f"8 B isend/irecv / plain TCP ping-pong, {what}", ratio,
                        f"<= {aim}", ratio <= aim)
    return data


def report_posting(report, directory):
    data = load(os.path.join(directory, "posting.json"))
    report.title("(c) Posting rules over simulated NICs, in virtual time: 32 NICs of 100 Gb/s, works "
                 "of 64 KiB")
    regime = None
    for row in data["rows"]:
        if row["regime"] != regime:
            regime = row["regime"]
            report.line(f"{regime + ':':35} {'doorbells':>9} {'futile':>7} {'polls':>7} "
                        f"{'allocs':>7} {'queue':>8} {'% of':>6}")
            report.line(f"{'':35} {'/work':>9} {'/work':>7} {'/work':>7} {'/work':>7} {'max':>8} "
                        f"{'line':>6}")
        depth = f"{row['queue_depth_max']}{' ' if row['queue_bounded'] else '+'}"
        report.line(f"{row['row']:35} {row['doorbells_per_work']:9.3f} "
                    f"{row['futile_per_work']:7.3f} {row['polls_per_work']:7.2f} "
                    f"{row['allocations_per_work']:7.3f} {depth:>8} {row['line_share'] * 100:6.1f}")
    report.line("+: no bound, it grows as long as the run lasts. % of line: of a modelled NIC, no "
                "bandwidth of anything")
    report.line(f"The engine's rows, run twice from seed {data['seed']}: "
                + ("the same to the last bit" if data["repeats"] else "THEY DIFFER"))
    engine = [row for row in data["rows"] if row["row"].startswith("engine")]
    for key, what, aim, most in (("doorbells_per_work", "doorbells", "<= 0.07", 0.07),
                                 ("futile_per_work", "futile posts", "0", 0),
                                 ("allocations_per_work", "heap allocations", "0", 0)):
        worst = max(row[key] for row in engine)
        report.conclude("c", f"engine, queue kept full: {what} per work", worst, aim,
                        worst <= most, "{:.3f}")
    return data


def report_engine(report, directory):
    data = load(os.path.join(directory, "engine.json"))
    report.title("(d) The engine over rails without a NIC, nanoseconds per work on one core")
    report.line(f"{'':46} {'submit + post + complete':28} {'the receiving end':28}")
    report.line(f"{'':46} {'min / median / max':28} {'min / median / max':28}")
    for row in data["rows"]:
        cells = []
        for key in ("sender_ns", "receiver_ns"):
            part = row.get(key)
            cells.append("" if part is None else
                         f"{part['min']:.1f} / {part['median']:.1f} / {part['max']:.0f}")
        report.line(f"{row['row']:46} {cells[0]:28} {cells[1]:28}".rstrip())
        if "aim_ns" in row:
            best, aim = row["sender_ns"]["min"], row["aim_ns"]
            report.conclude("d", f"ns per work, {row['row']}", best, f"<= {aim:.0f}", best <= aim,
                            "{:.1f}")
    report_threads(report, data)
    return data


def report_threads(report, data):
    rails = data["threads"][0]["rails_per_thread"]
    report.title(f"    Threads with a link of their own over {rails} rails each, isend/test, 64 stripes; "
                 f"{data['cores']} cores")
    report.line(f"{'threads':>7}  {'sender':28} {'the receiving end':28} {'both, processor time':28}")
    for row in data["threads"]:
        cells = [f"{row[key]['min']:.1f} / {row[key]['median']:.1f} / {row[key]['max']:.0f}"
                 for key in ("sender_ns", "receiver_ns", "both_ends_cpu_ns")]
        report.line(f"{row['threads']:7}  {cells[0]:28} {cells[1]:28} {cells[2]}")


def report_switch(report, directory):
    data = load(os.path.join(directory, "switch.json"))
    report.title("(f) The software switch: packets that one shard takes in per second of its thread's "
                 "processor time, and a bare echo")
    report.line(f"{'lanes':>6} {'children':>9} {'switch k/s':>11} {'echo k/s':>9}   "
                f"{'ratio: min / median / max':28}")
    for row in data["rates"]:
        ratio = row["ratio"]
        report.line(f"{row['lanes']:6} {row['children']:9} "
                    f"{row['switch_packets_per_cpu_s']['median'] / 1e3:11.0f} "
                    f"{row['echo_packets_per_cpu_s']['median'] / 1e3:9.0f}   "
                    f"{ratio['min']:.2f} / {ratio['median']:.2f} / {ratio['max']:.2f}")
    report.line(f"{'a round of 4 KiB, 2 children':46} {'switch us':>9} {'echo us':>8} {'ratio':>6}")
    for row in data["latencies"]:
        report.line(f"{row['mode']:46} {row['switch_us']['median']:9.1f} "
                    f"{row['echo_us']['median']:8.1f} {row['ratio']['median']:6.2f}")
    worst = min(row["ratio"]["median"] for row in data["rates"])
    report.conclude("f", "software switch / bare echo, packets per core, worst median", worst,
                    f">= {data['aim_rate_ratio']}", worst >= data["aim_rate_ratio"])
    return data


def describe_machine(directory):
    def first_line(name):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            return file.readline().strip()

    perf = load(glob.glob(os.path.join(directory, "perf.rails1.*.json"))[0])
    return {"machine": perf["machine"], "commit": perf["commit"], "started": first_line("started"),
            "loadavg": first_line("loadavg"), "python": platform.python_version()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--json", help="also write everything here")
    arguments = parser.parse_args()
    about = describe_machine(arguments.directory)
    machine = about["machine"]
    print(f"libnet-slime {about['commit']} on {machine['cpu']}, {machine['cores']} cores, "
          f"{machine['kernel']}")
    load_before = float(about["loadavg"].split()[0])
    if load_before > 0.5:
        print(f"The machine was not idle before the start (load {load_before}): times are longer "
              "than they need be.")
    report = Report()
    parts = {"stream": report_stream(report, arguments.directory)}
    for name, function in (("latency", report_latency), ("posting", report_posting),
                           ("engine", report_engine), ("switch", report_switch)):
        parts[name] = function(report, arguments.directory)
    report.print_summary()
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"about": about, "summary": report.summary, "parts": parts}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
