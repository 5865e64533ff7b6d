// The pieces of requests, as programs name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "peer/region.h"

namespace slime {

struct Assignment {
  uint64_t local = 0, remote = 0;  // handles
  uint64_t local_offset = 0, remote_offset = 0, bytes = 0;
};

// Pages of one local region and one of the peer. Page n of a region begins at its offset + n *
// stride.
struct Pages {
  uint64_t local = 0, remote = 0;  // handles
  uint64_t bytes = 0;              // of a page
  uint64_t local_offset = 0, remote_offset = 0;
  uint64_t local_stride = 0, remote_stride = 0;
  std::span<const uint32_t> local_pages, remote_pages;  // as many
};

// A region of a peer that the program may name.
struct Imported {
  uint64_t peer = 0;
  std::shared_ptr<Remote> remote;
};

}  // namespace slime
