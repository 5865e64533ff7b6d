// What FakeBfrt's tables take and refuse. Pure functions of a FakeState.
#pragma once

#include <string>

#include "test/tofino/fake_bfrt.h"
#include "tofino/bfruntime.pb.h"

namespace slime::tofino {

// gRPC's code, 0 if it is done, and why not.
struct Verdict {
  int code = 0;
  std::string message;
};

Verdict apply(const bfrt_proto::Update& update, FakeState* state);
Verdict answer(const bfrt_proto::Entity& question, FakeState* state, bfrt_proto::ReadResponse* to);

}  // namespace slime::tofino
