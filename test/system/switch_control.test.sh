#!/bin/bash
# slime-switchd and slime-switchctl as processes, and a worker written in Python from the
# description in switch/protocol/control.h, so that the wire format is read by somebody else too.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$PWD/${SLIME_BUILD_DIR:-build}
work=$(mktemp -d) || exit 1
umask 077 # key files
daemon=
trap '[ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null; rm -rf "$work"' EXIT
wrong=0
launcher=()
# GCC 12's ThreadSanitizer needs a layout without randomisation (see test/run.sh).
[ "${SLIME_SAN:-}" = tsan ] && launcher=(setarch "$(uname -m)" -R)
unset "${!NCCL_@}"

command -v python3 >/dev/null || { echo "python3 is missing: the worker is written in it"; exit 77; }
PATH=$PATH:/usr/sbin:/sbin ldconfig -p | grep -qF 'libcrypto.so.3 ' ||
  { echo "libcrypto.so.3 is missing: keys need it (Debian: libssl3)"; exit 77; }

ok() { echo "ok: $1"; }
not_ok() {
  printf 'not ok: %s\n' "$1"
  [ $# -lt 2 ] || tail -n 20 "$2" | sed 's/^/  | /'
  wrong=1
}
switchd() { timeout -k 5 60 "${launcher[@]}" "$build/bin/slime-switchd" "$@"; }

# expect WHAT EXIT TEXT COMMAND...: exit status, and an extended regular expression in its output
expect() {
  local what=$1 want=$2 text=$3 code
  shift 3
  "$@" >"$work/output" 2>&1 </dev/null
  code=$?
  if [ $code -ne "$want" ]; then
    not_ok "$what: exit status $code, not $want" "$work/output"
  elif ! grep -qE -- "$text" "$work/output"; then
    not_ok "$what: does not say: $text" "$work/output"
  else
    ok "$what"
  fi
}

to_full() { "$@" >/dev/full; }

# check WHAT EVIDENCE COMMAND...: the command succeeds
check() {
  local what=$1 evidence=$2
  shift 2
  if "$@"; then ok "$what"; else not_ok "not $what" "$evidence"; fi
}

# config TEXT: a configuration file of this content
config() {
  printf '%b' "$1" >"$work/config.yaml"
  echo "$work/config.yaml"
}

# --- configuration -------------------------------------------------------------------------------

expect "help" 0 'Exit code' switchd --help
expect "version" 0 '^slime-switchd [0-9]' switchd --version
expect "unknown option" 2 'colour' switchd --colour
expect "the example is right" 0 fine switchd --config switch/switch.example.yaml --check-config
switchd --print-config >"$work/defaults.yaml"
expect "what --print-config prints is right" 0 fine \
  switchd --config "$work/defaults.yaml" --check-config
switchd --config "$work/defaults.yaml" --print-config >"$work/again.yaml"
check "and printed the same again" "$work/again.yaml" cmp -s "$work/defaults.yaml" "$work/again.yaml"
expect "no such file" 2 'nothere' switchd --config "$work/nothere"
expect "unknown key" 2 'config.yaml:2: data.shard is no key; the nearest is data.shards' \
  switchd --config "$(config 'data:\n  shard: 2\n')"
expect "unknown section" 2 'dta is no key; the nearest is data' \
  switchd --config "$(config 'dta:\n  shards: 2\n')"
expect "unknown key of a tenant" 2 'nearest is tenants.a.slot_memory' \
  switchd --config "$(config 'tenants: {a: {slots_memory: 1M}}')"
expect "value out of range" 2 'config.yaml:2: data.shards: "17" is not a number from 1 to 16' \
  switchd --config "$(config 'data:\n  shards: 17\n')"
expect "formats of another kind" 2 'config.yaml:1: data.formats: "i32" is not all or words' \
  switchd --config "$(config 'data: {formats: i32}')" --check-config
expect "a key twice" 2 'jobs.max is there twice, first in line 1' \
  switchd --config "$(config 'jobs: {max: 2,\n max: 3}')"
expect "a section with a value" 2 'config.yaml:1: data is a section: its keys go below it' \
  switchd --config "$(config 'data: 5\n')"
expect "a brace that is open" 2 'config.yaml:2: the \{ in this line is not closed by a \}' \
  switchd --config "$(config 'jobs: {max: 3} # {\ndata: {shards: 2\n\ncontrol:\n  max_connections: 9\n')"
expect "a directory" 2 'configuration file /etc is a directory' switchd --config /etc
expect "no YAML" 2 'config.yaml:[0-9]+: ' switchd --config "$(config 'data: [1')"
expect "no address that workers could be told" 2 'workers are told' \
  switchd --config "$(config 'data: {listen: 0.0.0.0:0}')" --check-config
expect "nor with a section for it" 2 'config.yaml:2: data.listen: a switch in P4 has an address' \
  switchd --config "$(config 'device: {driver: bmv2}\ndata: {shards: 1}')" --check-config
expect "no map of sections" 2 'config.yaml:2: not a map of sections' \
  switchd --config "$(config '# none\nshards')" --check-config
expect "data follows control's address" 0 'fine: data 10.77.0.1:28880-28883, control 10.77.0.1:28900$' \
  switchd --config "$(config 'control: {listen: "10.77.0.1:28900", allow_unauthenticated: true}')" \
  --check-config
expect "but not every address" 2 'control.listen: "0.0.0.0:1" is every address .* add data.listen' \
  switchd --config "$(config 'control: {listen: "0.0.0.0:1"}')" --check-config
expect "data on loopback, control not" 2 \
  'config.yaml:2: data.listen: "127.0.0.1:1" is reached from this host only, .* 10.77.0.1:28900' \
  switchd --config "$(config 'control: {listen: "10.77.0.1:28900"}\ndata: {listen: "127.0.0.1:1"}')" \
  --check-config
expect "default ports outside of Linux's ephemeral range" 0 \
  'fine: data 127.0.0.1:28880-28883, control 127.0.0.1:28900$' switchd --check-config
# bmv2_config HOSTS [SED]: of a switch in P4
bmv2_config() {
  local text='device: {driver: bmv2}\ndata: {listen: "10.0.0.254:28880"}\ncontrol: {listen: "10.0.0.9:28900"}\n'
  config "$(sed "${2:-}" <<<"${text}hosts: {$1}\\n")"
}
host='10.0.0.1: {mac: "02:00:00:00:00:0a", port: 3}'
expect "a switch in P4" 0 'fine: data 10.0.0.254:28880-28883' \
  switchd --config "$(bmv2_config "$host")" --check-config
switchd --config "$(bmv2_config "$host")" --print-config >"$work/hosts.yaml"
expect "and its hosts are printed" 0 '^    port: 3$' cat "$work/hosts.yaml"
expect "so that they can be read" 0 fine switchd --config "$work/hosts.yaml" --check-config
for mac in 02:00:00:00:00 01:00:00:00:00:0a 00:00:00:00:00:00 02:-2:00:00:00:0a 02:00:00:00:00:0g; do
  expect "the MAC $mac" 2 "hosts.10.0.0.1.mac: \"$mac\" is not the MAC of one host" \
    switchd --config "$(bmv2_config "${host/02:00:00:00:00:0a/$mac}")" --check-config
done
expect "a port beyond bmv2's" 2 'hosts.10.0.0.1.port: "511" is not a number from 0 to 510' \
  switchd --config "$(bmv2_config "${host/3/511}")" --check-config
expect "Tofino has one more" 0 fine \
  switchd --config "$(bmv2_config "${host/3/511}" 's/bmv2/tofino/')" --check-config
expect "a port beyond Tofino's" 2 'hosts.10.0.0.1.port: "512" is not a number from 0 to 511' \
  switchd --config "$(bmv2_config "${host/3/512}" 's/bmv2/tofino/')" --check-config
expect "a host without a port" 2 'config.yaml:4: hosts.10.0.0.1: mac and port are both needed' \
  switchd --config "$(bmv2_config "${host/, port: 3/}")" --check-config
expect "a host by name" 2 'hosts.gpu1 is no key' \
  switchd --config "$(bmv2_config "${host/10.0.0.1/gpu1}")" --check-config
expect "no hosts" 2 'config.yaml:4: hosts: there are none' \
  switchd --config "$(bmv2_config '')" --check-config
expect "a switch in P4 without an address" 2 \
  'config.yaml: data.listen: a switch in P4 has an address of its own' \
  switchd --config "$(bmv2_config "$host" 's/data: {[^}]*}//')" --check-config
expect "another driver" 2 'device.driver: "tofino5" is not software, bmv2 or tofino' \
  switchd --config "$(bmv2_config "$host" 's/bmv2/tofino5/')" --check-config
expect "a Tofino" 0 'fine: data 10.0.0.254:28880-28883' \
  switchd --config "$(bmv2_config "$host" 's/bmv2/tofino, program: slime_tna, id: 7/')" --check-config
switchd --config "$(bmv2_config "$host" 's/bmv2/tofino, program: slime_tna/')" --print-config \
  >"$work/tofino.yaml"
expect "and its program is printed" 0 '^  program: slime_tna$' cat "$work/tofino.yaml"
expect "so that it can be read" 0 fine switchd --config "$work/tofino.yaml" --check-config
expect "a chip beyond BFRuntime's" 2 'device.id: "8" is not a number from 0 to 7' \
  switchd --config "$(bmv2_config "$host" 's/bmv2/tofino, id: 8/')" --check-config
expect "no program" 2 'device.program: "" is not the name of a program' \
  switchd --config "$(bmv2_config "$host" 's/bmv2/tofino, program: ""/')" --check-config
expect "a runtime interface without a port" 2 'device.runtime: "10.0.0.1" is not one address' \
  switchd --config "$(bmv2_config "$host" 's/bmv2/tofino, runtime: 10.0.0.1/')" --check-config
expect "a parent without a port" 2 'parent.control: "10.0.0.1" is not one address with a port' \
  switchd --config "$(config 'parent: {control: 10.0.0.1}')" --check-config
expect "a parent that is no address" 2 'parent.control: "root" is not a numeric address' \
  switchd --config "$(config 'parent: {control: root}')" --check-config
expect "its own parent" 2 'parent.control: "127.0.0.1:28900" is not another switch' \
  switchd --config "$(config 'parent: {control: "127.0.0.1:28900"}')" --check-config
expect "a parent's key without a parent" 2 'parent.key_file: .* without parent.control' \
  switchd --config "$(config 'parent: {key_file: /tmp/x}')" --check-config
expect "no key file of the parent" 2 'parent.key_file: open key file' \
  switchd --config "$(config 'parent: {control: "10.0.0.1:28900", key_file: /nonexistent}')" \
  --check-config
expect "no key file" 2 'control.key_file: open key file' \
  switchd --config "$(config 'control: {key_file: /nonexistent}')" --check-config
echo short >"$work/short"
expect "a key too short" 2 '16 to 256 bytes' \
  switchd --config "$(config "control: {key_file: $work/short}")" --check-config

deep=$(printf '[%.0s' {1..300000})
expect "a configuration of 300,000 brackets" 2 'config.yaml:1: ' switchd --config "$(config "data: $deep")" --check-config
for arguments in --help --print-config --check-config; do
  expect "$arguments to a full disk" 1 'standard output: (No space left|not all)' to_full switchd $arguments
done

echo "0123456789abcdef" >"$work/open" && chmod 644 "$work/open"
expect "a key that everybody may read" 2 "control.key_file: key file .*/open has mode 644, .*chmod 640 " \
  switchd --config "$(config "control: {key_file: $work/open}")" --check-config
expect "the same at an operator" 2 "key file .*/open has mode 644, .*chmod 640 " \
  "${launcher[@]}" "$build/bin/slime-switchctl" --key-file "$work/open" show
chmod 640 "$work/open"
expect "a key for a group" 0 fine \
  switchd --config "$(config "control: {key_file: $work/open}")" --check-config

mkdir "$work/keys" && cp "$work/open" "$work/keys/a b"
expect "a key of no tenant" 2 'control.tenant_keys: .*/a b is not named as a tenant' \
  switchd --config "$(config "control: {key_file: $work/open, tenant_keys: $work/keys}")" --check-config
mv "$work/keys/a b" "$work/keys/a"
expect "an operators' key for a tenant" 2 "control.tenant_keys: .*/a holds the operators' key" \
  switchd --config "$(config "control: {key_file: $work/open, tenant_keys: $work/keys}")" --check-config
chmod 777 "$work/keys"
expect "a directory of keys where others write" 2 'chmod 755 .*/keys' \
  switchd --config "$(config "control: {key_file: $work/open, tenant_keys: $work/keys}")" --check-config
expect "tenants' keys and no operators'" 2 'control.tenant_keys: .* without control.key_file' \
  switchd --config "$(config "control: {tenant_keys: $work/keys}")" --check-config
expect "default quotas leave room for others" 0 'tenant_max_jobs: 16' switchd --print-config

# --- a daemon, a worker, an operator -------------------------------------------------------------

key=$work/key
echo "0123456789abcdef0123456789abcdef" >"$key"
echo "another key, as long as the first" >"$work/other"
mkdir "$work/tenants"
echo "the key of physics, long enough" >"$work/tenants/physics"
config "data: {listen: '127.0.0.1:0', shards: 2, slot_memory: 1M, socket_buffer: 64K}
control: {listen: '127.0.0.1:0', key_file: $key, tenant_keys: $work/tenants}
jobs: {lease_s: 10, tenant_max_jobs: 0}
tenants: {physics: {max_jobs: 2}}
metrics: {listen: '127.0.0.1:0'}" >/dev/null
"${launcher[@]}" "$build/bin/slime-switchd" --config "$work/config.yaml" \
  >"$work/ready" 2>"$work/log" </dev/null &
daemon=$!
for _ in $(seq 300); do
  grep -q ready "$work/ready" && break
  kill -0 $daemon 2>/dev/null || break
  sleep 0.1
done
line='^slime-switchd: ready: data 127.0.0.1:[0-9]+-[0-9]+, control 127.0.0.1:[0-9]+, a key per tenant, metrics '
if grep -qE "$line" "$work/ready"; then ok "ready"; else
  not_ok "not ready" "$work/log"
  exit 1
fi
control=$(sed -n 's/.*control \([0-9.:]*\),.*/\1/p' "$work/ready")
metrics=$(sed -n 's/.*metrics \([0-9.:]*\).*/\1/p' "$work/ready")
# ctl_with KEY ARGUMENT...
ctl_with() {
  timeout -k 5 60 "${launcher[@]}" "$build/bin/slime-switchctl" --switch "$control" \
    --key-file "$1" --timeout 30 "${@:2}"
}
ctl() { ctl_with "$key" "$@"; }

# A scraper is served behind 1,500 connections that say nothing.
python3 - "$metrics" >"$work/scrape" 2>&1 <<'PYTHON'
import resource, socket, sys, time, urllib.request
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
if most != resource.RLIM_INFINITY and most < 2000:
    sys.exit(77)
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, most))
host, port = sys.argv[1].rsplit(":", 1)
idle = [socket.create_connection((host, int(port)), timeout=60) for _ in range(1500)]
end = time.monotonic() + 60
while True:
    try:
        answer = urllib.request.urlopen(f"http://{sys.argv[1]}/healthz", timeout=60).read()
        sys.exit(0 if answer.startswith(b"ok") else 1)
    except OSError as error:
        print(error)
        if time.monotonic() > end:
            sys.exit(1)
