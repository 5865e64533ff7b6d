// Which providers of which version are used, and for what.
#include "transports/fabric/domain.h"

#include "test/fabric/support.h"
#include "test/support/kept_warnings.h"

namespace slime::fabric {
namespace {

std::string refusal_of(const char* provider, uint32_t version) {
  const auto traits = traits_of(provider, version);
  return traits ? "" : traits.error().what;
}

TEST(FabricProvider, EfaBefore119IsRefused) {
  EXPECT_EQ(
      refusal_of("efa", FI_VERSION(1, 18)),
      "libfabric: provider efa of version 1.18 is not used: it sends RDMA writes as messages, "
      "or (1.18.0) registers no memory for them; install libfabric 1.19 or later");
  EXPECT_EQ(refusal_of("efa", FI_VERSION(1, 19)), "");
}

TEST(FabricProvider, TcpNetAndVerbsBefore118AreRefused) {
  for (const char* const name : {"tcp", "tcp;ofi_rxm", "net", "net;ofi_rxm", "verbs;ofi_rxm"}) {
    EXPECT_THAT(refusal_of(name, FI_VERSION(1, 17)),
                HasSubstr("it does not say how many bytes have arrived (fi_cq(3), \"len\"); "
                          "install libfabric 1.18 or later"));
    EXPECT_EQ(refusal_of(name, FI_VERSION(1, 18)), "");
  }
}

TEST(FabricProvider, OnlyEfaFrom26OnHoldsDoorbellsBack) {
  EXPECT_FALSE(traits_of("efa", FI_VERSION(1, 22))->more);
  EXPECT_FALSE(traits_of("efa", FI_VERSION(2, 5))->more);
  EXPECT_TRUE(traits_of("efa", FI_VERSION(2, 6))->more);
  EXPECT_FALSE(traits_of("shm", FI_VERSION(2, 6))->more);
}

TEST(FabricProvider, OnlyEfaHasReadsAndFrom25OnRights) {
  for (const uint32_t version : {FI_VERSION(1, 19), FI_VERSION(2, 4), FI_VERSION(2, 5)}) {
    EXPECT_TRUE(traits_of("efa", version)->reads);
    EXPECT_EQ(traits_of("efa", version)->keeps_rights, version >= FI_VERSION(2, 5));
  }
  for (const char* const other : {"shm", "tcp", "tcp;ofi_rxm", "verbs;ofi_rxm"}) {
    EXPECT_FALSE(traits_of(other, FI_VERSION(2, 6))->reads) << other;
  }
}

TEST(FabricProvider, WhoMovesTheDataDecidesWhatACompletionIsAskedFor) {
  for (const char* const nic : {"efa", "verbs", "verbs;ofi_rxm"}) {
    EXPECT_TRUE(traits_of(nic, FI_VERSION(2, 0))->in_hardware) << nic;
    EXPECT_FALSE(traits_of(nic, FI_VERSION(2, 0))->delivery_complete) << nic;
  }
  for (const char* const software : {"tcp", "udp;ofi_rxd", "sockets"}) {
    EXPECT_FALSE(traits_of(software, FI_VERSION(2, 0))->in_hardware) << software;
    EXPECT_TRUE(traits_of(software, FI_VERSION(2, 0))->delivery_complete) << software;
  }
  for (const char* const other : {"verbs;ofi_rxm", "tcp", "shm"}) {
    EXPECT_FALSE(traits_of(other, FI_VERSION(2, 0))->device_memory) << other;
  }
  EXPECT_TRUE(traits_of("efa", FI_VERSION(2, 0))->device_memory);
  EXPECT_TRUE(traits_of("shm", FI_VERSION(1, 17))->reads_peer_memory);
  EXPECT_TRUE(traits_of("shm", FI_VERSION(1, 17))->refuses_silently);
}

TEST(FabricProvider, AProviderWithAKnownFaultIsWarnedOf) {
  for (const uint32_t version : {FI_VERSION(2, 6), FI_VERSION(2, 7)}) {
    const test::KeptWarnings warnings("the process may crash");
    const FakeFabric nics({.version = version, .provider = "verbs;ofi_rxm"});
    const Opened opened(nics, fabric_settings("verbs;ofi_rxm"));
    EXPECT_EQ(opened.rails.size(), 2u);
    EXPECT_EQ(warnings.lines().size(), version == FI_VERSION(2, 6) ? 2u : 0u);
  }
}

TEST(FabricProvider, AnOldLibraryIsNotedInsteadOfARail) {
  const FakeFabric nics({.version = FI_VERSION(1, 17)});
  const Opened opened(nics);
  EXPECT_THAT(opened.rails, IsEmpty());
  EXPECT_THAT(opened.notes, ElementsAre(HasSubstr("provider efa of version 1.17 is not used")));
}

}  // namespace
}  // namespace slime::fabric
