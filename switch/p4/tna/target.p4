// Registers, counters and meters of TNA under the names that the controls in this directory use.
// test/p4 has the same names for v1model, so that bmv2 runs these controls as they are.
//
// A register action sees the element of the packet's half as `value`, may change it, and gives
// `answer`. One packet has one access to each register.
#ifndef SLIME_TNA_TARGET_P4
#define SLIME_TNA_TARGET_P4

#define REGISTER(type, name) Register<type, half_t>(HALVES) name
#define REGISTER_ACTION(name, array, type, result, ...)                                    \
  RegisterAction<type, half_t, result>(array) name = {                                     \
    void apply(inout type value, out result answer) { __VA_ARGS__ }                        \
  };
#define RUN(destination, name) destination = name.execute(meta.half)

#define COUNTERS(number, name) Counter<bit<32>, bit<16>>(number, CounterType_t.PACKETS) name
#define COUNT(name, index) name.count(index)

#define METER(name) Meter<bit<1>>(1, MeterType_t.PACKETS) name
#define MEASURE(destination, name) destination = name.execute(0)
#define GREEN 0

// Of the checksum of IP, in a parser.
#define VERIFIER(name) Checksum() name;
#define VERIFY(name, header, is_wrong) \
  name.add(header);                    \
  is_wrong = (bit<1>)name.verify();

#endif
