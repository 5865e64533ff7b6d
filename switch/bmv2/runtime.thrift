// The part of bmv2's runtime interface that Bmv2Runtime calls: names, field numbers and types as
// simple_switch 1.15 has them (standard.thrift, simple_pre_lag.thrift and simple_switch.thrift of
// p4lang/behavioral-model). bmv2 serves them by Thrift's multiplexed protocol, under the names
// "standard", "simple_pre_lag" and "simple_switch". What a code means depends on the service.

namespace cpp slime.bmv2

enum MatchType { EXACT = 0 }
struct ExactKey { 1: binary key }
struct MatchParam {
  1: MatchType type,
  2: optional ExactKey exact
}
struct EntryOptions { 1: optional i32 priority }
struct CounterValue { 1: i64 bytes, 2: i64 packets }
struct MeterRate { 1: double units_per_micros, 2: i32 burst_size }

// bmv2 declares an exception for each service. Their fields are the same, and Thrift does not send
// their names.
exception Failure { 1: i32 code }

service Standard {
  i32 bm_mt_add_entry(1: i32 cxt_id, 2: string table_name, 3: list<MatchParam> match_key,
                      4: string action_name, 5: list<binary> action_data, 6: EntryOptions options)
    throws (1: Failure ouch),
  void bm_mt_set_default_action(1: i32 cxt_id, 2: string table_name, 3: string action_name,
                                4: list<binary> action_data) throws (1: Failure ouch),
  void bm_mt_delete_entry(1: i32 cxt_id, 2: string table_name, 3: i32 entry_handle)
    throws (1: Failure ouch),
  void bm_mt_modify_entry(1: i32 cxt_id, 2: string table_name, 3: i32 entry_handle,
                          4: string action_name, 5: list<binary> action_data)
    throws (1: Failure ouch),
  CounterValue bm_counter_read(1: i32 cxt_id, 2: string counter_name, 3: i32 index)
    throws (1: Failure ouch),
  void bm_counter_write(1: i32 cxt_id, 2: string counter_name, 3: i32 index,
                        4: CounterValue value) throws (1: Failure ouch),
  void bm_meter_array_set_rates(1: i32 cxt_id, 2: string meter_array_name,
                                3: list<MeterRate> rates) throws (1: Failure ouch),
  void bm_register_write_range(1: i32 cxt_id, 2: string register_array_name, 3: i32 start_index,
                               4: i32 end_index, 5: i64 value) throws (1: Failure ouch),
  void bm_reset_state()
}

service SimplePreLag {
  i32 bm_mc_mgrp_create(1: i32 cxt_id, 2: i32 mgrp) throws (1: Failure ouch),
  void bm_mc_mgrp_destroy(1: i32 cxt_id, 2: i32 mgrp_handle) throws (1: Failure ouch),
  // A map is a text of 0 and 1, the last character for port (or group of ports) 0.
  i32 bm_mc_node_create(1: i32 cxt_id, 2: i32 rid, 3: string port_map, 4: string lag_map)
    throws (1: Failure ouch),
  void bm_mc_node_associate(1: i32 cxt_id, 2: i32 mgrp_handle, 3: i32 l1_handle)
    throws (1: Failure ouch),
  void bm_mc_node_destroy(1: i32 cxt_id, 2: i32 l1_handle) throws (1: Failure ouch)
}

struct MirrorConfig { 1: optional i32 port, 2: optional i32 mgid }

service SimpleSwitch {
  void mirroring_session_add(1: i32 mirror_id, 2: MirrorConfig config)
    throws (1: Failure ouch)
}
