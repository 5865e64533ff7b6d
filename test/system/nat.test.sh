#!/bin/bash
# Peers that reach each other only by addresses that are translated (NCCL_SLIME_ADVERTISE): in a
# network namespace of its own, where nft translates 203.0.113.7 to the loopback interface.
if [ "${1:-}" != inside ]; then
  [ -n "$(command -v nft)" ] || { echo "skipped: no nft (package nftables)"; exit 77; }
  [ -n "$(command -v ip)" ] || { echo "skipped: no ip (package iproute2)"; exit 77; }
  unshare -rn true 2>/dev/null || { echo "skipped: no user and network namespaces (unshare -rn)"; exit 77; }
  exec unshare -rn "$0" inside
fi
. "$(dirname "$0")/perf_support.sh"
ip link set lo up && ip route add 203.0.113.7 dev lo src 127.0.0.1 && nft -f - <<'END' || { echo "skipped: no NAT in this kernel (nf_tables)"; exit 77; }
add table ip slime
add chain ip slime output { type nat hook output priority -100; }
add rule ip slime output ip daddr 203.0.113.7 tcp dport 40000-40199 dnat to 127.0.0.1
END
export NCCL_SLIME_IFNAME=lo NCCL_SLIME_PORTS=40000-40199 NCCL_SLIME_ADVERTISE=203.0.113.7
measure() { timeout -k 5 120 "${perf[@]}" "$@" >"$work/out" 2>&1; }
addresses() { ss -Htn 2>/dev/null | grep -c 203.0.113.7; }

measure p2p --op write --size 64K --seconds 1 &
run=$!
seen=0
while [ -n "$(command -v ss)" ] && kill -0 $run 2>/dev/null && [ "$seen" -eq 0 ]; do
  seen=$(addresses)
  sleep 0.05
done
wait $run && ok "libslime writes over translated addresses" || not_ok "slime-perf p2p" "$work/out"
if [ -n "$(command -v ss)" ]; then
  [ "$seen" -gt 0 ] && ok "its connections have these addresses" || not_ok "no connection has them"
fi
measure all_reduce -b 64K -e 64K && ok "so does NCCL's plugin" || not_ok "slime-perf all_reduce" "$work/out"
export NCCL_SLIME_ADVERTISE=127.0.0.1=203.0.113.7
measure p2p --size 64K --seconds 0.1 && ok "an address for each own one" || not_ok "pairs" "$work/out"
export NCCL_SLIME_PORTS=41000-41099 NCCL_SLIME_CONNECT_TIMEOUT=2
measure p2p --size 64K --seconds 0.1 --timeout 20 && not_ok "ports that are not translated work too" ||
  ok "and nothing works over ports that are not translated"
grep -q '203.0.113.7' "$work/out" && ok "the error names the address" || not_ok "the error" "$work/out"
export NCCL_SLIME_PORTS=40000-40199 NCCL_SLIME_ADVERTISE=nobody
measure p2p --size 64K --seconds 0.1 && not_ok "no address, and no error" || ok "what is no address is refused"
grep -q 'advertise="nobody" is not accepted' "$work/out" && ok "by its name" || not_ok "the error" "$work/out"
exit $wrong