PYTHON
case $? in
0) ok "metrics: answered behind 1,500 idle connections" ;;
77) echo "metrics: 1,500 connections need a higher limit of descriptors: not tried" ;;
*) not_ok "metrics: no answer behind 1,500 idle connections" "$work/scrape" ;;
esac

cat >"$work/worker.py" <<'PYTHON'
import hashlib, hmac, os, socket, struct, sys
port, path = int(sys.argv[1].rsplit(":", 1)[1]), sys.argv[2]
key, tenant = open(path, "rb").read().strip(), os.path.basename(path).encode()
switch = socket.create_connection(("127.0.0.1", port), timeout=20)
mine, sequence = os.urandom(16), 0

def header(kind, payload):
    return b"SLMC" + struct.pack("<BBHII", 5, kind, 0, sequence, len(payload))

def exactly(size):
    data = b""
    while len(data) < size:
        part = switch.recv(size - len(data))
        assert part, "closed"
        data += part
    return data

def answer():
    head = exactly(16)
    payload = exactly(struct.unpack("<I", head[12:])[0])
    return head, payload, exactly(32)

def mac(direction, signed):
    return hmac.new(key, bytes([direction]) + mine + theirs + tenant.ljust(32, b"\0") + signed,
                    hashlib.sha256).digest()

