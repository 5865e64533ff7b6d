#include <gtest/gtest.h>

#include "base/interfaces/carrier.h"

namespace slime {
namespace {

TEST(CarrierSense, LoopbackHasOne) {
  CarrierSense carrier("lo");
  EXPECT_EQ(carrier.look(1), Carrier::kUp);
}

TEST(CarrierSense, OfAnInterfaceThatIsNotThereNothingIsKnown) {
  for (const char* name : {"", "no-such-if0", "a name that is longer than any interface's"}) {
    CarrierSense carrier(name);
    EXPECT_EQ(carrier.look(1), Carrier::kUnknown) << name;
  }
}

TEST(CarrierSense, TheKernelIsNotAskedAtEveryLook) {
  CarrierSense carrier("lo");
  EXPECT_EQ(carrier.look(1'000'000'000), Carrier::kUp);
  EXPECT_EQ(carrier.look(0), Carrier::kUp) << "what was seen last";
}

}  // namespace
}  // namespace slime
