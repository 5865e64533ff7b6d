// Engines that take another's name, or are not what they say.
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "peer/engine/engine.h"
#include "peer/owner.h"
#include "test/peer/test_engine.h"

namespace slime {
namespace {

Result<EngineAddress> address_of(TestEngine& engine) {
  const auto blob = engine.address();
  return unpack_engine(std::as_bytes(std::span(blob)));
}

// A program that has the address of `target` and connects to it as somebody else.
class Impostor {
 public:
  Impostor() {
    Settings settings;
    settings.ifname = "lo";
    auto devices = Devices::open(settings, SteadyClock::instance());
    EXPECT_TRUE(devices) << devices.error().what;
    devices_ = std::move(*devices);
  }
  // What became of it.
  Result<std::unique_ptr<LinkParts>> connect(const EngineAddress& target, const EngineId& name,
                                             const Nonce& proof) {
    const PollerLists none(1);
    const EngineOwner owner(name, proof, {}, none, EngineOwner::Wanted{target.engine, 1});
    auto connector = LinkConnector::open(*devices_, 0, target.listener, owner, kNoTrafficClass);
    if (!connector) return fail(std::move(connector.error()));
    const uint64_t end_ns = steady_now_ns() + 60'000'000'000;
    while (steady_now_ns() < end_ns) {
      auto parts = (*connector)->step();
      if (!parts || *parts != nullptr) return parts;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return fail(Status::kTimeout, "the listener does not answer");
  }

 private:
  std::unique_ptr<Devices> devices_;
};

TEST(Impostor, CannotTakeTheNameOfAnEngineThatIsKnown) {
  std::vector<char> from(100, 'f'), to(100, 't');
  TestEngine target, known;
  const slime_region mine = known.add(from), theirs = target.add(to);
  const slime_peer peer = known.know(target);
  const slime_assignment all = {mine, known.remote(peer, target.blob_of(theirs)), 0, 0, 100};
  ASSERT_EQ(known.run(peer, SLIME_WRITE, all).status, SLIME_OK);
  const auto listener = address_of(target), name = address_of(known);
  ASSERT_TRUE(listener && name);
  const auto refused = Impostor().connect(*listener, name->engine, Nonce{});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("not the engine whose name it takes"), std::string::npos)
      << refused.error().what;
  const slime_result result = known.run(peer, SLIME_READ, all);
  EXPECT_EQ(result.status, SLIME_OK) << result.text;
}

// It came first. When the program learns the address of the real one, its link ends.
TEST(Impostor, LosesItsLinkWhenTheProgramKnowsBetter) {
  std::vector<char> from(100, 'f'), to(100, 't');
  TestEngine target, real;
  const auto listener = address_of(target), name = address_of(real);
  ASSERT_TRUE(listener && name);
  Impostor impostor;
  const auto taken = impostor.connect(*listener, name->engine, Nonce{});
  ASSERT_TRUE(taken) << taken.error().what;
  const slime_peer peer = target.know(real);
  EXPECT_EQ(target.info(peer).state, SLIME_PEER_NEW);
  const slime_region mine = target.add(from);
  const slime_remote remote = target.remote(peer, real.blob_of(real.add(to)));
  EXPECT_EQ(target.run(peer, SLIME_WRITE, {mine, remote, 0, 0, 100}).status, SLIME_OK);
  real.close();  // ThreadSanitizer sees the end of its thread, and not what sockets carry
  EXPECT_EQ(to, from);
}

TEST(Impostor, MustBeAnEngineAndSayWhichOne) {
  TestEngine target;
  const auto listener = address_of(target);
  ASSERT_TRUE(listener);
  const auto nobody = Impostor().connect(*listener, EngineId{}, Nonce{});
  ASSERT_FALSE(nobody);
  EXPECT_NE(nobody.error().what.find("does not say what it is"), std::string::npos)
      << nobody.error().what;
}

}  // namespace
}  // namespace slime
