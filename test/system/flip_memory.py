#!/usr/bin/env python3
"""Flips one bit in every half of every slot of a running slime-switchd that holds numbers.

    flip_memory.py PID

The slots of the job (switch/core/slots.h: halves of 64 bytes of state and 8192 of numbers, one
allocation) must be the largest mapping of the process, larger than a thread's stack: many slots.
"""
import random
import sys

STATE_BYTES, LANES_BYTES = 64, 4 * 2048
SLACK = 64  # the allocation begins so far into the mapping, at most


def largest_mapping(pid):
    best = (0, 0)
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            fields = line.split()
            if len(fields) == 5 and fields[1] == "rw-p":
                first, last = (int(part, 16) for part in fields[0].split("-"))
                best = max(best, (last - first, first))
    return best


def main():
    size, first = largest_mapping(int(sys.argv[1]))
    chance = random.Random(1)
    flipped = 0
    with open(f"/proc/{sys.argv[1]}/mem", "r+b", buffering=0) as memory:
        stride = STATE_BYTES + LANES_BYTES
        for half in range(size // stride - 1):
            numbers = first + half * stride + STATE_BYTES + SLACK
            memory.seek(numbers)
            if not any(memory.read(LANES_BYTES - SLACK)):
                continue
            at = numbers + chance.randrange(LANES_BYTES - SLACK)
            memory.seek(at)
            byte = memory.read(1)[0]
            memory.seek(at)
            memory.write(bytes([byte ^ 1 << chance.randrange(8)]))
            flipped += 1
    print(f"{flipped} bits flipped, in {size} bytes")
    sys.exit(0 if flipped else 1)


if __name__ == "__main__":
    main()
