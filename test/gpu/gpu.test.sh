#!/bin/bash
# What of test/gpu/run.sh can be tried without a GPU: how it skips, that its Python compiles, and
# what the driver makes of ranks that pass, fail, die, and survive the death of the other.
set -u
cd "$(dirname "$0")" || exit 1
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
export PYTHONDONTWRITEBYTECODE=1
wrong=0
command -v python3 >/dev/null || { echo "no python3"; exit 77; }

# run WHAT EXIT PATTERN LAST_LINE COMMAND...
run() {
  local what=$1 want=$2 pattern=$3 last=$4 output code
  shift 4
  output=$("$@" 2>&1)
  code=$?
  if [ $code -eq "$want" ] && [[ $output =~ $pattern ]] &&
    { [ -z "$last" ] || [ "$last" = "$(tail -n 1 <<<"$output")" ]; }; then
    echo "ok: $what"
  else
    printf 'not ok: %s: exit status %s, not %s, or without "%s" or "%s":\n%s\n' \
      "$what" $code "$want" "$pattern" "$last" "$output"
    wrong=1
  fi
}

compiles='import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")'
for file in *.py; do
  run "$file compiles" 0 '' '' python3 -c "$compiles" "$file"
done
run "help" 0 'usage' '' ./run.sh --help
run "an unknown option" 2 'usage' '' ./run.sh --nosuch
run "an option without its value" 2 'usage' '' ./run.sh --plugin
nothing='0 passed, 0 failed, 1 skipped'
run "no Python" 77 'SKIPPED: /bin/false does not run' "$nothing" env PYTHON=/bin/false ./run.sh
# A directory without PyTorch in it hides none that is installed: -S and -I leave it out.
printf '#!/bin/sh\nexec python3 -I -S "$@"\n' >"$root/python" && chmod +x "$root/python"
run "no PyTorch" 77 'SKIPPED: no PyTorch in' "$nothing" env PYTHON="$root/python" ./run.sh
printf '#!/bin/sh\necho 2.28.9\n' >"$root/python"
run "a plugin that is not there" 2 'cannot be read' '' env PYTHON="$root/python" ./run.sh --plugin /nonexistent

# The driver with ranks that only say what real ones would.
cp driver.py "$root"
cat >"$root/rank.py" <<'EOF'
import json, os, sys, time
rank, part = sys.argv[sys.argv.index("--rank") + 1], sys.argv[sys.argv.index("--part") + 1]
def say(test, result):
    print(json.dumps({"test": test, "result": result, "why": "because"}), flush=True)
path = os.environ.get("NCCL_DEBUG_FILE")
if path:
    open(path, "w").write("vm:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via %s/0\n" %
                          os.environ["VIA"])
if part == "kill":
    say("ready", "passed")
    time.sleep(0.5 if rank == "0" else 60)
    sys.exit(int(os.environ["SURVIVOR"]))
print("chatter of a library")
say("a", "passed")
say("b", "skipped")
if os.environ["DIES"] == rank:
    sys.exit(3)
say("c", "failed" if os.environ["FAILS"] == rank else "passed")
EOF
driver() { # DIES FAILS SURVIVOR VIA
  # shellcheck disable=SC2317  # run calls it
  DIES=$1 FAILS=$2 SURVIVOR=$3 VIA=$4 python3 "$root/driver.py" --plugin /p/libnet-slime.so \
    --nccl-version 2.28.9
}
export -f driver
export root
run "all well" 0 'ok: kill: rank 0 ended after' '9 passed, 0 failed, 2 skipped' driver - - 9 NET/SLIME
run "a wrong result of one rank" 1 'not ok: one rail: c: rank 1: because' \
  '7 passed, 2 failed, 2 skipped' driver - 1 9 NET/SLIME
run "a rank that dies" 1 'c: rank 0: did not get there.*rank 0: ended with 3' \
  '7 passed, 4 failed, 2 skipped' driver 0 - 9 NET/SLIME
run "another transport" 1 'connections via NET/Socket' '5 passed, 4 failed, 2 skipped' \
  driver - - 9 NET/Socket
run "a survivor without an error" 1 'rank 0 ended without an error' \
  '8 passed, 1 failed, 2 skipped' driver - - 0 NET/SLIME
run "names for each NCCL" 0 '' '' env PYTHONPATH="$root" python3 -c '
import driver, pathlib, tempfile
with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    named = lambda *version: driver.plugin_variables("/p/libnet-slime.so", work, version)
    assert named(2, 28, 9) == {"NCCL_NET_PLUGIN": "/p/libnet-slime.so"}
    for old in ((2, 20, 5), (2, 27, 3)):
        assert named(*old)["NCCL_NET_PLUGIN"] == "slime"
        assert named(*old)["LD_LIBRARY_PATH"].split(":")[0] == folder
    assert (work / "libnccl-net-slime.so").is_symlink()'
exit $wrong
