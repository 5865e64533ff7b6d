"""Starts two ranks on one GPU with NCCL over the plugin, looks at their results and at NCCL's log,
and kills one of them. Last line: N passed, N failed, N skipped."""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ENDS_WITHIN_S = 30  # after the death of the other rank
KILL_TEST_S = 100  # kept for it: two ranks must start first


class Tally:
    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def add(self, test, result, why=""):
        self.counts[result] += 1
        word = {"passed": "ok", "failed": "not ok", "skipped": "skipped"}[result]
        print("%s: %s%s" % (word, test, ": " + why if why else ""), flush=True)

    def closing_line(self):
        return "{passed} passed, {failed} failed, {skipped} skipped".format(**self.counts)


def plugin_variables(plugin, work, nccl_version):
    """Before 2.21, and in 2.27.3, NCCL takes no path."""
    if nccl_version >= (2, 21) and nccl_version != (2, 27, 3):
        return {"NCCL_NET_PLUGIN": plugin}
    link = work / "libnccl-net-slime.so"
    if not link.is_symlink():
        link.symlink_to(plugin)
    path = os.environ.get("LD_LIBRARY_PATH")
    return {"NCCL_NET_PLUGIN": "slime", "LD_LIBRARY_PATH": str(work) + (":" + path if path else "")}


def environment(options, work, rank, session):
    """The user's NCCL variables must not decide what is tested; --set adds some."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TORCH_NCCL_"))}
    if options.backend == "nccl":
        env.update({
            "NCCL_HOSTID": "slime-test-%d" % rank,  # two ranks on one GPU are two hosts to NCCL
            "NCCL_NET": "SLIME", "NCCL_NET_PLUGIN_REF_COUNT": "1", "NCCL_NVLS_ENABLE": "0",
            "NCCL_MNNVL_ENABLE": "0", "NCCL_SOCKET_IFNAME": "lo", "NCCL_MAX_CTAS": "4",
            "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV",
            "NCCL_DEBUG_FILE": str(work / ("%s-%d.nccl" % (session, rank))),
            # wait() returns when the work is done or has failed; the older name for older PyTorch.
            "TORCH_NCCL_BLOCKING_WAIT": "1", "NCCL_BLOCKING_WAIT": "1"})
        env.update(plugin_variables(options.plugin, work, options.nccl_version))
    env.update(GLOO_SOCKET_IFNAME="lo", PYTHONUNBUFFERED="1")
    env.update(setting.split("=", 1) for setting in options.set)
    return env


class Rank:
    """One process, its lines as they come, and what it wrote to standard error."""

    def __init__(self, options, work, rank, session, part, extra):
        self.lines, self.ready = [], threading.Event()
        self.errors = open(work / ("%s-%d.err" % (session, rank)), "w+", encoding="utf-8",
                           errors="replace")
        env = dict(environment(options, work, rank, session), **extra)
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "rank.py"), "--rank", str(rank), "--backend",
             options.backend, "--meet", str(work / (session + ".meet")), "--part", part],
            env=env, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # a library's chatter
            self.lines.append(said)
            if said.get("test") == "ready":
                self.ready.set()

    def wait(self, deadline):
        """Exit status; None: it had to be killed at the deadline."""
        try:
            code = self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = None
        self.reader.join(60)
        return code

    def last_words(self):
        self.errors.seek(0)
        return " | ".join(self.errors.read().strip().splitlines()[-4:])[-800:]


def session(options, work, name, part, extra, tally):
    """Two ranks to their end. A test passes when it passed on both."""
    started = time.monotonic()
    deadline = options.end - KILL_TEST_S
    ranks = [Rank(options, work, rank, name, part, extra) for rank in range(2)]
    codes = [rank.wait(deadline) for rank in ranks]
    results = [{line["test"]: line for line in rank.lines} for rank in ranks]
    for test in dict.fromkeys(list(results[0]) + list(results[1])):
        both = [result.get(test) for result in results]
        failed = [(rank, line) for rank, line in enumerate(both)
                  if line is None or line["result"] == "failed"]
        if failed:
            rank, line = failed[0]
            tally.add("%s: %s" % (name, test), "failed",
                      "rank %d: %s" % (rank, line["why"] if line else "did not get there"))
        else:
            tally.add("%s: %s" % (name, test), both[0]["result"], both[0]["why"])
    for rank, code in enumerate(codes):
        if code != 0:
            how = "ended with %d" % code if code is not None else (
                "killed after %d s; --limit gives more" % (time.monotonic() - started))
            tally.add("%s: rank %d" % (name, rank), "failed",
                      "%s: %s" % (how, ranks[rank].last_words()))


def transports_in(log):
    """Of the lines 'Channel 00/0 : 0[0] -> 1[0] [send] via NET/SLIME/0': what follows 'via'."""
    return set(re.findall(r"Channel \d+.*? via ([A-Za-z]+(?:/[A-Za-z]+)?)", log))


def check_log(options, work, name, tally):
    for rank in range(2):
        test = "%s: NCCL's log of rank %d" % (name, rank)
        path = work / ("%s-%d.nccl" % (name, rank))
        log = path.read_text(errors="replace") if path.exists() else ""
        found = transports_in(log)
        if found == {"NET/SLIME"}:
            tally.add(test, "passed", "NET/SLIME and nothing else")
        else:
            tally.add(test, "failed", "connections via %s; see %s" %
                      (", ".join(sorted(found)) or "nothing", path))


def kill_test(options, work, tally):
    name = "kill"
    ranks = [Rank(options, work, rank, name, "kill", {}) for rank in range(2)]
    up = all(rank.ready.wait(KILL_TEST_S - ENDS_WITHIN_S - 10) for rank in ranks)
    started = time.monotonic()
    ranks[1].process.send_signal(signal.SIGKILL)
    ranks[1].wait(started + 5)
    code = ranks[0].wait(started + ENDS_WITHIN_S)
    seconds = time.monotonic() - started
    said = [line["why"] for line in ranks[0].lines if line["test"] == "ended"]
    words = (said or [ranks[0].last_words()])[0]
    if not up:
        tally.add(name, "failed", "the ranks did not start: " + ranks[0].last_words())
    elif code is None:
        tally.add(name, "failed", "rank 0 still ran %d s after rank 1 was killed" % ENDS_WITHIN_S)
    elif code == 0:
        tally.add(name, "failed", "rank 0 ended without an error: " + words)
    else:
        tally.add(name, "passed", "rank 0 ended after %.1f s: %s" % (seconds, words))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    parser.add_argument("--plugin", default="")
    parser.add_argument("--nccl-version", default="0.0.0",
                        type=lambda text: tuple(int(part) for part in text.split(".")))
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--limit", type=int, default=290, help="seconds for everything")
    options = parser.parse_args()
    if options.limit <= KILL_TEST_S:
        parser.error("--limit must be more than %d" % KILL_TEST_S)
    options.end = time.monotonic() + options.limit
    if any("=" not in setting for setting in options.set):
        parser.error("--set wants NAME=VALUE")
    return options


def main():
    options = arguments()
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        session(options, work, "one rail", "all", {}, tally)
        session(options, work, "four rails", "short", {"NCCL_SLIME_RAILS_PER_IF": "4"}, tally)
        if options.backend == "nccl":
            check_log(options, work, "one rail", tally)
            check_log(options, work, "four rails", tally)
        kill_test(options, work, tally)
    print(tally.closing_line())
    sys.exit(1 if tally.counts["failed"] or not tally.counts["passed"] else 0)


if __name__ == "__main__":
    main()