switch.sendall(header(1, mine + bytes(32)) + mine + tenant.ljust(32, b"\0") + bytes(32))
theirs = answer()[1][:16]

def ask(kind, payload):
    global sequence
    sequence += 1
    signed = header(kind, payload) + payload
    switch.sendall(signed + mac(1, signed))
    head, payload, signature = answer()
    assert hmac.compare_digest(signature, mac(2, head + payload)), "answer is not signed"
    assert struct.unpack("<I", head[8:12])[0] == sequence
    return head[5], payload

def child(port):
    return struct.pack(">BBH4s", 4, 0, port, socket.inet_aton("127.0.0.1")) + bytes(20)

def create(tenant):
    return ask(3, tenant.ljust(32, b"\0") + struct.pack("<IIII", 64, 8, 256, 64) +
               struct.pack("<II", 0xdf, 3) +  # formats: all if they can be had, i32 and u32 at least
               struct.pack("<QII", 0x5e55, 2, 1) +  # the second of two shares of a session
               struct.pack("<I", 2) + child(9001) + child(9002))

kind, payload = create(b"nobody")
assert kind == 13 and b"asks for a job of tenant nobody" in payload, (kind, payload)
kind, payload = ask(8, b"\1")  # drain
assert kind == 13 and b"this is for operators" in payload, (kind, payload)
kind, payload = create(tenant)
assert kind == 9, (kind, payload)
identity, job, generation = struct.unpack("<16sHB", payload[:19])
shards, slots, lanes, formats, lease = struct.unpack("<IIIII", payload[51:71])
granted = (shards, slots, lanes, formats, lease)
assert granted == (2, 64, 256, 0xdf, 10000), granted
print(job, generation, flush=True)
for line in sys.stdin:  # "beat": what the switch says of the job
    kind, payload = ask(4, struct.pack("<16sHB", identity, job, generation))
    assert kind == 10
    print("alive gone fenced".split()[payload[0]], payload[1], flush=True)
