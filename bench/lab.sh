# shellcheck shell=bash
# lab.sh: a rack in network namespaces, made without privileges and gone with the script. To be
# sourced before the script does anything: it starts it once more, in there.
#
#     w0 eth0 ==+
#     w1 eth0 ==+== switch (br0)        == is a veth pair, shaped at both ends
#     ...       |
#
# The switch's namespace has a port to every worker, so it can give each its full rate, as a switch
# does and a host with one NIC cannot. Everything happens in user, network, mount and process
# namespaces of its own: nothing outside changes, and no process survives.
# Addresses are those that RFC 2544 sets aside for benchmarks.
switch_address=198.18.0.1

if [ -z "${SLIME_LAB:-}" ]; then
  enter=(unshare --user --map-root-user --net --mount --pid --fork --kill-child --mount-proc)
  for tool in ip tc nft unshare; do
    [ -n "$(PATH=$PATH:/usr/sbin:/sbin command -v $tool)" ] || {
      echo "skipped: $tool is not installed (packages iproute2, nftables, util-linux)"
      exit 77
    }
  done
  "${enter[@]}" true 2>/dev/null || {
    echo "skipped: this kernel or container allows no user namespaces (unshare --user)"
    exit 77
  }
  export SLIME_LAB=1 PATH=$PATH:/usr/sbin:/sbin
  exec "${enter[@]}" "$0" "$@"
fi

# worker_address I [RAIL]: 0 is the first one, in the network of the switch's address.
worker_address() { echo "$(lab_net "${2:-0}").$((10 + $1))"; }
lab_net() { if [ "$1" -eq 0 ]; then echo 198.18.0; else echo "198.19.$(($1 - 1))"; fi; }
# lab_port RAIL I: the switch's end of such a rail of worker I: p0, q0, ...
lab_port() {
  local letters=pqrstuvw
  echo "${letters:$1:1}$2"
}

# in_switch COMMAND..., in_worker I COMMAND...
in_switch() { ip netns exec switch "$@"; }
in_worker() {
  local worker=$1
  shift
  ip netns exec "w$worker" "$@"
}

# lab_make WORKERS MTU [RATE...]: a rail of every worker for each RATE (8 at most), as tc(8) says
# it, as 200mbit; - or none: one as fast as the kernel can. Rail K is ethK == brK, in a network of
# its own; the switch's address is reached over each.
lab_make() {
  local workers=$1 mtu=$2 i rail=0 rate
  shift 2
  mount -t tmpfs tmpfs /run && mkdir /run/netns || return
  lab_space switch || return
  for ((i = 0; i < workers; ++i)); do
    lab_space "w$i" || return
    # Answers to eth1 come from an address that eth0 has the better route to.
    in_worker "$i" sh -c 'echo 2 >/proc/sys/net/ipv4/conf/all/rp_filter' || return
  done
  for rate in "${@:--}"; do
    # An address of its own: otherwise it is that of a port, and changes with the ports.
    ip -n switch link add "br$rail" address "02:00:00:00:00:0$((rail + 1))" mtu "$mtu" type bridge &&
      ip -n switch addr add "$(lab_net $rail).1/24" dev "br$rail" &&
      ip -n switch link set "br$rail" up || return
    for ((i = 0; i < workers; ++i)); do
      lab_link "$i" "$mtu" $rail && lab_shape "$i" "$rate" $rail || return
    done
    rail=$((rail + 1))
  done
}

# lab_link I MTU [RAIL]: from worker I to the switch
lab_link() {
  local rail=${3:-0} port
  port=$(lab_port "$rail" "$1")
  ip -n switch link add "$port" mtu "$2" type veth peer name "eth$rail" mtu "$2" netns "w$1" &&
    ip -n "w$1" addr add "$(worker_address "$1" "$rail")/24" dev "eth$rail" &&
    ip -n "w$1" link set "eth$rail" up &&
    ip -n switch link set "$port" master "br$rail" up || return
  [ "$rail" -eq 0 ] || lab_route "$1" "$rail"
}

