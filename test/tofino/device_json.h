// A small P4 program and the tables of the chip, as BFRuntime describes them: the shape is that of
// p4c's bf-rt.json, the fixed tables have the numbers and fields of bf_rt_pre_tf1.json and
// bf_rt_mirror_tf1.json in open-p4studio.
#pragma once

namespace slime::tofino {

// Two tables with keys that are exact and ternary, one with entries of the program's, a register, a
// counter, a meter, and a table of a type that the driver does not use.
inline constexpr char kProgramJson[] = R"({"schema_version": "1.0.0", "tables": [
{"name": "pipe.Ingress.bridge.hosts", "id": 37882547, "table_type": "MatchAction_Direct",
 "size": 1024, "has_const_default_action": false, "attributes": ["EntryScope"],
 "key": [{"id": 1, "name": "hdr.ethernet.dst_addr", "repeated": false, "mandatory": false,
   "match_type": "Exact", "type": {"type": "bytes", "width": 48}}],
 "action_specs": [
  {"id": 32848556, "name": "Ingress.bridge.forward", "data": [{"id": 1, "name": "port",
    "repeated": false, "mandatory": true, "type": {"type": "bytes", "width": 9}}]},
  {"id": 29846138, "name": "Ingress.bridge.flood", "data": [{"id": 1, "name": "group",
    "repeated": false, "mandatory": true, "type": {"type": "bytes", "width": 16}}]}], "data": []},
{"name": "pipe.Ingress.jobs", "id": 34746517, "table_type": "MatchAction_Direct", "size": 64,
 "has_const_default_action": false, "attributes": [],
 "key": [
  {"id": 1, "name": "hdr.slime.job", "match_type": "Exact", "type": {"type": "bytes", "width": 16}},
  {"id": 2, "name": "hdr.slime.flags", "match_type": "Ternary",
   "type": {"type": "bytes", "width": 12}},
  {"id": 65537, "name": "$MATCH_PRIORITY", "match_type": "Exact", "type": {"type": "uint32"}}],
 "action_specs": [{"id": 31369524, "name": "Ingress.accept", "data": [
   {"id": 1, "name": "generation", "type": {"type": "bytes", "width": 8}},
   {"id": 2, "name": "token", "type": {"type": "bytes", "width": 32}},
   {"id": 3, "name": "has_parent", "type": {"type": "bool"}}]}],
 "data": [{"singleton": {"id": 65554, "name": "$COUNTER_SPEC_PKTS", "type": {"type": "uint64"}}}]},
{"name": "pipe.Ingress.formats", "id": 39585591, "table_type": "MatchAction_Direct", "size": 16,
 "has_const_default_action": true, "attributes": ["ConstTable"],
 "key": [{"id": 1, "name": "hdr.slime.format", "match_type": "Exact",
   "type": {"type": "bytes", "width": 8}}],
 "action_specs": [{"id": 21257015, "name": "NoAction", "data": []}], "data": []},
{"name": "pipe.Ingress.arrivals", "id": 9876543, "table_type": "Register", "size": 4096,
 "key": [{"id": 65582, "name": "$REGISTER_INDEX", "match_type": "Exact",
   "type": {"type": "uint32"}}],
 "data": [
  {"singleton": {"id": 1, "name": "Ingress.arrivals.low", "type": {"type": "bytes", "width": 32}}},
  {"singleton": {"id": 2, "name": "Ingress.arrivals.high", "type": {"type": "bytes", "width": 32}}}]},
{"name": "pipe.Ingress.counts", "id": 9876544, "table_type": "Counter", "size": 256,
 "key": [{"id": 65581, "name": "$COUNTER_INDEX", "match_type": "Exact", "type": {"type": "uint32"}}],
 "data": [{"singleton": {"id": 65554, "name": "$COUNTER_SPEC_PKTS", "type": {"type": "uint64"}}}]},
{"name": "pipe.Ingress.rate", "id": 9876545, "table_type": "Meter", "size": 1,
 "key": [{"id": 65579, "name": "$METER_INDEX", "match_type": "Exact", "type": {"type": "uint32"}}],
 "data": [
  {"singleton": {"id": 65541, "name": "$METER_SPEC_CIR_PPS", "type": {"type": "uint64"}}},
  {"singleton": {"id": 65542, "name": "$METER_SPEC_PIR_PPS", "type": {"type": "uint64"}}},
  {"singleton": {"id": 65543, "name": "$METER_SPEC_CBS_PKTS", "type": {"type": "uint64"}}},
  {"singleton": {"id": 65544, "name": "$METER_SPEC_PBS_PKTS", "type": {"type": "uint64"}}}]},
{"name": "pipe.Ingress.bytes_rate", "id": 9876546, "table_type": "Meter", "size": 1,
 "key": [{"id": 65579, "name": "$METER_INDEX", "match_type": "Exact", "type": {"type": "uint32"}}],
 "data": [
  {"singleton": {"id": 65545, "name": "$METER_SPEC_CIR_KBPS", "type": {"type": "uint64"}}}]},
{"name": "pipe.snapshot.cfg", "id": 2449444368, "table_type": "SnapshotCfg", "size": 12,
 "data": [{"singleton": {"id": 65594, "name": "table_info", "repeated": true,
   "container": [{"singleton": {"id": 1, "name": "x"}}]}}]}],
"learn_filters": []})";

inline constexpr char kChipJson[] = R"({"tables": [
{"name": "$pre.mgid", "id": 4278321153, "table_type": "PreMgid", "size": 65536,
 "key": [{"id": 1, "name": "$MGID", "match_type": "Exact", "type": {"type": "uint16"}}],
 "data": [
  {"singleton": {"id": 1, "name": "$MULTICAST_NODE_ID", "repeated": true,
    "type": {"type": "uint32"}}},
  {"singleton": {"id": 2, "name": "$MULTICAST_NODE_L1_XID_VALID", "repeated": true,
    "type": {"type": "bool"}}},
  {"singleton": {"id": 3, "name": "$MULTICAST_NODE_L1_XID", "repeated": true,
    "type": {"type": "uint16"}}}]},
{"name": "$pre.node", "id": 4278321154, "table_type": "PreNode", "size": 16777216,
 "key": [{"id": 1, "name": "$MULTICAST_NODE_ID", "match_type": "Exact", "type": {"type": "uint32"}}],
 "data": [
  {"singleton": {"id": 1, "name": "$MULTICAST_RID", "repeated": false, "type": {"type": "uint16"}}},
  {"singleton": {"id": 2, "name": "$MULTICAST_LAG_ID", "repeated": true,
    "type": {"type": "uint8"}}},
  {"singleton": {"id": 3, "name": "$DEV_PORT", "repeated": true, "type": {"type": "uint32"}}}]},
{"name": "$mirror.cfg", "id": 4278452225, "table_type": "MirrorCfg", "size": 1024,
 "key": [{"id": 1, "name": "$sid", "match_type": "Exact", "type": {"type": "uint16"}}],
 "action_specs": [{"id": 2, "name": "$normal", "data": []}],
 "data": [
  {"singleton": {"id": 5, "name": "$session_enable", "type": {"type": "bool"}}},
  {"singleton": {"id": 6, "name": "$direction",
    "type": {"type": "string", "choices": ["INGRESS", "EGRESS", "BOTH"]}}},
  {"singleton": {"id": 7, "name": "$ucast_egress_port", "type": {"type": "uint32"}}},
  {"singleton": {"id": 8, "name": "$ucast_egress_port_valid", "type": {"type": "bool"}}}]}]})";

}  // namespace slime::tofino
