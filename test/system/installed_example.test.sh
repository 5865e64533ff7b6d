#!/bin/bash
# The example as a user builds it: from an installed tree, with pkg-config and nothing of ours in
# reach; then run over slime-switchd, as threads, as processes, and in each debugging mode.
. "$(dirname "$0")/perf_support.sh"
switchd=$build/bin/slime-switchd
[ -x "$switchd" ] || { echo "skipped: $switchd is not built"; exit 77; }
command -v pkg-config >/dev/null || { echo "skipped: no pkg-config on this machine"; exit 77; }
unset NCCL_SLIME_SWITCH NCCL_SLIME_SWITCH_KEY_FILE NCCL_SLIME_DEBUG_MODE NCCL_SLIME_SWITCH_SLOTS
switch_pid=
stop_switch() {
  [ -z "$switch_pid" ] || { kill -KILL "$switch_pid" && wait "$switch_pid"; } 2>/dev/null
  switch_pid=
}
trap 'stop_switch; rm -rf "$work"' EXIT

# start_switch: on ports that nobody has; sets $switch and $port, the first of 20 that are free.
start_switch() {
  for _ in $(seq 10); do
    port=$(any_port)
    printf 'data:\n  listen: 127.0.0.1:%d\n  shards: 2\ncontrol:\n  listen: 127.0.0.1:%d\n' \
      "$port" $((port + 10)) >"$work/switch.yaml"
    "${launcher[@]}" "$switchd" --config "$work/switch.yaml" >"$work/ready" 2>"$work/switch.log" &
    switch_pid=$!
    switch=127.0.0.1:$((port + 10))
    for _ in $(seq 200); do
      grep -qs ready "$work/ready" && return
      kill -0 "$switch_pid" 2>/dev/null || break
      sleep 0.05
    done
    stop_switch
  done
  not_ok "slime-switchd does not start" "$work/switch.log"
  exit 1
}

# runs NAME EXIT TEXT ARGUMENT...: the example, and what it says; output in $work/NAME.err
runs() {
  local name=$1 want=$2 text=$3 code
  shift 3
  timeout -k 5 120 "${launcher[@]}" "$example" "$@" >"$work/$name.err" 2>&1 </dev/null
  code=$?
  if [ "$code" -eq "$want" ]; then ok "$name: exit status $want"; else
    not_ok "$name: exit status $code, not $want ($*)" "$work/$name.err"
  fi
  says "$name" "$text"
}