# lab_route I RAIL: over it to the switch's address, if none of a lower number can; the kernel
# forgets it when the interface goes down.
lab_route() {
  ip -n "w$1" route add "$(lab_net 0).0/24" via "$(lab_net "$2").1" dev "eth$2" metric $((99 + $2))
}

lab_space() { ip netns add "$1" && ip -n "$1" link set lo up; }

# lab_shape I RATE [RAIL]: both ends of such a link of worker I; -: as fast as the kernel can
# The queue holds 50 ms: what a window of many packets needs, and what TCP fills until it loses.
lab_shape() {
  local rail=${3:-0} port shape=(root tbf rate "$2" burst 32k latency 50ms)
  port=$(lab_port "$rail" "$1")
  if [ "$2" = - ]; then
    tc -n "w$1" qdisc replace dev "eth$rail" root noqueue &&
      tc -n switch qdisc replace dev "$port" root noqueue
  else
    tc -n "w$1" qdisc replace dev "eth$rail" "${shape[@]}" &&
      tc -n switch qdisc replace dev "$port" "${shape[@]}"
  fi
}

# lab_shape_all RATE...: of the links in their order, of workers 0 and 1
lab_shape_all() {
  local rail
  for ((rail = 0; $# > 0; ++rail)); do
    lab_shape 0 "$1" $rail && lab_shape 1 "$1" $rail || return
    shift
  done
}

# lab_relay I ARGUMENT...: puts a relay (test/system/relay.py) into the link of worker I. Sets
# $relay_pid.
lab_relay() {
  local i=$1 mtu relay=test/system/relay.py
  shift
  mtu=$(in_worker "$i" cat /sys/class/net/eth0/mtu)
  ip -n switch link del "p$i" && lab_space "r$i" &&
    ip -n "w$i" link add eth0 mtu "$mtu" type veth peer name near mtu "$mtu" netns "r$i" &&
    ip -n switch link add "p$i" mtu "$mtu" type veth peer name far mtu "$mtu" netns "r$i" || return
  in_worker "$i" $relay --plain eth0 && in_switch $relay --plain "p$i" || return
  ip -n "r$i" link set near up && ip -n "r$i" link set far up && ip -n "w$i" link set eth0 up &&
    ip -n "w$i" addr add "$(worker_address "$i")/24" dev eth0 &&
    ip -n switch link set "p$i" master br0 up || return
  ip netns exec "r$i" $relay near far "$@" >"$work/relay.$i" 2>&1 &
  relay_pid=$!
  for _ in $(seq 1200); do
    grep -qs ready "$work/relay.$i" && return
    sleep 0.05
  done
  cat "$work/relay.$i" >&2
  return 1
}

# lab_no_relay I MTU: the link as it was
lab_no_relay() {
  kill "$relay_pid"
  wait "$relay_pid" 2>/dev/null
  ip -n "w$1" link del eth0 && ip -n switch link del "p$1" && ip netns del "r$1" && lab_link "$1" "$2"
}

# lab_spoil SPACE DEVICE LOST TWICE: of 1000 packets that leave there, so many are lost or doubled.
lab_spoil() {
  local nft=(ip netns exec "$1" nft) chance="meta protocol ip numgen random mod 1000 <"
  "${nft[@]}" add table netdev spoil &&
    "${nft[@]}" "add chain netdev spoil $2 { type filter hook egress device $2 priority 0; }" &&
    "${nft[@]}" flush chain netdev spoil "$2" || return
  # shellcheck disable=SC2086 # words
  [ "$3" -eq 0 ] || "${nft[@]}" add rule netdev spoil "$2" $chance "$3" counter drop || return
  # shellcheck disable=SC2086
  [ "$4" -eq 0 ] || "${nft[@]}" add rule netdev spoil "$2" $chance "$4" counter dup to "$2"
}

# lab_spoil_all WORKERS LOST TWICE: at both ends of every link
lab_spoil_all() {
  local i
  for ((i = 0; i < $1; ++i)); do
    lab_spoil "w$i" eth0 "$2" "$3" && lab_spoil switch "p$i" "$2" "$3" || return
  done
}

# lab_switchd FILE [LINE...]: starts slime-switchd there, with more lines of configuration. Sets
# NCCL_SLIME_SWITCH and $switchd_pid; its log is FILE.log.
lab_switchd() {
  export NCCL_SLIME_SWITCH=$switch_address:28900
  lab_switchd_in switch $switch_address "$@"
}

# lab_switch_hosts FIRST COUNT FILE: slime-switchd on COUNT workers, from FIRST on, with FILE.I.
# Sets NCCL_SLIME_SWITCH to the list of them, and the array $switchd_pids.
lab_switch_hosts() {
  local i list=''
  switchd_pids=()
  for ((i = $1; i < $1 + $2; ++i)); do
    lab_switchd_in "w$i" "$(worker_address "$i")" "$3.$i" || return
    switchd_pids+=("$switchd_pid")
    list+=${list:+,}$(worker_address "$i"):28900
  done
  export NCCL_SLIME_SWITCH=$list
}

# lab_switchd_in SPACE ADDRESS FILE [LINE...]: the same anywhere. All have one key.
lab_switchd_in() {
  local space=$1 address=$2 file=$3 key=$work/switch.key
  shift 3
  [ -e "$key" ] || { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$key" && chmod 600 "$key"; }
  {
    printf 'data:\n  listen: "%s:28880"\n  shards: 1\n' "$address"
    printf 'control:\n  listen: "%s:28900"\n  key_file: %s\n' "$address" "$key"
    printf '%s\n' "$@"
  } >"$file"
  export NCCL_SLIME_SWITCH_KEY_FILE=$key
  lab_switchd_again "$file" "$space"
}

# lab_switchd_again FILE [SPACE]: as it was configured before. Not in_switch: $! is to be
# slime-switchd itself. The same below.
lab_switchd_again() {
  : >"$1.ready"
  ip netns exec "${2:-switch}" "${launcher[@]}" "$build/bin/slime-switchd" --config "$1" \
    >"$1.ready" 2>>"$1.log" &
  switchd_pid=$!
  for _ in $(seq 1200); do
    grep -qs ready "$1.ready" && return
    kill -0 "$switchd_pid" 2>/dev/null || break
    sleep 0.05
  done
  echo "lab: slime-switchd does not start:" >&2
  tail -n 20 "$1.log" >&2
  return 1
}

# lab_ranks NAME WORKERS COMMAND...: a rank in each worker's namespace, as torchrun starts it; what
# rank R prints is in $work/NAME.R.{out,err}, the result in $work/NAME.R.json. Sets the array
# $rank_pids; lab_wait waits for them and returns the first that was not 0.
lab_ranks() {
  local name=$1 workers=$2 rank
  shift 2
  lab_port=$((${lab_port:-29000} + 1))
  rank_pids=()
  for ((rank = 0; rank < workers; ++rank)); do
    RANK=$rank WORLD_SIZE=$workers LOCAL_RANK=0 MASTER_ADDR=$(worker_address 0) \
      MASTER_PORT=$lab_port TORCHELASTIC_RUN_ID=$name NCCL_SLIME_IFNAME=${lab_interfaces:-eth0} \
      ip netns exec "w$rank" "${launcher[@]}" "$@" --json "$work/$name.$rank.json" \
      >"$work/$name.$rank.out" 2>"$work/$name.$rank.err" </dev/null &
    rank_pids+=($!)
  done
}

# lab_perf NAME WORKERS ARGUMENT...: ranks of slime-perf
lab_perf() {
  local name=$1 workers=$2
  shift 2
  lab_ranks "$name" "$workers" "$build/bin/slime-perf" "$@"
}

lab_wait() {
  local code first=0 pid
  for pid in "${rank_pids[@]}"; do
    wait "$pid"
    code=$?
    [ "$first" -ne 0 ] || first=$code
  done
  return "$first"
}
