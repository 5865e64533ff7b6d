#!/bin/bash
# The pauser itself: it stops threads, passes everything else through, and ends as its command does.
set -u
cd "$(dirname "$0")/../.." || exit 1
pause=${SLIME_BUILD_DIR:-build}/test/pause
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
wrong=0

# expect NAME EXIT TEXT ARGUMENT...: the pauser ends so, and says TEXT
expect() {
  local name=$1 want=$2 text=$3 code
  shift 3
  timeout -k 5 120 "$pause" --seed 7 "$@" >"$work/out" 2>"$work/err" </dev/null
  code=$?
  if [ "$code" -eq "$want" ] && grep -qE -- "$text" "$work/err" "$work/out"; then
    echo "ok: $name"
  else
    printf 'not ok: %s: exit status %s, wanted %s and "%s"\n' "$name" "$code" "$want" "$text"
    sed 's/^/  | /' "$work/err" "$work/out"
    wrong=1
  fi
}
# python NAME EXIT TEXT CODE: a Python program
python() {
  printf '%s\n' "$4" >"$work/program.py"
  expect "$1" "$2" "$3" --rate 50 --longest "${longest:-0.02}" -- python3 "$work/program.py"
}

"$pause" -- true 2>"$work/err"
if [ $? -eq 77 ]; then
  echo "skipped: $(tail -n 1 "$work/err")"
  exit 77
fi

longest=0.3 python "a thread stands still while another runs" 7 \
  '[1-9][0-9]* stops of [1-9][0-9]* threads of .* seed 7$' '
import os, threading, time
beat = time.monotonic()
def count():
    global beat
    while True:
        beat = time.monotonic()
        time.sleep(0.001)
threading.Thread(target=count, daemon=True).start()
lone = 0  # turns of this thread, one after the other, without one of the other thread
while lone < 20:
    began = time.monotonic()
    time.sleep(0.001)
    now = time.monotonic()
    lone = lone + 1 if now - began < 0.01 and now - beat > 0.02 else 0
os._exit(7)'

python "threads and processes without number" 0 'threads of [1-9][0-9]{3},' '
import os, threading
for i in range(60):
    threads = [threading.Thread(target=lambda: None) for _ in range(25)]
    for thread in threads: thread.start()
    pid = os.fork()
    if pid == 0: os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    for thread in threads: thread.join()'

python "a killed child is seen by its parent" 0 'seed 7' '
import signal, subprocess
child = subprocess.Popen(["sleep", "1000"])
child.send_signal(signal.SIGKILL)
assert child.wait() == -9'

python "stopped and continued by signals" 0 'seed 7' '
import os, signal, subprocess
child = subprocess.Popen(["sleep", "1000"])
for _ in range(10):
    os.kill(child.pid, signal.SIGSTOP)
    assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
    os.kill(child.pid, signal.SIGCONT)
    assert os.WIFCONTINUED(os.waitpid(child.pid, os.WCONTINUED)[1])
os.kill(child.pid, signal.SIGTERM)
assert os.waitpid(child.pid, 0)[1] == signal.SIGTERM'

python "handlers see every signal" 0 'seed 7' '
import os, signal
seen = 0
def handler(number, frame):
    global seen
    seen += 1
signal.signal(signal.SIGUSR1, handler)
for i in range(1, 201):
    os.kill(os.getpid(), signal.SIGUSR1)
    while seen < i: pass'

python "a thread becomes another program" 5 'seed 7' '
import os, threading, time
for _ in range(8): threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()
threading.Thread(target=lambda: os.execvp("sh", ["sh", "-c", "exit 5"])).start()
time.sleep(1000)'

python "SIGTERM to the pauser ends the command" 3 'asked to end' '
import os, signal, sys, threading
def end(number, frame):
    print("asked to end", flush=True)
    os._exit(3)
signal.signal(signal.SIGTERM, end)
os.kill(os.getppid(), signal.SIGTERM)
while True: signal.pause()'

expect "killed by a signal" 137 'seed 7' -- sh -c 'kill -KILL $$'
expect "what is left running is killed" 0 'seed 7' -- sh -c 'sleep 1000 & echo $! >'"$work/left"
if grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$(cat "$work/left")/status"; then
  echo "not ok: a process is left"
  wrong=1
fi
expect "no such command" 127 'cannot run ./no-such-command: No such file' -- ./no-such-command
expect "no program" 126 'cannot run /etc/passwd: Permission denied' -- /etc/passwd
expect "arguments are the command's" 0 '^--rate \[a,b\] --$' -- echo --rate '[a,b]' --
expect "no command" 2 'no command; write it behind --' --rate 3
expect "a rate of 0" 2 'rate' --rate 0 -- true
# Whoever is traced cannot trace.
expect "tracing is not permitted" 77 'cannot trace the command .*Operation not permitted' -- \
  "$pause" -- true

# `make pause`: a test that fails is named with what repeats it.
mkdir -p "$work/build/test"
ln -s "$(realpath "$pause")" "$work/build/test/pause"
printf '#!/bin/bash\nexit 3\n' >"$work/fails.test.sh"
printf '#!/bin/bash\necho "[ RUN      ] A.B"; echo "[       OK ] A.B (0 ms)"\n' >"$work/passes"
chmod +x "$work/fails.test.sh" "$work/passes"
SLIME_BUILD_DIR=$work/build PAUSE_SECONDS=1 PAUSE_SEED=40 PAUSE_RATE=3 PAUSE_LONGEST=0.1 \
  test/pause/run.sh "$work/passes" "$work/fails.test.sh" >"$work/out" 2>&1
code=$?
replay="^  make pause PAUSE_TESTS=$work/fails.test.sh PAUSE_SEED=40 PAUSE_RATE=3 PAUSE_LONGEST=0.1 "
if [ $code -eq 1 ] && grep -q "$replay" "$work/out" &&
  [[ $(tail -n 1 "$work/out") =~ ^[1-9][0-9]*\ passed,\ [1-9][0-9]*\ failed,\ 0\ skipped$ ]] &&
  grep -q '^pause: .* seed 40$' "$work"/build/pause/failed/fails-40.log; then
  echo "ok: a failure with what repeats it"
else
  printf 'not ok: a failure with what repeats it: exit status %s\n' $code
  sed 's/^/  | /' "$work/out"
  wrong=1
fi
exit $wrong
