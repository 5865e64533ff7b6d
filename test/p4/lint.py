#!/usr/bin/env python3
"""Compares the P4 sources with the C++ that they must agree with: the header of SAP/2, its numbers,
the order of the counters, and what the driver writes into tables. Names that are in one and not in
the other are found too. Exit status 1: something differs."""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
CORE = ROOT / "switch/p4/core"
wrong = []


def read(path):
    return re.sub(r"//[^\n]*", "", path.read_text())


def compare(what, in_p4, in_cpp):
    if in_p4 != in_cpp:
        wrong.append(f"{what}: P4 has {in_p4}, C++ has {in_cpp}")


class Program:
    """A P4 program, and the C++ that fills its tables."""

    def __init__(self, target, driver):
        paths = [*CORE.glob("*.p4"), *(ROOT / "switch/p4" / target).glob("*.p4")]
        self.p4 = "\n".join(read(path) for path in sorted(paths))
        self.header = read(ROOT / "switch" / driver / "program.h")
        self.cpp = read(ROOT / "switch" / driver / "program.cc")
        # p4driver writes the entries of all programs that do not depend on jobs: with these names.
        bridge = re.search(r"BridgeNames kBridge{(.*?)};", self.cpp, re.DOTALL)
        shared = read(ROOT / "switch/p4driver/program.cc")
        for field, name in re.findall(r'\.(\w+) = "([\w.]+)"', bridge.group(1)):
            shared = re.sub(rf"\bnames\.{field}\b", f'"{name}"', shared)
        self.cpp = self.cpp.replace(bridge.group(0), "") + shared


def number(text):
    return int(text.replace("'", ""), 0)


