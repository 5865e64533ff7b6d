"""One of the two ranks. Prints a JSON object per line: {"test", "result", "why"}."""
import argparse
import datetime
import json
import os
import sys
import time

import torch
import torch.distributed as dist

import cases


def say(test, result, why=""):
    print(json.dumps({"test": test, "result": result, "why": why}), flush=True)


def join(options, generation):
    dist.init_process_group(
        options.backend, rank=options.rank, world_size=2,
        init_method="file://%s.%d" % (options.meet, generation),
        timeout=datetime.timedelta(seconds=options.timeout))


def collectives(world):
    for name, function, dtype in cases.chosen(world.backend):
        if dtype is None:
            say(name, "skipped", "not with %s" % world.backend)
            continue
        try:
            for count in cases.SIZES:
                function(world, count, dtype)
            say(name, "passed")
        except cases.Wrong as error:
            say(name, "failed", str(error))


def large(world):
    """64 MiB, several times, so that every buffer of NCCL is used again and again."""
    count = (16 << 20) + 3
    try:
        for salt in range(4):
            whole, mine = world.guarded(count, torch.float32)
            mine.copy_(world.values(world.rank, count, torch.float32, salt))
            dist.all_reduce(mine)
            want = world.values(0, count, torch.float32, salt) + world.values(1, count,
                                                                             torch.float32, salt)
            world.check(whole, want, "round %d" % salt)
        say("large all_reduce", "passed")
    except cases.Wrong as error:
        say("large all_reduce", "failed", str(error))


def groups(world):
    """Two more communicators at once, used in turns."""
    try:
        several = [dist.new_group([0, 1]) for _ in range(2)]
        for salt in range(6):
            whole, mine = world.guarded(70001, torch.float32)
            mine.copy_(world.values(world.rank, 70001, torch.float32, salt))
            dist.all_reduce(mine, group=several[salt % 2])
            want = world.values(0, 70001, torch.float32, salt) + world.values(1, 70001,
                                                                             torch.float32, salt)
            world.check(whole, want, "communicator %d" % (salt % 2))
        say("several communicators", "passed")
    except cases.Wrong as error:
        say("several communicators", "failed", str(error))


def again(world, options):
    """All communicators destroyed and made anew: NCCL unloads and loads the plugin, or keeps it."""
    dist.destroy_process_group()
    join(options, 1)
    try:
        cases.CASES["all_reduce sum"][0](world, 4097, torch.float32)
        say("a second life", "passed")
    except cases.Wrong as error:
        say("a second life", "failed", str(error))


def until_killed(world, options):
    """All-reduces for ever. The driver kills rank 1; rank 0 must end with an error."""
    part = torch.ones(1 << 20, device=world.device)
    deadline = time.monotonic() + options.timeout
    rounds = 0
    try:
        while time.monotonic() < deadline:
            dist.all_reduce(part, async_op=True).wait()
            part.fill_(1)
            rounds += 1
            if rounds == 5:
                say("ready", "passed")
    except Exception as error:  # pylint: disable=broad-except  # whatever PyTorch makes of it
        say("ended", "passed", "%s: %s" % (type(error).__name__, str(error)[:400]))
        os._exit(9)  # the destructors wait for the dead rank
    say("ended", "failed", "no error after %d rounds" % rounds)
    os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--backend", choices=("nccl", "gloo"), required=True)
    parser.add_argument("--meet", required=True)
    parser.add_argument("--part", choices=("all", "short", "kill"), required=True)
    parser.add_argument("--timeout", type=int, default=120)
    options = parser.parse_args()
    device = torch.device("cuda:0" if options.backend == "nccl" else "cpu")
    if options.backend == "nccl":
        torch.cuda.set_device(device)
    join(options, 0)
    world = cases.World(options.rank, 2, device, options.backend)
    if options.part == "kill":
        until_killed(world, options)
    if options.part == "all":
        collectives(world)
    large(world)
    groups(world)
    again(world, options)
    dist.destroy_process_group()
    sys.exit(0)


if __name__ == "__main__":
    main()
