#!/usr/bin/env python3
"""lanes.py LANES: prints switch/p4/v1model/lanes.p4, which repeats the same for every lane."""
import sys

WORDS = 8  # in a group: bmv2's compiler shifts by 256 bits at most


def highest_bits(width):
    """The highest bit of each number of so many bits in a group."""
    return f"{1 << (width - 1):0{width // 4}x}" * (32 * WORDS // width)


def group(number):
    """Its words are put side by side, folded, and taken apart."""
    lanes = range(number * WORDS, (number + 1) * WORDS)
    bits = {lane: f"[{32 * (lanes[-1] - lane) + 31}:{32 * (lanes[-1] - lane)}]" for lane in lanes}
    yield f"    if (meta.lanes > {lanes[0]}) {{"
    yield "      own = 0;"
    for lane in lanes:
        yield f"      if (hdr.words[{lane}].isValid()) {{"
        yield f"        own{bits[lane]} = hdr.words[{lane}].value;"
        yield "      }"
    yield f"      group{number}.apply(hdr, meta, numbers, own);"
    for lane in lanes:
        yield f"      if (meta.lanes > {lane}) {{"
        yield f"        hdr.words[{lane}].setValid();"
        yield f"        hdr.words[{lane}].value = own{bits[lane]};"
        yield "      }"
    yield "    }"


def v1model(lanes):
    groups = range(lanes // WORDS)
    yield "// Written by lanes.py for v1model."
    yield "#ifndef SLIME_LANES_P4"
    yield "#define SLIME_LANES_P4"
    yield ""
    yield "// The highest bit of each number in a group of words."
    for width in (8, 16, 32, 64):
        yield f"const group_t HIGHEST_{width} = 0x{highest_bits(width)};"
    yield ""
    yield '#include "v1model/group.p4"'
    yield ""
    yield "control Lanes(inout headers_t hdr, inout meta_t meta) {"
    yield "  Numbers() format;"
    for number in groups:
        yield f"  Group() group{number};"
    yield "  apply {"
    yield "    numbers_t numbers;"
    yield "    group_t own;"
    yield "    format.apply(hdr, numbers);"
    for number in groups:
        yield from group(number)
    yield "  }"
    yield "}"
    yield ""
    yield "#endif"


if __name__ == "__main__":
    print("\n".join(v1model(int(sys.argv[1]))))
