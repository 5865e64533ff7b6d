// A test with one connection over a device of two rails.
#pragma once

#include "test/boundary/support/net.h"

namespace slime::boundary {

class Traffic : public EveryVersion {
 protected:
  void SetUp() override {
    set("NCCL_SLIME_RAILS_PER_IF", "2");
    ASSERT_EQ(net_.init(), nccl::kSuccess);
    pair_ = std::make_unique<Pair>(net_);
    ASSERT_TRUE(pair_->connected);
  }
  void TearDown() override {
    pair_.reset();
    finalize();
    EXPECT_EQ(Log::count(nccl::kLogWarn), expected_warnings_) << Log::text();
  }

  std::unique_ptr<Pair> pair_;
  size_t expected_warnings_ = 0;
};

}  // namespace slime::boundary
