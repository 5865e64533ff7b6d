#!/usr/bin/env python3
"""Keeps one run of run.sh as JSON: rows, machine, commit, versions, environment."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

import table

SCHEMA = "slime-run/1"
# Of the environment only what can matter to the result, and nothing that may be a secret.
KEPT = re.compile(r"(NCCL|UCX|OMPI_MCA|SLIME|SLURM_(?:JOB_ID|JOB_NUM_NODES|JOB_NODELIST|NTASKS)"
                  r"|CUDA_VISIBLE|LD_LIBRARY_PATH|MASTER_ADDR)")


def first_line(path, key):
    try:
        for line in pathlib.Path(path).read_text(errors="replace").splitlines():
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return None


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def machine():
    memory = first_line("/proc/meminfo", "MemTotal") or "0 kB"
    gpus = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    return {"host": platform.node(), "kernel": " ".join((platform.system(), platform.release(),
                                                         platform.machine())),
            "cpu": first_line("/proc/cpuinfo", "model name"),
            "cores": len(os.sched_getaffinity(0)), "memory_bytes": int(memory.split()[0]) * 1024,
            "gpus": gpus.splitlines() if gpus else []}


def commit():
    root = str(pathlib.Path(__file__).resolve().parent.parent)
    return output_of("git", "-c", "safe.directory=*", "-C", root, "describe", "--always", "--dirty",
                     "--abbrev=12", "--exclude=*")


def perf_details(work):
    try:
        return json.loads((work / "slime-perf.json").read_text())
    except (OSError, ValueError):
        return None


def make_record(options, command):
    work = pathlib.Path(options.work)
    parsed = table.parse((work / "output").read_text(errors="replace"))
    details = perf_details(work)
    if details and len(details.get("rows", [])) == len(parsed["rows"]):
        parsed["rows"] = details["rows"]  # the same names, and more digits than the table
    now = datetime.datetime.now(datetime.timezone.utc)
    variables = os.environ.get("SLIME_RUN_VARIABLES", "").split()
    return {"schema": SCHEMA, "scenario": options.scenario, "operation": options.op,
            "tool": options.tool, "ranks": options.ranks, "launcher": options.launcher,
            "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "commit": commit(),
            "plugin_commit": (details or {}).get("commit"), "machine": machine(),
            "command": command, "scenario_variables": variables,
            "environment": {k: v for k, v in sorted(os.environ.items())
                            if KEPT.match(k) and k != "SLIME_RUN_VARIABLES"},
            "exit_code": options.exit_code, **parsed, "details": details}


def verdict(record):
    """The exit code of run.sh."""
    halves = [row[place] for row in record["rows"] for place in ("out_of_place", "in_place")]
    if record["out_of_bounds"] or any(half.get("wrong") for half in halves):
        return 1
    return 0 if record["exit_code"] == 0 and record["rows"] else 3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("scenario", "op", "tool", "launcher", "work", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--exit-code", type=int, required=True)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    record = make_record(options, options.command)
    code = verdict(record)
    if not record["rows"]:
        print("run.sh: no result: %s ended with %d and printed no row of a table" %
              (options.command[0], options.exit_code), file=sys.stderr)
        return code
    stamp = re.sub(r"[-:]", "", record["date"])
    path = pathlib.Path(options.out) / "{}-{}-{}.json".format(options.scenario, options.op, stamp)
    number = 1
    while path.exists():
        number += 1
        path = path.with_name("{}-{}-{}-{}.json".format(options.scenario, options.op, stamp, number))
    path.write_text(json.dumps(record, indent=1) + "\n")
    print("# kept: %s" % path, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
