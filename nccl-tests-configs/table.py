"""The table that nccl-tests and slime-perf print, read by the names in its header."""
import re

# mpirun --tag-output and srun --label put the rank before each line.
_LABEL = re.compile(r"^(\[\d+,\d+\]<std(?:out|err)>:|\s*\d+: )")
_MEASURES = {"time": "time_us", "cputime": "time_us", "algbw": "algbw_GBps", "busbw": "busbw_GBps",
             "#wrong": "wrong", "error": "error"}


def _columns(line):
    """The names in a header line; none if it is no header."""
    words = line.lstrip("#").split()
    return words if line.startswith("#") and words[:2] == ["size", "count"] else []


def _number(word):
    try:
        value = float(word)
    except ValueError:
        return None  # N/A: not checked, or not measured
    return int(value) if value.is_integer() else value


def _half(columns, words, start):
    """The measures from column `start` on, up to the next column of that name."""
    half = {}
    for name, word in zip(columns[start:], words[start:]):
        key = _MEASURES.get(name)
        if key in half:
            break
        if key:
            half[key] = _number(word)
    return half


def _row(columns, words):
    starts = [i for i, name in enumerate(columns) if name in ("time", "cputime")]
    if len(starts) != 2 or len(words) < 2 or not all(w.isdigit() for w in words[:2]):
        return None
    # An old nccl-tests leaves redop and root blank where they mean nothing.
    blanks = sum(name in ("redop", "root") for name in columns[:starts[0]])
    missing = len(columns) - len(words)
    if not 0 < missing <= blanks:
        missing = 0
    words = words[:starts[0] - missing] + [""] * missing + words[starts[0] - missing:]
    if len(words) < len(columns) - columns.count("timestamp"):
        return None
    named = dict(zip(columns[:starts[0]], words))
    root = _number(named.get("root") or "-1")
    return {"size": int(named["size"]), "count": int(named["count"]), "type": named.get("type", ""),
            "redop": named.get("redop") or "none", "root": -1 if root is None else root,
            "out_of_place": _half(columns, words, starts[0]),
            "in_place": _half(columns, words, starts[1])}


def _after_colon(line):
    return _number(line.split(":", 1)[1].split()[0]) if line.split(":", 1)[1].split() else None


def _version(code):
    scale = 10000 if code >= 10000 else 1000  # nccl.h: NCCL_VERSION changed with 2.9
    return "%d.%d.%d" % (code // scale, code % scale // 100, code % 100)


def parse(text):
    """Rows and what is said around them; lines of a log in between do not matter."""
    result = {"rows": [], "out_of_bounds": None, "average_busbw_GBps": None, "nccl_version": None}
    columns = []
    for line in text.splitlines():
        line = _LABEL.sub("", line.rstrip())
        library = re.search(r"nccl-library=(\d+)", line)
        banner = re.match(r".*\bNCCL version (\d+\.\d+\.\d+)", line)
        if _columns(line):
            columns = _columns(line)
        elif line.startswith("#") and "Out of bounds values" in line:
            result["out_of_bounds"] = _after_colon(line)
        elif line.startswith("#") and "Avg bus bandwidth" in line:
            result["average_busbw_GBps"] = _after_colon(line)
        elif library:
            result["nccl_version"] = _version(int(library.group(1)))
        elif banner:
            result["nccl_version"] = banner.group(1)
        elif columns and line[:1] in (" ", "\t") or line[:1].isdigit():
            row = _row(columns, line.split()) if columns else None
            if row:
                result["rows"].append(row)
    return result
