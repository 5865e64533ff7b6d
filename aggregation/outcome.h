// Between the words of this project and those of the public header.
#pragma once

#include <slime/aggregation.h>

#include "base/error.h"

namespace slime::aggregation {

constexpr Code code_of(Status status) {
  switch (status) {
    case Status::kOk:
      return Code::kOk;
    case Status::kAgain:
      return Code::kWouldBlock;
    case Status::kInvalid:
      return Code::kInvalid;
    case Status::kConfig:
      return Code::kConfig;
    case Status::kSystem:
      return Code::kSystem;
    case Status::kRemote:
      return Code::kRemote;
    case Status::kTimeout:
      return Code::kTimeout;
    case Status::kNoMemory:
      return Code::kNoMemory;
    case Status::kUnsupported:
      return Code::kUnsupported;
    case Status::kInternal:
      return Code::kInternal;
  }
  return Code::kInternal;
}

inline Outcome outcome_of(const Error& error) { return {code_of(error.status), error.what}; }

}  // namespace slime::aggregation
