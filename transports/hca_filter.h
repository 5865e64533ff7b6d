// Which ports of NICs are used: NCCL_IB_HCA, or NCCL_SLIME_HCA.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace slime {

// A comma-separated list of "name" or "name:port". Names are prefixes; a leading "=" makes them
// whole names, a leading "^" excludes what is named, "^=" both (NCCL, "NCCL_IB_HCA"). An empty list
// lets all through.
class HcaFilter {
 public:
  explicit HcaFilter(std::string_view list);
  bool lets_through(std::string_view device, int port) const;
  const std::string& malformed() const {
    return malformed_;
  }  // the first item that is; empty: none

 private:
  struct Entry {
    std::string name;
    int port = 0;  // 0: any
  };
  bool names(std::string_view device, int port) const;

  bool exclude_ = false, exact_ = false;
  std::string malformed_;
  std::vector<Entry> entries_;
};

// Of NCCL_SLIME_HCA; the error names the variable and the item.
Result<HcaFilter> parse_hca_filter(const std::string& list);

}  // namespace slime