def snake(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def defines(text, prefix=""):
    found = re.findall(rf"#define {prefix}(\w+) (0x[0-9a-fA-F]+|\d+)\b", text)
    return {name: number(value) for name, value in found}


def enum(text, name):
    body = re.search(rf"enum class {name} : \w+ {{([^}}]*)}}", text).group(1)
    values, following = {}, 0
    for entry, value in re.findall(r"k(\w+)(?: = (\d+))?\s*(?:,|$)", body.strip()):
        following = int(value) if value else following
        values[snake(entry)] = following
        following += 1
    return values


def header_fields(text, name):
    body = re.search(rf"header {name} {{([^}}]*)}}", text).group(1)
    return [(field, int(bits)) for bits, field in re.findall(r"bit<(\d+)> (\w+);", body)]


def check_header(p4, cpp):
    """Each field of sap_h begins where sap::at says."""
    at, offsets = 0, {}
    for field, bits in header_fields(p4, "sap_h"):
        offsets[field], at = at, at + bits
    begins = dict(re.findall(r"size_t k(\w+) = (\d+);", cpp[cpp.index("namespace at") :]))
    first = {"MagicVersion": "magic", "Shape": "format", "Exponents": "exponent0"}
    second = {"version", "op", "exponent1"}  # in the same byte as the one before, or right after
    named = {first.get(name, name.lower()): 8 * int(value) for name, value in begins.items()}
    compare("fields of sap_h", sorted(set(offsets) - second), sorted(named))
    for field, offset in named.items():
        compare(f"offset of {field} in bits", offsets.get(field), offset)
    compare("bits of sap_h", at, 8 * int(re.search(r"kHeaderBytes = (\d+)", cpp).group(1)))


def check_numbers(p4, cpp):
    expected = {**enum(cpp, "Type"), **enum(cpp, "Format"), **enum(cpp, "Op"), **enum(cpp, "Rejection")}
    flags = cpp[cpp.index("namespace flag") : cpp.index("namespace special")]
    expected["EXPONENTS_ONLY"] = int(re.search(r"kExponentsOnly = (\d+)", flags).group(1))
    expected["KNOWN_FLAGS"] = int(re.search(r"kKnown = (\d+)", flags).group(1))
    for name in ("Magic", "Version", "HeaderBytes", "MaxChildren", "KnownFormats"):
        value = re.search(rf"k{name} = ([0-9a-fA-Fxb']+);", cpp).group(1)
        expected[snake(name)] = number(value)
    found = defines(p4, "SAP_")
    for name in sorted({*found, *expected}):
        compare(f"SAP_{name}", found.get(name), expected.get(name))


def check_counters(meta, cpp, prefix, macro):
    """Counters have the order of the X macro."""
    body = cpp[cpp.index(f"#define {macro}(X)") :]
    body = body[: body.index("\n\n")]
    names = [name.upper() for name in re.findall(r"X\((\w+),", body)]
    found = sorted(defines(meta, prefix).items(), key=lambda one: one[1])
    compare(f"counters {prefix}*", found, [(name, i) for i, name in enumerate(names)])


def p4_parameters(text, action):
    found = re.search(rf"action {action}\(([^)]*)\)", text)
    if not found:
        return None
    parts = re.findall(r"(bit<\d+>|port_t) (\w+)", found.group(1))
    return [(name, 9 if kind == "port_t" else int(kind[4:-1])) for kind, name in parts]


def p4_keys(text, table):
    """The name of each part of the key, and the expression that it is made of."""
    found = re.search(rf"table {table} {{\s*key = {{([^}}]*)}}", text)
    if not found:
        return None
    keys = re.findall(r'([\w.\[\]:]+): exact(?: @name\("(\w+)"\))?;', found.group(1))
    return [(name or expression, expression) for expression, name in keys]


def width_of(text, key):
    """A field of a header or bits of it, or else of metadata, a variable or a parameter, whose names
    are there once."""
    bits = re.search(r"\[(\d+):(\d+)\]", key)
    if bits:
        return int(bits.group(1)) - int(bits.group(2)) + 1
    parts = key.split(".")
    if parts[0] == "hdr":
        return dict(header_fields(text, parts[1] + "_h")).get(parts[2])
    return int(re.search(rf"bit<(\d+)> {parts[-1]}(?:;| =|,)", text).group(1))


def tables_to_fill(text):
    """The others have all their entries in the program."""
    tables = re.findall(r"\btable (\w+) {(.*?)\n  }", text, re.DOTALL)
    return {name for name, body in tables if "const entries" not in body}


def check_entries(p4, cpp, header):
    """What program.cc writes has the keys and parameters that the program declares, and their widths."""
    for constant, name in re.findall(r'\bk(\w+) = "([\w.]+)"', header):
        cpp = re.sub(rf"{{\s*k{constant},(?=\s*{{{{)", f'{{"{name}",', cpp)  # an entry's table
    calls = []  # a table or an action, and the fields that follow it
    for name, field, bits in re.findall(r'"(Switch\w+(?:\.\w+)+)"|{"([\w.]+)", (\d+),', cpp):
        if name:
            calls.append((name, []))
        else:
            calls[-1][1].append((field, int(bits)))
    for name, written in calls:
        last = name.split(".")[-1]
        keys, parameters = p4_keys(p4, last), p4_parameters(p4, last)
        if keys is not None:
            compare(f"key of {name}", [(key, width_of(p4, what)) for key, what in keys], written)
        elif parameters is not None:
            compare(f"parameters of {name}", parameters, written)
        else:
            wrong.append(f"{name}: no table or action of the P4 program")
    filled = {name.split(".")[-1] for name, _ in calls}
    compare("tables", tables_to_fill(p4), {name for name in filled if p4_keys(p4, name)})


def check_limits(p4, header, names):
    limits = defines(p4)
    for name in names:
        constant = name.title().replace("_", "")
        found = re.search(rf"\bk{constant} = (\w+);", header)
        compare(name, limits.get(name), found and number(found.group(1)))


def check_arrays(p4, header):
    """Registers, counters and meters that the driver names."""
    declared = set(re.findall(r"(?:register<[^;]*>|counter|meter)\([^;]*\) (\w+);", p4))
    declared |= set(re.findall(r"\b(?:REGISTER|COUNTERS|METER)\((?:[^;]*, )?(\w+)\);", p4))
    named = re.findall(r'"Switch[\w.]*\.(\w+)"', header)
    for name in named:
        if name not in declared and p4_keys(p4, name) is None:
            wrong.append(f"{name}: no register, counter, meter or table of the P4 program")


def main():
    sap_p4, sap_h = read(CORE / "sap.p4"), read(ROOT / "switch/protocol/sap.h")
    counters = read(CORE / "counters.p4")
    check_header(sap_p4, sap_h)
    check_numbers(sap_p4, sap_h)
    check_counters(counters, read(ROOT / "switch/core/job.h"), "COUNT_", "SLIME_JOB_COUNTERS")
    check_counters(counters, read(ROOT / "switch/core/shard.h"), "DEVICE_", "SLIME_SHARD_COUNTERS")
    limits = ["LANES", "HALVES", "JOBS", "SOURCES", "COUNTS_OF_A_JOB"]
    for program, more in ((Program("v1model", "bmv2"), ["TO_PARENT"]), (Program("tna", "tofino"), [])):
        check_entries(program.p4, program.cpp, program.header)
        check_limits(program.p4, program.header, limits + more)
        check_arrays(program.p4, program.header)
    for line in wrong:
        print(f"lint: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
