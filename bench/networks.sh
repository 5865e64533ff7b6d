#!/bin/bash
# networks.sh [--rows NAME,NAME...] [--rounds N] [--size SIZE] [--mtu BYTES] [--congestion NAME]
# [--sockets N] [--nccl PATH] [--json FILE]: what the plugin makes of uneven, changing, capped and
# lossy networks, as ratios of figures that are taken by turns. Two workers in network namespaces,
# on links that tbf shapes; an allreduce of SIZE (16M) by slime-perf's ring, whose results are
# checked. A line per figure: the median of N rounds (3), the least and the most, the aim. Progress
# goes to stderr. The rows:
#   even      two links of 500 Mbit/s as one device, to one of them alone
#   uneven    500 and 250 Mbit/s, to the sum of what each gives alone
#   four      400, 200, 200 and 100 Mbit/s, to the same
#   slowed    two links of 500 Mbit/s; one falls to a tenth for 6 s in mid-run, N times: what both
#             carry from 1 s to 3 s after that, to what is left; seconds until each carries 0.9 of
#             what it did before, after its recovery
#   capped    a link of 1 Gbit/s that polices each TCP flow to 250 Mbit/s, to what the link can
#             give
#   lossy     two links of 500 Mbit/s, one loses 0.1 % of the packets, to the sum of what each
#             gives alone
#   small     64 KiB over one device of two links, to one link: time, by one protocol (Simple), and
#             by what NCCL chooses for the speed of each device
#   trips     half round trips of 8 B, 4 KiB and 64 KiB, and processor time per byte at 16 MiB,
#             over a link as fast as it is: the plugin, to the system calls of NCCL's own socket
#             transport
#   grouped   8 B to SIZE over 2 and 8 channels, on two links as fast as they are, and on 500 + 500,
#             500 + 250, and 400 + 200 + 200 + 100 Mbit/s: time with a device for each link, to the
#             time with one device of all, which is the default
# --sockets sets NCCL_SLIME_RAILS_PER_IF in the row capped (default: the plugin's choice).
# --nccl: NCCL's library, or its directory: NCCL over the plugin and over its own Socket transport,
# too, in the rows even, uneven and capped. Each rank needs a GPU, which may be the same.
# --congestion is the workers' TCP congestion control (default: the system's). With an MTU of 1500
# the links are too fast for two cores.
#   SLIME_BUILD_DIR   where the build is (default: build of this checkout)
set -u
. "$(dirname "$0")/begin.sh"
all_rows=even,uneven,four,slowed,capped,lossy,small,trips,grouped
rows=$all_rows rounds=3 size=16M mtu=9000 congestion='' sockets='' nccl='' json='' launcher=()
bench_options "rows rounds size mtu congestion sockets nccl json" "$@"
for row in ${rows//,/ }; do
  [[ ,$all_rows, == *,"$row",* ]] || {
    echo "bench/networks.sh: no row is called $row; there are $all_rows" >&2
    exit 2
  }
done
. "$(dirname "$0")/lab.sh"
bench_begin slime-perf bench-latency
export PYTHONDONTWRITEBYTECODE=1 NCCL_DEBUG=WARN
report=(python3 "$(dirname "$0")/networks_report.py" "$work")
rails=4 missed=''

# What a row that failed may have left
mend_links() {
  local table worker
  for table in police spoil; do in_switch nft delete table netdev $table 2>/dev/null; done
  for worker in 0 1; do ip -n w$worker link set eth1 gso_max_segs 65535; done
}

shape() { lab_shape_all "$@" || row_failed "cannot shape a link"; }

# measure NAME FIRST RAILS MBITS ARGUMENT...: an allreduce over so many links from that one on, as
# one device. Long enough for a second at MBITS, and one more that is not measured: the windows of
# TCP open, and the shares of the links are found.
measure() {
  local name=$1 first=$2 count=$3 mbits=$4 operations
  shift 4
  interfaces "$first" "$count"
  operations=$((mbits / 134 + 1)) # of 134 Mbit each
  say "$name: $lab_interfaces"
  lab_perf "$name" 2 all_reduce -b "$size" -e "$size" -n $operations -w "${warm_up:-$operations}" -c 1 --quiet "$@"
  lab_wait || row_failed "$name failed"
}
# interfaces FIRST RAILS: which ones are used, as one device
interfaces() {
  local rail
  lab_interfaces=''
  for ((rail = $1; rail < $1 + $2; ++rail)); do lab_interfaces+=${lab_interfaces:+,}eth$rail; done
  export NCCL_SLIME_RAILS_PER_DEVICE=$(($2 == 1 ? 0 : $2)) # 0: the NIC with all its sockets
}

# nccl NAME TRANSPORT RAILS MBITS: the same by NCCL, over the plugin or its own Socket; nothing
# where there is no NCCL
nccl() {
  local name=$1 transport=$2 operations=$(($4 / 134 + 1)) plugin=none
  [ -n "$nccl" ] || return 0
  interfaces 0 "$3"
  [ "$transport" = Socket ] || plugin=$(realpath "$build")/lib/libnet-slime.so
  say "$name: $lab_interfaces"
  # One host's GPUs would talk by shared memory. LL128 and PAT are not for networks as slow as this.
  NCCL_NET=$transport NCCL_NET_PLUGIN=$plugin NCCL_SOCKET_IFNAME="=$lab_interfaces" \
    NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_CUMEM_ENABLE=0 NCCL_PAT_ENABLE=0 NCCL_PROTO=^LL128 \
    lab_ranks "$name" 2 python3 "$(dirname "$0")/nccl_rank.py" --nccl "$nccl" \
    --size "$(numfmt --from=iec "$size")" -n $operations -w "${warm_up:-$operations}"
  lab_wait || row_failed "$name failed"
}

# links NAME RATE...: all together, and one of each rate alone
links() {
  local name=$1 round rail rate sum=0 done_rates
  shift
  shape "${@/%/mbit}"
  for rate in "$@"; do sum=$((sum + rate)); done
  for ((round = 1; round <= rounds; ++round)); do
    measure "$name.all.$round" 0 $# $sum
    [ $# -ne 2 ] || nccl "$name.slime.$round" SLIME 2 $sum
    [ $# -ne 2 ] || nccl "$name.socket.$round" Socket 2 $sum
    rail=0 done_rates=' '
    for rate in "$@"; do
      [[ $done_rates == *" $rate "* ]] || measure "$name.$rate.$round" $rail 1 "$rate"
      done_rates+="$rate " rail=$((rail + 1))
    done
  done
  "${report[@]}" links "$name" "$@"
}
row_even() { links even 500 500; }
row_uneven() { links uneven 500 250; }
row_four() { links four 400 200 200 100; }

row_slowed() {
  local sampler n
  shape 500mbit 500mbit
  interfaces 0 2
  lab_perf slowed 2 all_reduce -b "$size" -e "$size" -n 100 -w 0 -c 1 -d float --duration 100000
  for _ in $(seq 100); do grep -qs '(elements)' "$work/slowed.0.out" && break || sleep 0.1; done
  ip netns exec switch python3 "$(dirname "$0")/outages_report.py" sample p1 q1 >"$work/slowed.samples" &
  sampler=$!
  sleep 4
  for ((n = 1; n <= rounds; ++n)); do
    say "slowed: $n of $rounds"
    echo "slowed down $EPOCHREALTIME" >>"$work/slowed.events"
    lab_shape 1 50mbit 1 || row_failed "cannot shape a link"
    sleep 6
    echo "slowed up $EPOCHREALTIME" >>"$work/slowed.events"
    lab_shape 1 500mbit 1 || row_failed "cannot shape a link"
    sleep 6
  done
  kill "$sampler" "${rank_pids[@]}"
  lab_wait || row_failed "slowed: a rank failed"
  "${report[@]}" slowed
}

# police MBITS PORT...: what comes in there, each TCP flow by itself. nft lets what was not used in
# the last second through, too, so what is measured comes after more than that (one flow alone is
# measured, too). With much less, as 20 ms of it, one flow would get a seventh: it loses all that
# is on the way at once and waits 200 ms for TCP's timer.
police() {
  local flow="ip saddr . tcp sport . ip daddr . tcp dport" port limit="$(($1 * 125000)) bytes/second"
  shift
  printf 'table netdev police {\n set flows { typeof %s; flags dynamic; size 1000; timeout 1m; }\n' "$flow"
  for port in "$@"; do
    printf ' chain %s { type filter hook ingress device %s priority 0; ip protocol tcp' "$port" "$port"
    printf ' update @flows { %s limit rate over %s } drop; }\n' "$flow" "$limit"
  done
  echo '}'
}
row_capped() {
  local round warm_up=12
  shape 1gbit
  police 250 p0 p1 | in_switch nft -f - || row_failed "cannot police a link"
  for ((round = 1; round <= rounds; ++round)); do
    warm_up=4 NCCL_SLIME_RAILS_PER_IF=1 measure "capped.one.$round" 0 1 500
    (
      [ -z "$sockets" ] || export NCCL_SLIME_RAILS_PER_IF=$sockets
      measure "capped.all.$round" 0 1 1000 && nccl "capped.slime.$round" SLIME 1 1000
    ) || exit 1
    nccl "capped.socket.$round" Socket 1 500
  done
  in_switch nft delete table netdev police || exit 1
  "${report[@]}" capped
}

row_lossy() {
  local round
  shape 500mbit 500mbit
  # Packets of one segment: what is lost are packets of the wire, not 64 KiB at once.
  for worker in 0 1; do
    ip -n w$worker link set eth1 gso_max_segs 1 || row_failed "cannot limit segments"
    lab_spoil switch q$worker 1 0 || row_failed "cannot lose packets"
  done
  for ((round = 1; round <= rounds; ++round)); do
    measure "lossy.all.$round" 0 2 1000
    measure "lossy.clean.$round" 0 1 500
    measure "lossy.spoilt.$round" 1 1 500
  done
  for worker in 0 1; do ip -n w$worker link set eth1 gso_max_segs 65535 || exit 1; done
  in_switch nft delete table netdev spoil || exit 1
  "${report[@]}" lossy
}

row_small() {
  local round links kind rate protocol name
  for ((round = 1; round <= rounds; ++round)); do
    for rate in - 500mbit; do
      shape $rate $rate
      kind=${rate/-/free}
      for protocol in simple auto; do
        for links in 1 2; do
          interfaces 0 $links
          name=small.$protocol.$kind.$links.$round
          say "$name: $lab_interfaces"
          lab_perf "$name" 2 all_reduce --proto $protocol -b 64K -e 64K -n 400 -w 100 -c 1 --quiet
          lab_wait || row_failed "small failed"
        done
      done
    done
  done
  "${report[@]}" small
}

row_trips() {
  local round
  shape -
  for ((round = 1; round <= rounds; ++round)); do
    say "trips.$round"
    NCCL_SLIME_IFNAME=eth0 in_worker 0 "$build/bin/bench-latency" --sizes 8,4096,65536,16777216 \
      --rounds 10 --peer-netns /run/netns/w1 --json "$work/trips.$round.0.json" \
      >/dev/null 2>"$work/trips.err" || row_failed "trips failed"
  done
  "${report[@]}" trips
}

# grouped_one NAME CHANNELS ARGUMENT...
grouped_one() {
  local name=$1 channels=$2
  shift 2
  say "$name: $lab_interfaces"
  lab_perf "$name" 2 all_reduce --channels "$channels" -c 1 --quiet "$@"
  lab_wait || row_failed "$name failed"
}
row_grouped() {
  local round rates kind channels each
  for ((round = 1; round <= rounds; ++round)); do
    for rates in "- -" "500mbit 500mbit" "500mbit 250mbit" "400mbit 200mbit 200mbit 100mbit"; do
      # shellcheck disable=SC2086 # words
      shape $rates
      interfaces 0 "$(wc -w <<<"$rates")"
      kind=${rates//mbit/} kind=${kind// /+} kind=${kind/-+-/free}
      for channels in 2 8; do
        for each in 1 0; do
          export NCCL_SLIME_RAILS_PER_DEVICE=$each
          grouped_one grouped.$kind.$channels.$each.small.$round $channels -b 8 -e 256K -f 32 -n 100 -w 20
          grouped_one grouped.$kind.$channels.$each.large.$round $channels -b 1M -e "$size" -f 4 -n 5 -w 3
        done
      done
    done
  done
  "${report[@]}" grouped
}

# shellcheck disable=SC2046 # words
lab_make 2 "$mtu" $(yes - | head -n $rails) || exit 1
for worker in 0 1; do
  [ -z "$congestion" ] ||
    in_worker $worker sysctl -qw net.ipv4.tcp_congestion_control="$congestion" || exit 1
done
"${report[@]}" begin --mtu "$mtu" --rounds "$rounds" --congestion \
  "$(in_worker 0 cat /proc/sys/net/ipv4/tcp_congestion_control)"
for row in ${rows//,/ }; do
  lab_port=$((${lab_port:-29000} + 200)) # a row's own numbers are lost with its subshell
  ("row_$row") && continue
  missed+=" $row"
  mend_links
  "${report[@]}" missed $row
done
say "done"
[ -z "$json" ] || cp "$work/report.json" "$json"
[ -z "$missed" ] || {
  echo "bench/networks.sh: rows that failed:$missed" >&2
  exit 1
}
