#!/usr/bin/env python3
"""Prints two results of run.sh side by side, with ratios (B / A).

Exit code: 0 compared, 2 usage or a file that cannot be read, 3 the two are not of the same
scenario, operation and number of ranks (--force compares them nevertheless)."""
import argparse
import json
import math
import signal
import sys

MUST_BE_EQUAL = ("scenario", "operation", "ranks")
WORTH_SAYING = ("tool", "commit", "nccl_version", "launcher")


class Unreadable(Exception):
    pass


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    except (OSError, ValueError) as error:
        raise Unreadable("%s: %s" % (path, error)) from error
    if not isinstance(result, dict) or not str(result.get("schema", "")).startswith("slime-run/"):
        raise Unreadable("%s is no result of run.sh (no schema slime-run/...)" % path)
    for row in result.get("rows") or []:
        if not {"size", "type", "redop", "root", "out_of_place", "in_place"} <= set(row):
            raise Unreadable("%s: a row lacks columns" % path)
    return result


def key(row):
    return row["size"], row["type"], row["redop"], row["root"]


def rows_of(result):
    """By key; of several tables with the same key the first counts."""
    rows = {}
    for row in result.get("rows") or []:
        rows.setdefault(key(row), row)
    return rows


def ratio(a, b):
    return b / a if a and b else None


def shown(value, digits=2):
    return "-" if value is None else "%.*f" % (digits, value)


def differences(a, b):
    """What else differs: (name, in A, in B)."""
    found = [(n, a.get(n), b.get(n)) for n in WORTH_SAYING if a.get(n) != b.get(n)]
    for part in ("machine", "environment"):
        left, right = a.get(part) or {}, b.get(part) or {}
        found += [(part + "." + n, left.get(n), right.get(n))
                  for n in sorted(set(left) | set(right)) if left.get(n) != right.get(n)]
    return found


MEASURES = {False: ("time_us", "busbw_GBps"), True: ("best_us", "best_busbw_GBps")}


def print_table(a, b, place, best):
    time_name, bus_name = MEASURES[best]
    print("# %10s %9s %7s %5s %11s %11s %7s %9s %9s %7s %7s %7s" %
          ("size", "type", "redop", "root", "time A", "time B", "B/A", "busbw A", "busbw B", "B/A",
           "wrong A", "wrong B"))
    ratios = []
    for row_key, left in a.items():
        right = b.get(row_key)
        if right is None:
            continue
        x, y = left[place], right[place]
        bus = ratio(x.get(bus_name), y.get(bus_name))
        time = ratio(x.get(time_name), y.get(time_name))
        if time:
            ratios.append(time)
        print("%12d %9s %7s %5d %11s %11s %7s %9s %9s %7s %7s %7s" %
              (row_key + (shown(x.get(time_name)), shown(y.get(time_name)), shown(time),
                          shown(x.get(bus_name)), shown(y.get(bus_name)), shown(bus),
                          shown(x.get("wrong"), 0), shown(y.get("wrong"), 0))))
    if ratios:
        print("# geometric mean of time B/A over %d rows: %.3f" %
              (len(ratios), math.exp(sum(map(math.log, ratios)) / len(ratios))))
    return len(ratios)


def only_in_one(name, mine, other):
    missing = [k for k in mine if k not in other]
    if missing:
        print("# only in %s: %s" % (name, ", ".join("%d %s %s" % k[:3] for k in missing)))


def compare(a, b, places, best):
    for name, result in (("A", a), ("B", b)):
        print("# %s: %s %s, %s ranks, %s, %s" % (name, result.get("scenario"),
                                                 result.get("operation"), result.get("ranks"),
                                                 result.get("tool"), result.get("date")))
    for name, left, right in differences(a, b):
        print("# differs: %s: A %s, B %s" % (name, json.dumps(left), json.dumps(right)))
    left, right = rows_of(a), rows_of(b)
    common = 0
    for place in places:
        print("#\n# %s" % place.replace("_", " "))
        common += print_table(left, right, place, best)
    only_in_one("A", left, right)
    only_in_one("B", right, left)
    return common


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # | head
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", metavar="A.json")
    parser.add_argument("b", metavar="B.json")
    parser.add_argument("--force", action="store_true", help="also when the scenarios differ")
    parser.add_argument("--place", choices=("out", "in", "both"), default="both",
                        help="out of place, in place, or both tables (default)")
    parser.add_argument("--best", action="store_true",
                        help="the fastest operation instead of the mean (slime-perf only): on few "
                             "cores the mean jumps by whole ticks of the scheduler")
    options = parser.parse_args()
    try:
        a, b = load(options.a), load(options.b)
    except Unreadable as error:
        print("compare.py: %s" % error, file=sys.stderr)
        return 2
    unequal = [n for n in MUST_BE_EQUAL if a.get(n) != b.get(n)]
    for name in unequal:
        print("compare.py: %s differs: %s and %s" % (name, a.get(name), b.get(name)),
              file=sys.stderr)
    if unequal and not options.force:
        print("compare.py: not compared; --force does it", file=sys.stderr)
        return 3
    places = {"out": ["out_of_place"], "in": ["in_place"],
              "both": ["out_of_place", "in_place"]}[options.place]
    if compare(a, b, places, options.best) == 0:
        print("compare.py: no row that both have measured", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
