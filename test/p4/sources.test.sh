#!/bin/bash
# The P4 sources, as far as that needs no compiler: what the generator writes is what is kept, and
# names, widths, table keys and limits are those of the C++ (lint.py). Each mutant of them must be
# found.
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
wrong=0
not_ok() {
  echo "not ok: $*"
  wrong=1
}

lanes=$(sed -nE 's/^#define LANES ([0-9]+).*/\1/p' switch/p4/v1model/switch.p4)
switch/p4/lanes.py "$lanes" | diff - switch/p4/v1model/lanes.p4 ||
  not_ok "switch/p4/v1model/lanes.p4 is not what switch/p4/lanes.py $lanes writes"
test/p4/lint.py || not_ok "the P4 and the C++ differ"

# mutant FILE SED: lint.py finds it
mutant() {
  rm -rf "$work/tree"
  mkdir -p "$work/tree/switch/protocol" "$work/tree/switch/core"
  cp switch/protocol/sap.h "$work/tree/switch/protocol"
  cp switch/core/{job,shard}.h "$work/tree/switch/core"
  cp -r switch/p4 switch/bmv2 switch/tofino switch/p4driver "$work/tree/switch"
  sed -i -E "$2" "$work/tree/$1"
  if cmp -s "$1" "$work/tree/$1"; then
    not_ok "mutant $2 changes nothing in $1"
  elif test/p4/lint.py "$work/tree" 2>"$work/found"; then
    not_ok "mutant $2 of $1 is not found"
  elif grep -q Traceback "$work/found"; then
    not_ok "mutant $2 of $1: $(tail -n 1 "$work/found")"
  fi
}
core=switch/p4/core v1model=switch/p4/v1model program=switch/bmv2/program
mutant $core/sap.p4 's/bit<8> child;/bit<16> child;/'
mutant $core/sap.p4 's/bit<32> token;/bit<32> nonce;/'
mutant $core/sap.p4 's/(SAP_QUERY) 6/\1 7/'
mutant $core/sap.p4 's/(SAP_KNOWN_FORMATS) 0xdf/\1 0xff/'
mutant $core/sap.p4 's/(SAP_VERSION) 2/\1 3/'
mutant $core/sap.p4 '/SAP_OR/d'
mutant switch/protocol/sap.h 's/kSlot = 12/kSlot = 10/'
mutant switch/protocol/sap.h 's/kSum, kMin/kMin, kSum/'
mutant $core/counters.p4 's/(COUNT_STALE) 4/\1 5/'
mutant $core/counters.p4 '/DEVICE_UNEXPECTED/d'
mutant switch/core/job.h '/X\(stale,/d'
mutant $v1model/job.p4 's/hdr.udp.source: exact;//'
mutant $v1model/job.p4 's/bit<32> slots,/bit<16> slots,/'
mutant $core/bridge.p4 's/action forward\(port_t/action forward(bit<16>/'
mutant $program.cc 's/"token", 32/"token", 16/'
mutant $program.cc 's/job\.take"/job.give"/'
mutant $program.h 's/kHalves = 16384/kHalves = 32768/'
mutant $program.h 's/slot\.arrivals/slot.arrived/'
mutant $v1model/switch.p4 's/(define SOURCES) 4096/\1 2048/'
tna=switch/p4/tna program=switch/tofino/program
mutant $tna/admission.p4 's/hdr.udp.destination: exact;//'
mutant $tna/admission.p4 's/epoch\[0:0\]: exact/epoch[1:0]: exact/'
mutant $tna/admission.p4 's/bit<32> others,/bit<16> others,/'
mutant $tna/egress.p4 's/in bit<16> replica/in bit<8> replica/'
mutant $tna/ingress.p4 's/round_counts\)/rounds_counted)/'
mutant $tna/sizes.p4 's/(HALVES) 16384/\1 8192/'
mutant $program.cc 's/"odd", 1/"odd", 2/'
mutant $program.cc '/"last_slot"/d'
mutant $program.h 's/kJobs = 64/kJobs = 65/'

[ $wrong -eq 0 ] && echo "ok"
exit $wrong
