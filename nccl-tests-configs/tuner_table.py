#!/usr/bin/env python3
"""Writes a tuner file (NCCL_SLIME_TUNER_FILE) from measurements of all_reduce, to standard output.

Takes results of run.sh, or of slime-perf --json; several on each side count together, whatever
their types, reductions and numbers of ranks. A size is preferred if CollNet was faster there by
the margin in every type, reduction and place that both sides measured: NCCL does not tell the
tuner what type an operation has, so measure those that your job uses. Sizes between two measured
ones that follow each other and were both won count as won. All else, other numbers of ranks too,
is avoided ("otherwise avoid"; without that line NCCL chooses by its own model).

Exit code: 0 written, 2 usage or a file that cannot be used, 3 nothing that both sides measured."""
import argparse
import collections
import json
import math
import signal
import sys

FIRST_LINE = "slime-tuner 1"
MAX_SIZE, MAX_RANKS, MAX_RULES = 1 << 62, 1 << 20, 1024
PLACES = ("out_of_place", "in_place")


class Unusable(Exception):
    pass


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    except (OSError, ValueError) as error:
        raise Unusable("%s: %s" % (path, error)) from error
    known = isinstance(result, dict) and (str(result.get("schema", "")).startswith("slime-run/") or
                                          result.get("tool") == "slime-perf")
    if not known or not isinstance(result.get("rows"), list):
        raise Unusable("%s is no result of run.sh or of slime-perf --json" % path)
    operation = result.get("operation", result.get("collective"))
    if operation != "all_reduce":
        raise Unusable("%s measured %s; the tuner is about all_reduce" % (path, operation))
    ranks = result.get("ranks")
    if not isinstance(ranks, int) or not 2 <= ranks <= MAX_RANKS:
        raise Unusable("%s: %r ranks cannot be" % (path, ranks))
    return result


def by_collnet(result):
    """What ran: True, False, or None where the result does not say."""
    details = result.get("details") or result
    if details.get("tool") == "slime-perf":
        return details.get("algorithm") == "collnet"
    environment = result.get("environment") or {}
    if environment.get("NCCL_COLLNET_ENABLE") != "1":
        return False
    # With rings allowed beside it, nobody knows what NCCL took.
    of_allreduce = environment.get("NCCL_ALGO", "").lower().split("allreduce:")[-1].split(";")[0]
    only = of_allreduce.split(",")
    return True if all(name.startswith("collnet") for name in only) else None


def check_side(path, result, collnet):
    found = by_collnet(result)
    if found is collnet:
        return
    if found is None:
        raise Unusable("%s: NCCL chose the algorithm; measure with NCCL_ALGO=%s" %
                       (path, '"ring,tree;allreduce:collnetchain"'))
    raise Unusable("%s was measured %s CollNet" % (path, "by" if found else "without"))


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def times_of(path, result, best):
    """(size, (type, redop, place)) -> microseconds."""
    for row in result["rows"]:
        for place in PLACES:
            half = row.get(place) if isinstance(row, dict) else None
            if not isinstance(half, dict):
                raise Unusable("%s: a row lacks columns" % path)
            if half.get("wrong"):
                raise Unusable("%s: wrong results at %s bytes; a wrong result is no measurement" %
                               (path, row.get("size")))
            size, time = row.get("size"), half.get("best_us" if best else "time_us")
            if not isinstance(size, int) or not 0 <= size <= MAX_SIZE or not number(time):
                continue
            if time > 0:
                yield size, (row.get("type"), row.get("redop"), place), time


def collect(paths, collnet, best):
    """ranks -> size -> (type, redop, place) -> times."""
    found = collections.defaultdict(lambda: collections.defaultdict(
        lambda: collections.defaultdict(list)))
    for path in paths:
        result = load(path)
        check_side(path, result, collnet)
        for size, cell, time in times_of(path, result, best):
            found[result["ranks"]][size][cell].append(time)
    return found


def judge(ring, collnet, margin):
    """size -> the ratio ring / CollNet of the cell where CollNet did worst, if both have one."""
    ratios = {}
    for size in sorted(set(ring) & set(collnet)):
        cells = set(ring[size]) & set(collnet[size])
        if cells:
            # Of several runs the worst for CollNet counts.
            ratios[size] = min(min(ring[size][c]) / max(collnet[size][c]) for c in cells)
    return [(size, ratio, ratio >= 1 + margin / 100) for size, ratio in ratios.items()]


def preferred(judged):
    """(first, last) of each run of sizes that won."""
    runs, running = [], False
    for size, _, won in judged:
        if won and running:
            runs[-1] = (runs[-1][0], size)
        elif won:
            runs.append((size, size))
        running = won
    return runs


def lines_for(ranks, nodes, judged):
    yield "# %d ranks on %d nodes: time by ring and tree / time by CollNet, where CollNet did worst"\
        % (ranks, nodes)
    for size, ratio, won in judged:
        yield "# %12d %8.2f%s" % (size, ratio, "" if won else "  (not won)")
    for first, last in preferred(judged):
        yield "prefer %d %d %d %d" % (first, last, ranks, nodes)


def table(ring, collnet, nodes, margin):
    lines, count = [], 0
    for ranks in sorted(set(ring) & set(collnet)):
        judged = judge(ring[ranks], collnet[ranks], margin)
        if not judged:
            continue
        if nodes is not None and not 2 <= nodes <= ranks:
            raise Unusable("--nodes %d: with %d ranks, from 2 to %d" % (nodes, ranks, ranks))
        lines += lines_for(ranks, nodes or ranks, judged)
        count += len(preferred(judged))
    if count > MAX_RULES:
        raise Unusable("%d ranges; a tuner file takes %d: measure fewer sizes" % (count, MAX_RULES))
    return lines


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # | head
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ring", nargs="+", required=True, metavar="JSON",
                        help="measured without CollNet")
    parser.add_argument("--collnet", nargs="+", required=True, metavar="JSON",
                        help="measured by CollNet alone")
    parser.add_argument("--nodes", type=int, metavar="N",
                        help="on how many nodes the ranks were (default: each on its own)")
    parser.add_argument("--margin", type=float, default=5, metavar="PERCENT",
                        help="by how much CollNet must be faster (default 5)")
    parser.add_argument("--best", action="store_true",
                        help="the fastest operation instead of the mean (slime-perf only)")
    options = parser.parse_args()
    if not 0 <= options.margin <= 1000:
        parser.error("--margin: from 0 to 1000")
    try:
        ring = collect(options.ring, False, options.best)
        collnet = collect(options.collnet, True, options.best)
        lines = table(ring, collnet, options.nodes, options.margin)
    except Unusable as error:
        print("tuner_table.py: %s" % error, file=sys.stderr)
        return 2
    if not lines:
        print("tuner_table.py: nothing that both sides measured with as many ranks",
              file=sys.stderr)
        return 3
    head = [FIRST_LINE, "# CollNet had to be faster by %g %%" % options.margin]
    print("\n".join(head + lines + ["otherwise avoid"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
