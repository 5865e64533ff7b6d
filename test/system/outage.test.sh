#!/bin/bash
# Links of two rails whose interfaces lose their carrier under load and get it back: nothing is wrong,
# no rank fails, both ranks say what happened, and the traffic returns to the rail. A link of one rail
# waits.
#
# Stalls are not judged here, as a busy machine has its own: bench/outages.sh measures them.
. "$(dirname "$0")/../../bench/lab.sh"
. "$(dirname "$0")/perf_support.sh"
export NCCL_DEBUG=WARN
lab_interfaces=eth0,eth1
outages=2 outage_s=2

lab_make 2 9000 400mbit 400mbit || {
  echo "skipped: network namespaces cannot be made here"
  exit 77
}

sent() { ip netns exec "w$1" cat "/sys/class/net/$2/statistics/tx_bytes"; }
# carries I DEVICE BYTES: it has sent so many bytes more than $before
carries() { [ $(($(sent "$1" "$2") - before)) -ge "$3" ]; }
# said RANK TEXT: how often; more_said TEXT: both ranks have said it oftener than $said0 and $said1
said() { grep -cE -- "$2" "$work/two.$1.err"; }
more_said() { [ "$(said 0 "$1")" -gt "$said0" ] && [ "$(said 1 "$1")" -gt "$said1" ]; }

lab_perf two 2 all_reduce -d float "${lasting[@]}"
under_way two
for ((n = 1; n <= outages; ++n)); do
  before=$(sent 0 eth1)
  retry 600 carries 0 eth1 1000000 || give_up two "outage $n: eth1 carries nothing before it"
  dead='rail eth1 is down, 1 of 2 rails carry on' back='rail eth1 carries traffic again'
  said0=$(said 0 "$dead") said1=$(said 1 "$dead")
  ip -n w1 link set eth1 down
  retry 600 more_said "$dead" ||
    give_up two "outage $n: a rank does not say that rail eth1 is down"
  before=$(sent 0 eth0)
  retry 600 carries 0 eth0 1000000 || give_up two "outage $n: eth0 does not carry on"
  sleep "$outage_s"
  said0=$(said 0 "$back") said1=$(said 1 "$back")
  ip -n w1 link set eth1 up
  lab_route 1 1
  retry 600 more_said "$back" ||
    give_up two "outage $n: rail eth1 does not return"
  before=$(sent 1 eth1)
  retry 600 carries 1 eth1 1000000 || give_up two "outage $n: eth1 carries nothing after it"
  ok "outage $n"
done
says two.1 'rail eth1 is down.*eth1 has no carrier'
kill "${rank_pids[@]}"
lab_wait 2>/dev/null && ok "two: exit status 0" || not_ok "two: a rank failed" "$work/two.0.err"
holds two.0 "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"

lab_interfaces=eth0
lab_perf one 2 all_reduce -d float "${lasting[@]}"
under_way one
ip -n switch link set p1 down
sleep $((2 * outage_s))
ip -n switch link set p1 up
before=$(sent 0 eth0)
retry 900 carries 0 eth0 1000000 || give_up one "one: it does not go on"
kill "${rank_pids[@]}"
lab_wait 2>/dev/null && ok "one: exit status 0" || not_ok "one: a rank failed" "$work/one.0.err"
holds one.0 "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"
exit $wrong
