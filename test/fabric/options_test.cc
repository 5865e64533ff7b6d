// What endpoints are asked for before they are enabled.
#include "test/fabric/support.h"

namespace slime::fabric {
namespace {

// rdma/fi_endpoint.h and rdma/fi_ext.h of libfabric 2.6
constexpr int kCudaApi = 10, kSharedMemory = 11;
constexpr int kEfa = -(0xefa << 16);
constexpr int kRnrRetry = kEfa, kEmulatedWrite = kEfa + 2, kDeviceRdma = kEfa + 4,
              kWriteInOrder = kEfa + 6, kUnsolicitedReceive = kEfa + 8;

// What one rail sets, by option.
std::map<int, uint64_t> set_by_a_rail(const FakeFabricOptions& options) {
  const FakeFabric nics(options);
  const Opened opened(nics);
  std::map<int, uint64_t> set;
  for (const auto& option : nics.options_set()) {
    EXPECT_TRUE(option.before_enable) << option.name;
    set[option.name] = option.value;
  }
  EXPECT_THAT(nics.violations(), IsEmpty());
  return set;
}

void expect_no_rail(const FakeFabricOptions& options, const std::string& why) {
  const FakeFabric nics(options);
  const Opened opened(nics);
  EXPECT_THAT(opened.rails, IsEmpty());
  EXPECT_THAT(opened.notes, ElementsAre(HasSubstr(why), HasSubstr(why)));
  EXPECT_EQ(nics.objects(), 0u) << "something is left of the rails";
}

void expect_rails(const FakeFabricOptions& options, bool lines_in_order) {
  const FakeFabric nics(options);
  const Opened opened(nics);
  EXPECT_THAT(opened.notes, IsEmpty());
  ASSERT_EQ(opened.rails.size(), 2u);
  EXPECT_EQ(opened.rails[0]->caps().lines_in_order, lines_in_order);
}

TEST(FabricOptions, EfaIsAskedForTheDevicesRdmaAndToAskTheReceiverForEver) {
  EXPECT_EQ(set_by_a_rail({}), (std::map<int, uint64_t>{{kCudaApi, 0},
                                                        {kSharedMemory, 0},
                                                        {kRnrRetry, 7},
                                                        {kDeviceRdma, 1},
                                                        {kWriteInOrder, 1},
                                                        {kUnsolicitedReceive, 0}}));
}

TEST(FabricOptions, WithDeviceMemoryPeerToPeerIsRequired) {
  const auto set = set_by_a_rail({.device_memory = true});
  ASSERT_TRUE(set.contains(FI_OPT_FI_HMEM_P2P));
  EXPECT_EQ(set.at(FI_OPT_FI_HMEM_P2P), uint64_t{FI_HMEM_P2P_REQUIRED});
}

TEST(FabricOptions, OtherProvidersAreAskedForWhatIsCommonOnly) {
  const FakeFabricOptions options{.provider = "shm", .nics = {{.name = "shm"}}};
  const FakeFabric nics(options);
  const Opened opened(nics, fabric_settings("shm"));
  EXPECT_EQ(opened.rails.size(), 1u);
  std::vector<int> names;
  for (const auto& option : nics.options_set()) names.push_back(option.name);
  EXPECT_THAT(names, UnorderedElementsAre(kCudaApi, kSharedMemory));
}

TEST(FabricOptions, WithoutRdmaInTheDeviceThereIsNoRail) {
  expect_no_rail({.refused = {{kDeviceRdma, -FI_EOPNOTSUPP}}},
                 "this NIC, or its driver, has no RDMA (FI_OPT_EFA_USE_DEVICE_RDMA)");
}

TEST(FabricOptions, AnEmulatedWriteIsRefused) {
  expect_no_rail({.emulated_write = true}, "has no RDMA write (FI_OPT_EFA_EMULATED_WRITE)");
}

TEST(FabricOptions, ANicWhoseReadsAreEmulatedHasNone) {
  const FakeFabric nics({.emulated_read = true});
  const Opened opened(nics);
  ASSERT_EQ(opened.rails.size(), 2u);
  EXPECT_EQ(opened.rails[0]->caps().opcodes, opcode_bit(Opcode::kWriteWithImmediate));
  EXPECT_EQ(opened.rails[0]->caps().max_outstanding_reads, 0u);
}

TEST(FabricOptions, AReceiverMustBeAskedForEver) {
  expect_no_rail({.refused = {{kRnrRetry, -FI_EINVAL}}}, "FI_OPT_EFA_RNR_RETRY was refused");
}

TEST(FabricOptions, UnknownOptionsAreTolerated) {
  expect_rails({.refused = {{kCudaApi, -FI_ENOPROTOOPT}, {kSharedMemory, -FI_ENOPROTOOPT}},
                .emulated_code = -FI_ENOPROTOOPT},
               true);
}

TEST(FabricOptions, LinesAreInOrderWhereTheDeviceSaysSo) {
  expect_rails({}, true);
  expect_rails({.refused = {{kWriteInOrder, -FI_EOPNOTSUPP}}}, false);
}

}  // namespace
}  // namespace slime::fabric