# A sanitizer's libraries are not what is installed, and linking with them proves nothing more.
if [ -z "${SLIME_SAN:-}" ]; then
  if env -u MAKEFLAGS -u MFLAGS make --no-print-directory install BUILD="$build" PREFIX=/usr DESTDIR="$work/root" \
    >"$work/install.out" 2>&1; then ok "make install"; else
    not_ok "make install" "$work/install.out"
    exit 1
  fi
  files=$(cd "$work/root/usr" && find include lib -name '*slime*' -o -path '*/slime/*' | sort | xargs)
  wanted='include/slime include/slime/aggregation.h include/slime/p2p.h include/slime/p2p_request.h include/slime/slime.h include/slime/types.h lib/libnccl-net-slime.so lib/libnet-slime.so lib/libslime.a lib/libslime.so lib/libslime.so.1 lib/pkgconfig/libslime.pc lib/pkgconfig/slime.pc lib/systemd/system/slime-switchd.service'
  if [ "$files" = "$wanted" ]; then ok "installs: $files"; else not_ok "installs: $files"; fi
  export PKG_CONFIG_LIBDIR=$work/root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root
  export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
  example=$work/all_reduce
  # shellcheck disable=SC2046  # flags
  if (cd "$work" && "${CXX:-g++}" -std=c++17 -Wall -Wextra -Werror -pedantic \
    "$work/root/usr/share/doc/libnet-slime/examples/all_reduce.cc" -o "$example" \
    $(pkg-config --cflags --libs slime)) >"$work/compile.out" 2>&1; then
    ok "compiles as C++17 with pkg-config alone"
  else
    not_ok "does not compile" "$work/compile.out"
    exit 1
  fi
  if readelf -d "$example" | grep NEEDED | grep -vE 'lib(c|m|stdc\+\+|gcc_s)\.so|ld-linux'; then
    not_ok "the program needs more than the basic libraries"
  else
    ok "the program needs only the basic libraries"
  fi
  if nm "$build/lib/libnet-slime.so" 2>/dev/null | grep -q aggregation; then
    not_ok "the plugin has the C++ interface in it"
  else
    ok "the plugin has nothing of the C++ interface"
  fi
  # builds FILE WHAT WORDS COMPILER...: a program of libslime, with pkg-config alone; it prints these words
  builds() {
    local file=$1 what=$2 words=$3
    shift 3
    # shellcheck disable=SC2046  # flags
    if (cd "$work" && "$@" -Wall -Wextra -Werror -pedantic "root/usr/share/doc/libnet-slime/examples/$file" \
      -o "$work/built" $(pkg-config --cflags --libs libslime)) >"$work/compile.out" 2>&1 &&
      LD_LIBRARY_PATH=$work/root/usr/lib timeout -k 5 120 "${launcher[@]}" "$work/built" >"$work/built.out" 2>&1 &&
      grep -q "^$words" "$work/built.out"; then
      ok "libslime: $what"
    else
      not_ok "libslime: $what" "$work/compile.out"
      cat "$work/built.out" 2>/dev/null
    fi
  }
  builds read.c "a C99 program compiles with pkg-config alone, and reads" \
    '1048576 of 1048576 bytes are right' "${CC:-gcc}" -std=c99
  builds coroutine.cc "a C++20 program compiles with pkg-config alone, and its coroutines move pages" \
    '64 pages, 64 were told of, 262144 bytes are right' "${CXX:-g++}" -std=c++20
else
  example=$build/bin/example-all-reduce
fi

start_switch
runs threads 0 'rank 0 of 4: .* algbw .* 0 wrong' --switch "$switch" --ranks 4 --count 100001 --json \
  --rendezvous 127.0.0.1:$((port + 15))
if grep '^{' "$work/threads.err" | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert len(rows) == 4 and all(row["operations"] == 11 for row in rows), rows
assert all(row["sent"] >= row["results"] > 0 for row in rows), rows' 2>"$work/json.err"; then
  ok "the statistics of four ranks are JSON and add up"
else
  not_ok "the statistics are wrong" "$work/json.err"
fi

pids=()
for rank in 0 1 2; do
  timeout -k 5 120 "${launcher[@]}" "$example" --switch "$switch" --ranks 3 --rank $rank \
    --rendezvous 127.0.0.1:$((port + 16)) --count 300000 >"$work/process$rank.err" 2>&1 &
  pids+=($!)
done
for rank in 0 1 2; do
  if wait "${pids[rank]}"; then ok "process $rank"; else
    not_ok "process $rank failed" "$work/process$rank.err"
  fi
  says process$rank "rank $rank of 3: 1200000 bytes, .* 0 wrong"
done

runs alone 0 'rank 0 of 1: .* 0 wrong' --switch "$switch" --ranks 1 --count 0
runs dummy 0 'rank 0 of 8: .* 0 wrong' --mode dummy --ranks 8 --rank 0 --count 50000
says dummy 'debugging mode dummy'
runs bypass 0 'not checked' --switch "$switch" --ranks 2 --mode bypass --count 50000 \
  --rendezvous 127.0.0.1:$((port + 17))
runs instant 0 'not checked' --mode instant --ranks 8 --rank 3 --iterations 1000
runs usage 2 'usage:' --ranks 33
runs no_switch 1 'rank 0: .*NCCL_SLIME_SWITCH' --ranks 1
stop_switch
runs dead_switch 1 "rank 1: .*$switch" --switch "$switch" --ranks 2 \
  --rendezvous 127.0.0.1:$((port + 18))
exit $wrong
