#!/bin/bash
# slime-info against real files: our plugin under several names, and small plugins made here that
# are of another make, too old, damaged, or crash.
# shellcheck disable=SC2317  # functions called through check
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$PWD/${SLIME_BUILD_DIR:-build}
lib=$build/lib
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
wrong=0
launcher=()
[ "${SLIME_SAN:-}" = tsan ] && launcher=(setarch "$(uname -m)" -R)
export HOME=$root NCCL_SLIME_IFNAME=lo # no ~/.nccl.conf; the same devices everywhere
unset LD_LIBRARY_PATH

ok() { echo "ok: $1"; }
not_ok() {
  printf 'not ok: %s\n' "$1"
  [ $# -lt 2 ] || printf '%s\n' "$2" | sed 's/^/  | /'
  wrong=1
}

# check WHAT EVIDENCE COMMAND...: the command succeeds.
check() {
  local what=$1 evidence=$2
  shift 2
  if "$@"; then ok "$what"; else not_ok "$what" "$evidence"; fi
}

# expect WHAT EXIT CONDITION [VARIABLE=VALUE...] -- ARGUMENT...: runs it and compares the exit
# status; the condition on the JSON is looked at in the end, all in one Python.
mkdir "$root/cases"
cases=0
expect() {
  local what=$1 want=$2 condition=$3 variables=() case code
  shift 3
  while [ "$1" != -- ]; do
    variables+=("$1")
    shift
  done
  shift
  cases=$((cases + 1))
  case=$(printf '%s/cases/%03d' "$root" $cases)
  printf '%s' "$condition" >"$case.condition"
  printf '%s' "$what" >"$case.what"
  env "${variables[@]}" "${launcher[@]}" "$build/bin/slime-info" --json "$@" >"$case.json" 2>"$case.err"
  code=$?
  [ "$code" -eq "$want" ] || not_ok "$what: exit status $code, not $want" "$(cat "$case.err")"
}

# The command line.
for arguments in "--help 0" "--version 0" "--nonsense 2" "--nccl 3.1 2" "--nccl 2.x 2" \
  "--nccl /nonexistent/libnccl.so.2 2" "--nccl 2.20. 2" "unexpected 2"; do
  want=${arguments##* }
  # shellcheck disable=SC2086  # words of one command line
  "${launcher[@]}" "$build/bin/slime-info" ${arguments% *} >"$root/out" 2>&1
  code=$?
  check "${arguments% *} ends with $want, got $code" "$(cat "$root/out")" [ $code -eq "$want" ]
done
"${launcher[@]}" "$build/bin/slime-info" --settings-markdown >"$root/configuration.md"
check "docs/configuration.md is what --settings-markdown prints" "" \
  cmp "$root/configuration.md" docs/configuration.md

"${launcher[@]}" "$build/bin/slime-info" --nccl 99.9 >"$root/out" 2>&1
check "NCCL 99.9: what is known" "$(cat "$root/out")" \
  grep -q 'NCCL 99.9 is none that is known here: versions are 2.x' "$root/out"

# Names and tables, release by release.
ours=LD_LIBRARY_PATH=$lib
expect "the word works everywhere" 0 \
  'set(outcomes().values()) == {"slime"} and
   [x["attempts"][-1]["table"] for x in l["releases"]] == [6, 7, 8, 8, 8, 9, 10, 10, 10, 11, 12]' \
  "$ours" NCCL_NET_PLUGIN=slime -- --loading --nccl all
expect "all kinds of tables are named" 0 \
  '[(x["collnet_tables"], x["tuner_tables"]) for x in l["files"] if x["opened"]][:1] ==
   [(list(range(6, 13)), [2, 3, 4, 5])]' \
  "$ours" NCCL_NET_PLUGIN=slime -- --loading --nccl 2.28.9
expect "a file name works from 2.21" 0 \
  '[x["outcome"] == "internal" for x in l["releases"]] == [True] * 3 + [False] * 8 and
   "takes no file name" in problems()' \
  "$ours" NCCL_NET_PLUGIN=libnet-slime.so -- --loading --nccl all
expect "2.20 puts a prefix before a file name" 3 \
  'opened() == ["libnccl-net-libnet-slime.so.so"] and
   l["commands"] == ["export NCCL_NET_PLUGIN=slime"]' \
  "$ours" NCCL_NET_PLUGIN=libnet-slime.so -- --loading --nccl 2.20.5
expect "a path works from 2.21, but not with 2.27.3" 0 \
  '[x["outcome"] for x in l["releases"]].count("internal") == 4 and
   outcomes()["2.27 - 2.27.3"] == "internal" and outcomes()["2.21"] == "slime"' \
  -- --loading --nccl all --plugin "$lib/libnet-slime.so"
expect "2.27.3 puts a prefix before a path, each of a list" 3 \
  'opened() == ["libnccl-net-nope.so", "libnccl-net-/opt/x.so.so"] and
   "takes no path: it looks for libnccl-net-/opt/x.so.so;" in problems()' \
  "$ours" NCCL_NET_PLUGIN=nope,/opt/x.so -- --loading --nccl 2.27.3
expect "nothing before 2.13" 3 'one()["nccl"] == "before 2.13" and "no table" in one()["attempts"][-1]["why_not"]' \
  "$ours" NCCL_NET_PLUGIN=slime -- --loading --nccl 2.12.12
expect "a newer release counts as the newest known" 0 'one()["newest_table"] == 12' \
  "$ours" NCCL_NET_PLUGIN=slime -- --loading --nccl 2.99.1
expect "unset: the default name only" 3 'opened() == ["libnccl-net.so"] and l["NCCL_NET_PLUGIN"] is None' \
  "$ours" -- --loading --nccl 2.28.9
expect "unset and empty differ from 2.27 on" 3 'one()["attempts"] == [] and "empty value" in problems()' \
  "$ours" NCCL_NET_PLUGIN= -- --loading --nccl 2.28.9
expect "empty is unset before" 3 'opened() == ["libnccl-net.so"]' \
  "$ours" NCCL_NET_PLUGIN= -- --loading --nccl 2.26.5
expect "none" 3 'one()["attempts"] == [] and "means no plugin" in problems()' \
  "$ours" NCCL_NET_PLUGIN=None -- --loading --nccl 2.30.7
expect "a list goes on to the next name" 0 \
  'verdicts() == ["not_found", "not_found", "not_found", "used", "not_reached"]' \
  "$ours" NCCL_NET_PLUGIN=nope,,slime,other -- --loading --nccl 2.27.7
expect "before 2.27 a list is one name" 3 \
  'opened() == ["nope,slime", "libnccl-net-nope,slime.so"] and "no list" in problems()' \
  "$ours" NCCL_NET_PLUGIN=nope,slime -- --loading --nccl 2.26.2
expect "14 names of a list count" 3 'len(one()["attempts"]) == 28 and "14 names" in hints() + problems()' \
  "$ours" "NCCL_NET_PLUGIN=a1,a2,a3,a4,a5,a6,a7,a8,a9,b1,b2,b3,b4,b5,slime" -- --loading --nccl 2.28.9
expect "a prefix of STATIC_PLUGIN is the program" 3 'opened() == [None] and "STATIC_PLUGIN" in problems()' \
  "$ours" NCCL_NET_PLUGIN=Stat -- --loading --nccl 2.24.3
expect "but not before 2.22" 3 'opened() == ["Stat", "libnccl-net-Stat.so"]' \
  "$ours" NCCL_NET_PLUGIN=Stat -- --loading --nccl 2.21.5
expect "a name too long is cut" 3 'len(opened()[0]) == 127' \
  "NCCL_NET_PLUGIN=$(printf 'x%.0s' {1..200})" -- --loading --nccl 2.18.5

# NCCL_NET and the count of references.
expect "NCCL_NET in any case" 0 'one()["outcome"] == "slime"' \
  "$ours" NCCL_NET=slime NCCL_NET_PLUGIN=slime -- --loading --nccl 2.28.9
expect "another NCCL_NET makes NCCL fail" 3 \
  'one()["outcome"] == "failure" and l["commands"] == ["export NCCL_NET=SLIME"]' \
  "$ours" NCCL_NET=AWS NCCL_NET_PLUGIN=slime -- --loading --nccl 2.28.9
expect "Socket is NCCL's own" 3 'one()["outcome"] == "internal"' \
  "$ours" NCCL_NET=Socket NCCL_NET_PLUGIN=slime -- --loading --nccl 2.28.9
expect "an empty NCCL_NET matches nothing" 3 'one()["outcome"] == "failure" and "unset NCCL_NET" in problems()' \
  "$ours" NCCL_NET= NCCL_NET_PLUGIN=slime -- --loading --nccl 2.22.3
expect "2.29 forgets the name" 0 '"NCCL_NET_PLUGIN_REF_COUNT=1" in hints()' \
  "$ours" NCCL_NET_PLUGIN=slime -- --loading --nccl 2.29.7
expect "unless told to keep it" 0 '"REF_COUNT" not in hints()' \
  "$ours" NCCL_NET_PLUGIN=slime NCCL_NET_PLUGIN_REF_COUNT=1 -- --loading --nccl 2.29.7
expect "2.27 keeps it" 0 '"REF_COUNT" not in hints()' \
  "$ours" NCCL_NET_PLUGIN=slime -- --loading --nccl 2.27.7

# Files that are missing, of another make, or broken. What it says to type must then work.
mkdir "$root/bare lib" && ln -s "$lib/libnet-slime.so" "$root/bare lib/libnet-slime.so"
output=$(env LD_LIBRARY_PATH="$root/bare lib" "${launcher[@]}" "$build/bin/slime-info" --loading \
  --nccl 2.19.4)
commands=$(sed -n '/^To use/,$s/^  //p' <<<"$output")
if (
  export LD_LIBRARY_PATH="$root/bare lib"
  eval "$commands"
  [ -L "$root/bare lib/libnccl-net-slime.so" ] &&
    "${launcher[@]}" "$build/bin/slime-info" --loading --nccl 2.19.4 >/dev/null
); then ok "missing link: the commands it prints put it right"; else
  not_ok "missing link: the commands it prints do not help" "$commands"
fi
commands=$("${launcher[@]}" "$build/bin/slime-info" --loading --nccl 2.28.9 | sed -n '/^To use/,$s/^  //p')
follow() { (eval "$commands" && "${launcher[@]}" "$build/bin/slime-info" --loading --nccl 2.28.9 >/dev/null); }
check "no path: the commands it prints put it right" "$commands" follow

cat >"$root/fake.cc" <<'EOF'
#include <unistd.h>
#include "plugin/abi/net_tables.h"
using namespace slime::nccl;
extern "C" void needed();
namespace {
ResultCode init(Logger) {
#ifdef CRASH
  __builtin_trap();
#endif
#ifdef SILENT
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  for (;;) pause();
#endif
#ifdef NEEDS
  needed();
#endif
  return kSuccess;
}
ResultCode devices(int* count) { return *count = 1, kSuccess; }
char name[] = "\xff" "nic";
ResultCode properties(int, PropertiesV8* p) {
  *p = {};
  p->name = name;
  p->guid = 7;
  p->speed_mbps = 100;
  return kSuccess;
}
}  // namespace
extern "C" __attribute__((visibility("default"))) const NetV8 TABLE = {
    "Other", init, devices, properties, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
EOF
fake() { # FILE DEFINITION...
  local file=$1
  shift
  ${CXX:-g++} -std=c++20 -shared -fPIC -Iinclude -I. "$@" -o "$root/$file" "$root/fake.cc"
}
echo 'extern "C" void needed() {}' >"$root/needed.cc"
fakes() {
  ${CXX:-g++} -shared -fPIC -o "$root/libneeded.so" "$root/needed.cc" &&
    fake libnccl-net-other.so -DTABLE=ncclNetPlugin_v8 &&
    fake libnccl-net-old.so -DTABLE=ncclNetPlugin_v4 &&
    fake libnccl-net-crash.so -DTABLE=ncclNetPlugin_v8 -DCRASH &&
    fake libnccl-net-silent.so -DTABLE=ncclNetPlugin_v8 -DSILENT &&
    fake libnccl-net-needs.so -DTABLE=ncclNetPlugin_v8 -DNEEDS -Wl,--no-as-needed -L"$root" -lneeded
}
check "the fake plugins compile" "" fakes
rm "$root/libneeded.so"
echo "no library at all, but a text that is long enough to be read as one" >"$root/libnccl-net-text.so"
fakes=LD_LIBRARY_PATH=$root:$lib
expect "another plugin, and its devices" 3 \
  'one()["outcome"] == "other_plugin" and d["would_load"] and d["called"] == "Other" and
   d["devices"][0]["speed_mbps"] == 100 and d["devices"][0]["guid"].endswith("07")' \
  "$fakes" NCCL_NET_PLUGIN=other -- --nccl 2.28.9
expect "too old a plugin" 3 '"only v4" in one()["attempts"][-1]["why_not"]' \
  "$fakes" NCCL_NET_PLUGIN=old -- --loading --nccl 2.28.9
expect "a plugin that crashes is passed over in a list" 0 \
  'verdicts() == ["not_found", "no_devices", "not_found", "used"] and
   "signal" in one()["attempts"][1]["why_not"]' \
  "$fakes" NCCL_NET_PLUGIN=crash,slime -- --loading --nccl 2.28.9
expect "a plugin that closes the pipe and hangs is passed over in a list" 0 \
  'verdicts() == ["not_found", "no_devices", "not_found", "used"] and
   "gave no answer" in one()["attempts"][1]["why_not"]' \
  "$fakes" NCCL_NET_PLUGIN=silent,slime -- --loading --nccl 2.28.9
expect "a plugin without what it needs" 3 '"needs is missing" in problems() and "libneeded.so" in problems()' \
  "$fakes" NCCL_NET_PLUGIN=needs -- --loading --nccl 2.28.9
expect "a text is no plugin" 3 '"it is no shared library" in problems()' \
  "$fakes" NCCL_NET_PLUGIN=text -- --loading --nccl 2.28.9

# Devices, rails, settings.
expect "devices with rails" 0 \
  'd["called"] == "SLIME" and d["would_load"] and d["table"] == 12 and len(d["devices"]) == 1 and
   len(d["devices"][0]["rails"]) == 3 and d["devices"][0]["maxRecvs"] == 8 and
   d["devices"][0]["ptrSupport"] == ["host"] and d["devices"][0]["regIsGlobal"] and
   d["devices"][0]["rails"][0]["address"].startswith("127.") and
   d["devices"][0]["rails"][0]["reason"] == "NCCL_SLIME_RAILS_PER_IF" and
   d["environment_set_by_init"].get("NCCL_PROTO") == "^LL128"' \
  "$ours" NCCL_NET_PLUGIN=slime NCCL_SLIME_RAILS_PER_IF=3 -- --devices --nccl 2.30
expect "the fields of an old table" 0 \
  'd["table"] == 6 and "regIsGlobal" not in d["devices"][0] and "vProps" not in d["devices"][0]' \
  "$ours" NCCL_NET_PLUGIN=slime -- --devices --nccl 2.18.3
expect "devices also where NCCL would not load it" 0 \
  'not d["would_load"] and d["plugin"].endswith("lib/libnet-slime.so") and len(d["devices"]) == 1' \
  -- --devices --nccl 2.28.9
expect "no interface: why" 3 'd["devices"] == [] and 
  "lo does not match NCCL_SOCKET_IFNAME=\"foo\"" in d["skipped"]' \
  "$ours" NCCL_NET_PLUGIN=slime NCCL_SLIME_IFNAME= NCCL_SOCKET_IFNAME=foo -- --devices
expect "switched off" 3 'verdicts()[-1] == "no_devices" and "DISABLE" in problems()' \
  "$ours" NCCL_NET_PLUGIN=slime NCCL_SLIME_DISABLE=1 -- --loading --nccl 2.28.9
expect "settings with their sources" 0 \
  'setting("NCCL_SLIME_MIN_STRIPE", "value") == "128K" and
   setting("NCCL_SLIME_MIN_STRIPE", "source") == "NCCL_SLIME_MIN_STRIPE" and
   all(x["help"] and x["range"] for x in s["rows"]) and "NCCL_SLIME_WATERMARK" in s["warnings"][0]' \
  NCCL_SLIME_MIN_STRIPE=128K NCCL_SLIME_WATERMAKR=2 -- --settings
expect "what this host cannot use is shown" 0 \
  '"SWITCH_KEY_FILE=\"/nonexistent\"" in s["warnings"][0] and
   "TCP_CONGESTION=\"nosuch\"" in s["warnings"][1] and "this host has: " in s["warnings"][1]' \
  NCCL_SLIME_SWITCH_KEY_FILE=/nonexistent NCCL_SLIME_TCP_CONGESTION=nosuch -- --settings
expect "addresses and modes are judged" 3 \
  '[e.split("=")[0] for e in s["errors"]] == ["NCCL_SLIME_DEBUG_MODE", "NCCL_SLIME_SWITCH"] and
   all("expected " in e for e in s["errors"]) and "ports from 1 to 65535" in s["errors"][1]' \
  NCCL_SLIME_SWITCH=1.2.3.4:99999 NCCL_SLIME_DEBUG_MODE=fast -- --settings
expect "every refused setting is shown" 3 'len(s["errors"]) == 2 and "EAGER_MAX" in s["errors"][0]' \
  NCCL_SLIME_EAGER_MAX=lots NCCL_SLIME_WATERMARK=0 -- --settings

# The topology. The loopback interface is virtual, so it is listed apart.
expect "the topology alone" 0 \
  'set(r) == {"tool", "version", "commit", "usable", "topology"} and t["error"] == "" and
   [(x["name"], x["pci"], x["sockets"]) for x in t["rails"]] == [("lo", None, 3)] and
   len(t["numa_nodes"]) > 0 and t["source"].startswith("/sys") and
   [len(x) for x in t["distances"]] == [1] * len(t["gpus"]) and
   set(t["groups"]) == {"switch", "root_complex", "numa_node", "socket"}' \
  NCCL_SLIME_RAILS_PER_IF=3 -- --topology
expect "the topology is not part of the rest" 0 '"topology" not in r' \
  "$ours" NCCL_NET_PLUGIN=slime -- --nccl 2.28.9
expect "no rail: why" 3 't["rails"] == [] and any("lo does not match" in x for x in t["skipped"])' \
  NCCL_SLIME_IFNAME=foo -- --topology
expect "a setting that cannot be used: which" 3 '"EAGER_MAX" in t["error"]' \
  NCCL_SLIME_EAGER_MAX=lots -- --topology
expect "transports, and what they find" 0 \
  'set(r) == {"tool", "version", "commit", "usable", "transports"} and
   [(x["name"], x["wanted"]) for x in r["transports"]] == [("verbs", False), ("libfabric", False), ("tcp", True)] and
   r["transports"][2]["rails"] == ["lo"]' \
  NCCL_SLIME_TRANSPORTS=tcp -- --transports
expect "a transport that does not exist" 3 \
  'r["transports"][-1]["name"] == "pigeon" and not r["transports"][-1]["exists"]' \
  NCCL_SLIME_TRANSPORTS=tcp,pigeon -- --transports
"${launcher[@]}" "$build/bin/slime-info" --topology >"$root/out" 2>&1
check "the topology as text" "$(cat "$root/out")" \
  grep -qE '^    NUMA node [0-9]+, CPUs [0-9]' "$root/out"
check "virtual rails apart" "$(cat "$root/out")" \
  grep -qE '^    rail lo  tcp, ' "$root/out"

printf '# mine\nNCCL_SLIME_MAX_BATCH=32\r\nnonsense\nNCCL_NET_PLUGIN=slime\nNCCL_SLIME_IFNAME=never\n' >"$root/.nccl.conf"
expect "nccl.conf counts, the environment more" 0 \
  'l["NCCL_NET_PLUGIN_source"].endswith("/.nccl.conf") and
   setting("NCCL_SLIME_MAX_BATCH", "source").endswith("/.nccl.conf") and
   setting("NCCL_SLIME_IFNAME", "value") == "lo"' \
  "$ours" -- --nccl 2.28.9
"${launcher[@]}" "$build/bin/slime-info" >/dev/full 2>/dev/null
check "output to a full disk is an error" "" [ $? -eq 2 ]
"${launcher[@]}" "$build/bin/slime-info" --help >/dev/full 2>/dev/null
check "so is the help" "" [ $? -eq 2 ]

# In the conditions r is the whole, l loading, d devices, s settings, t topology, one() the single
# release.
python3 - "$root/cases" <<'EOF' || wrong=1
import json, pathlib, sys

def holds(condition, r):
    l, d, s, t = (r.get(part) for part in ("loading", "devices", "settings", "topology"))
    def one():
        assert len(l["releases"]) == 1
        return l["releases"][0]
    names = {
        "r": r, "l": l, "d": d, "s": s, "t": t, "one": one,
        "outcomes": lambda: {x["nccl"]: x["outcome"] for x in l["releases"]},
        "opened": lambda: [a["dlopen"] for a in one()["attempts"]],
        "verdicts": lambda: [a["verdict"] for a in one()["attempts"]],
        "problems": lambda: " / ".join(p["text"] for p in l["problems"]),
        "hints": lambda: " / ".join(h["text"] for h in l["hints"]),
        "setting": lambda name, key: next(x[key] for x in s["rows"] if x["name"] == name),
    }
    return eval("(" + condition + ")", names)

wrong = False
for case in sorted(pathlib.Path(sys.argv[1]).glob("*.what")):
    what, condition = case.read_text(), case.with_suffix(".condition").read_text()
    text = case.with_suffix(".json").read_text()
    try:
        if holds(condition, json.loads(text)):
            print("ok:", what)
            continue
        reason = "not so"
    except Exception as error:
        reason = repr(error)
    wrong = True
    print("not ok: %s: %s: %s\n%s" % (what, reason, condition, text[:6000]))
sys.exit(wrong)
EOF
exit $wrong