PYTHON

coproc worker { python3 "$work/worker.py" "$control" "$work/tenants/physics" 2>"$work/worker.log"; }
read -r -t 30 job generation <&"${worker[0]}" ||
  not_ok "the worker in Python got no job" "$work/worker.log"
beat() {
  echo beat >&"${worker[1]}"
  read -r -t 30 state now <&"${worker[0]}"
}
state='' now=''
beat
check "alive after a heartbeat" "$work/worker.log" [ "$state" = alive ]
expect "show" 0 "^$job +$generation +physics +2 +1 +64 +256 .* 2 of 2 +0000000000005e55\$" ctl show
beat
expect "show --json" 0 '"tenant": "physics"' ctl show --json
data=$(sed -n 's/.*data 127.0.0.1:\([0-9]*\)-.*/\1/p' "$work/ready")
printf 'no packet of SAP' >"/dev/udp/127.0.0.1/$data"
# The shard's thread may not have seen it yet, or not have counted all of it.
counted() {
  ctl stats --json >"$work/stats.json"
  python3 -c "import json, sys
r = json.load(open(sys.argv[1]))
job = r['jobs'][0]
sys.exit(not (job['job'] == $job and job['counters']['rounds'] == 0 and job['slots'] == 64 and
              r['control']['forbidden'] == 2 and r['data']['malformed'] == 1 and
              r['data']['bytes_in'] == 16))" "$work/stats.json"
}
for _ in $(seq 100); do
  beat
  counted && break
  sleep 0.05
done
check "stats" "$work/stats.json" counted
beat
expect "counters of the data path, as text" 0 '^  malformed +1$' ctl stats
beat
sleep 0.6 # generations keep their distance, see switch/controller/job_numbers.h
expect "fence" 0 "job $job: now generation $(((generation + 1) % 256))" ctl fence "$job"
beat
check "told to the worker: $state $now" "$work/worker.log" \
  [ "$state $now" = "fenced $(((generation + 1) % 256))" ]
cat >"$work/get.py" <<'PYTHON'
import sys, urllib.error, urllib.request
try:
    with urllib.request.urlopen("http://" + sys.argv[1], timeout=20) as answer:
        print(answer.status, answer.headers["content-type"])
        print(answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
PYTHON
expect "metrics" 0 '^slime_job_rounds_total\{job="[0-9]+",tenant="physics"\} 0$' \
  python3 "$work/get.py" "$metrics/metrics"
expect "metrics of the control channel" 0 '^slime_control_fences_total 1$' \
  python3 "$work/get.py" "$metrics/metrics"
expect "metrics of the data path" 0 '^slime_data_malformed_total 1$' \
  python3 "$work/get.py" "$metrics/metrics"
expect "build and uptime" 0 '^slime_switch_build_info\{version="[0-9.]+",commit="[^"]+"\} 1$' \
  python3 "$work/get.py" "$metrics/metrics"
expect "uptime" 0 '^slime_switch_uptime_seconds [0-9]+$' python3 "$work/get.py" "$metrics/metrics"
expect "health" 0 '^ok$' python3 "$work/get.py" "$metrics/healthz"
expect "nothing else there" 0 '^404$' python3 "$work/get.py" "$metrics/"

expect "fence of no job" 1 'no_job' ctl fence 65000
expect "drain on" 0 'draining: yes' ctl drain on
expect "and shown" 0 'takes no new jobs' ctl show
expect "drain off, as JSON" 0 '"draining": false' ctl drain off --json
expect "another word for drain" 2 'on' ctl drain maybe
expect "another command" 2 'shwo is no command; the nearest is show' ctl shwo
expect "no command" 2 'required' ctl

expect "another key" 1 "not signed with this switch's key" ctl_with "$work/other" show
expect "a tenant's key for an operator" 1 "not signed with this switch's key" \
  ctl_with "$work/tenants/physics" drain on
expect "no key" 1 'wants a key .* NCCL_SLIME_SWITCH_KEY_FILE for ranks, --key-file for slime-switchctl' timeout 60 "${launcher[@]}" "$build/bin/slime-switchctl" \
  --switch "$control" show
for port in 94436 65536 0 ""; do
  expect "port \"$port\"" 2 '"127.0.0.1:'"$port"'" .*port from 1 to 65535' timeout 60 \
    "${launcher[@]}" "$build/bin/slime-switchctl" --switch "127.0.0.1:$port" show
done
# A switch that lies: reports that are too deep, and texts that are not for a terminal.
# of_liar REPORT ARGUMENT...: what slime-switchctl says of it
of_liar() {
  local pid code
  rm -f "$work/liar" # with the address of the last one
  python3 test/system/lying_switch.py "$1" >"$work/liar" &
  pid=$!
  for _ in $(seq 600); do
    [ -s "$work/liar" ] && break
    sleep 0.1
  done
  timeout -k 5 60 "${launcher[@]}" "$build/bin/slime-switchctl" --switch "$(cat "$work/liar")" \
    --timeout 30 "${@:2}"
  code=$?
  kill "$pid"
  wait "$pid" 2>/dev/null
  return $code
}
for command in show "show --json"; do
  # shellcheck disable=SC2086 # words
  expect "$command: a report of 300,000 brackets" 1 \
    '^slime-switchctl: the report of switch 127.0.0.1:[0-9]+: JSON with more than 64 brackets' \
    of_liar deep $command
done
expect "control characters of a switch" 0 '^switch a \[2Jb .*forgedx+\.\.\.: 1 shards' of_liar texts show
check "are not printed" "$work/output" \
  python3 -c 'import sys; t = open(sys.argv[1], "rb").read().replace(b"\n", b"");
sys.exit(any(c < 32 or c > 126 for c in t) or len(t) > 2000)' "$work/output"
for arguments in --help show "--version"; do
  # shellcheck disable=SC2086
  expect "$arguments to a full disk" 1 'standard output: (No space left|not all)' to_full ctl $arguments
done
expect "a key file that is none" 2 'open key file' ctl_with "$work/nothere" show

gone=
for _ in $(seq 600); do # the lease is ten seconds
  ctl show --json | grep -q '"jobs": \[\]' && gone=1 && break
  sleep 0.1
done
check "gone after its lease" "$work/log" [ -n "$gone" ]

# --- keys and quotas anew ------------------------------------------------------------------------

# hang_up TEXT: SIGHUP, until the log says so
hang_up() {
  local before
  before=$(wc -l <"$work/log")
  kill -HUP $daemon
  for _ in $(seq 300); do
    tail -n +$((before + 1)) "$work/log" | grep -qE "$1" && break
    sleep 0.1
  done
  check "SIGHUP: $1" "$work/log" grep -qE "$1" <(tail -n +$((before + 1)) "$work/log")
}
cp "$work/config.yaml" "$work/sound.yaml"
echo 'jobs: {lease_s: forever}' >"$work/config.yaml"
cp "$work/other" "$key"
hang_up 'SIGHUP: nothing is changed: .*config.yaml:1: jobs.lease_s: "forever"'
expect "the old key holds" 1 "not signed with this switch's key" ctl show
sed 's/physics/chemistry/' "$work/sound.yaml" >"$work/config.yaml"
echo "the key of chemistry, long enough" >"$work/tenants/chemistry"
hang_up 'SIGHUP: keys and quotas were read again'
expect "the new key holds" 0 'of 64 jobs' ctl show
check "another tenant has a quota now" "$work/worker.log" \
  [ "$(python3 "$work/worker.py" "$control" "$work/tenants/chemistry" 2>"$work/worker.log" \
    </dev/null | wc -l)" = 1 ]
check "lines of the log have a time" "$work/log" \
  [ "$(grep -cvE '^2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z slime-switchd: ' "$work/log")" = 0 ]

# --- the end -------------------------------------------------------------------------------------

kill -TERM $daemon
wait $daemon
code=$?
daemon=
check "ended cleanly by SIGTERM: exit status $code" "$work/log" [ $code -eq 0 ]
expect "nobody there" 1 "switch $control.*nobody listens" ctl show
expect "an address in use" 1 'no interface of this host|Cannot assign' \
  switchd --config "$(config 'data: {listen: "192.0.2.1:28880"}')"
exit $wrong
