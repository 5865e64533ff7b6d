// A link over real tcp rails whose owner asks it to live on without them: connections are cut under
// load, those beside the rails too, and the peer may have forgotten the link. SLIME_CUTS=n cuts n
// times.
#include <algorithm>
#include <cstdio>

#include "link/setup/resume.h"
#include "link/setup/setup.h"
#include "settings/times.h"
#include "test/engine/tcp_transfer.h"
#include "test/support/environment.h"
#include "test/support/load/engine_pair.h"
#include "test/support/manual_clock.h"
#include "test/support/own_sockets.h"
#include "test/support/quiet_transfers.h"
#include "test/support/transfer_end.h"

namespace slime::test {
namespace {

constexpr uint64_t kPlace = 64 << 10;
constexpr std::byte kNobodys{0x55};

class TransferOwner final : public LinkOwner {
 public:
  OwnerWords offer() const override { return {}; }
  Result<OwnerWords> answer(const OwnerWords&) const override { return OwnerWords{}; }
  bool accepts(const OwnerWords&) const override { return true; }
  LinkMemoryBytes memory_bytes(const OwnerWords&, bool, size_t channels) const override {
    return TransferEnd::memory_bytes(channels);
  }
  double lifeline_seconds(const OwnerWords&) const override { return 60; }
  bool has_link(const Nonce& id) const override { return link != nullptr && id == link_id; }
  void resume(const Nonce&, std::unique_ptr<LifelineStream> stream) override {
    link->take_lifeline(std::move(stream));
    ++resumed;
  }

  Link* link = nullptr;
  Nonce link_id = {};
  uint64_t resumed = 0;
};

struct Side {
  explicit Side(const Settings& settings)
      : host(settings), source(kPlace * TransferEnd::kSlots), target(source.size(), kNobodys) {
    auto& memory = host.devices->device(0)->memory();
    source_region = value_of(memory.acquire({source.data(), source.size()}));
    target_region = value_of(memory.acquire({target.data(), target.size()}));
  }

  TcpHost host;
  std::vector<std::byte> source, target;
  const MemoryRegion *source_region, *target_region;
  TransferOwner owner;
  std::unique_ptr<TransferEnd> end;
  std::unique_ptr<QuietTransfers> quiet;
  uint64_t quiet_begun = 0;
  std::array<uint32_t, TransferEnd::kSlots> looked_at = {};  // transfers, by the peer
  uint64_t transfers = 0;
};

class TcpLifelineTest : public ::testing::Test {
 protected:
  static Settings settings(int rail_count) {
    Settings made = rails(rail_count);
    made.rail_retry = 0.002;
    return made;
  }

  void connect(int rail_count) {
    from_ = std::make_unique<Side>(settings(rail_count));
    to_ = std::make_unique<Side>(settings(rail_count));
    listener_ = value_of(LinkListener::open(*to_->host.devices, 0, to_->owner, kNoTrafficClass));
    auto connector = value_of(LinkConnector::open(*from_->host.devices, 0, listener_->address(),
                                                  from_->owner, kNoTrafficClass));
    std::unique_ptr<LinkParts> active, passive;
    ASSERT_TRUE(in_time([&] {
      if (!passive) passive = value_of(listener_->accept());
      if (!active) active = value_of(connector->step());
      return active && passive;
    }));
    EXPECT_EQ(active->id, passive->id);
    to_->owner.link_id = passive->id;
    for (auto [side, parts] : {std::pair{from_.get(), &active}, std::pair{to_.get(), &passive}}) {
      side->end = std::make_unique<TransferEnd>(*side->host.devices, *side->host.devices->device(0),
                                                std::move(**parts));
    }
    to_->owner.link = &to_->end->link();
    for (auto [side, peer] : {std::pair{from_.get(), to_.get()}, {to_.get(), from_.get()}}) {
      side->quiet = std::make_unique<QuietTransfers>(*side->host.devices->device(0),
                                                     *peer->host.devices->device(0));
      side->quiet->serve(side->end->link());
    }
  }

  // One turn of everything; `load`: new transfers begin where the last one is over.
  Status turn(bool load) {
    EXPECT_TRUE(listener_->accept());
    for (Side* side : {from_.get(), to_.get()}) {
      Side& peer = side == from_.get() ? *to_ : *from_;
      for (uint32_t slot = 0; slot < TransferEnd::kSlots; ++slot) look(*side, peer, slot, load);
      if (load) begin_quietly(*side);
      if (const Status status = side->end->progress(); status != Status::kOk) return status;
      EXPECT_EQ(side->quiet->progress(), "");
      EXPECT_EQ(side->end->violation(), "");
    }
    return Status::kOk;
  }

  // Reads and silent writes by turns; every tenth is refused.
  static void begin_quietly(Side& from) {
    for (uint32_t slot = 0; slot < QuietTransfers::kSlots; ++slot) {
      if (!from.quiet->idle(slot)) continue;
      const uint64_t number = from.quiet_begun++;
      from.quiet->begin(slot, number % 2 == 0 ? Opcode::kRead : Opcode::kWrite,
                        number * 37 % (QuietTransfers::kMostBytes + 1), number, number % 10 == 0);
    }
  }

  void look(Side& from, Side& to, uint32_t slot, bool load) {
    std::byte* const source = &from.source[slot * kPlace];
    std::byte* const target = &to.target[slot * kPlace];
    if (from.looked_at[slot] != to.end->uses_received(slot)) {
      ++from.looked_at[slot];
      EXPECT_EQ(std::memcmp(source, target, kPlace), 0);
      std::fill_n(target, kPlace, kNobodys);
    }
    if (!load || !from.end->sent(slot) || from.looked_at[slot] != from.end->uses_sent(slot)) return;
    const auto value = static_cast<std::byte>(++from.transfers * 7 + slot);
    std::fill_n(source, kPlace, value == kNobodys ? std::byte{1} : value);
    from.end->send(slot, source, from.source_region, kPlace, to.target_region, target);
  }

  bool idle() const {
    for (const Side* side : {from_.get(), to_.get()}) {
      if (!side->quiet->all_idle()) return false;
      for (uint32_t slot = 0; slot < TransferEnd::kSlots; ++slot) {
        if (!side->end->sent(slot) || side->looked_at[slot] != side->end->uses_sent(slot))
          return false;
      }
    }
    return true;
  }
  size_t up() const {
    return std::min(from_->end->link().rails().up_count(), to_->end->link().rails().up_count());
  }
  void expect_no_failure() {
    for (const Side* side : {from_.get(), to_.get()}) {
      EXPECT_EQ(side->end->link().status(), Status::kOk)
          << side->end->link().context().failure().what;
    }
  }
  void expect_quiet_memory() {
    for (const Side* side : {from_.get(), to_.get()}) {
      EXPECT_TRUE(std::ranges::all_of(side->target, [](std::byte b) { return b == kNobodys; }));
      EXPECT_FALSE(side->quiet->written_late());
    }
  }

  std::unique_ptr<Side> from_, to_;
  std::unique_ptr<LinkListener> listener_;
};

void cut_all() {
  for (const int fd : own_sockets()) ::shutdown(fd, SHUT_RDWR);
}

// All connections of the process are cut, as soon as a rail is up again and some transfers, or some
// reads and silent writes, are over.
TEST_F(TcpLifelineTest, OneRailIsCutUnderLoadAgainAndAgain) {
  connect(1);
  const Effort effort("SLIME_CUTS", 200);
  const auto over = [&](bool quiet) {
    uint64_t count = 0;
    for (const Side* side : {from_.get(), to_.get()}) {
      count += quiet ? side->quiet->moved() + side->quiet->refused() : side->transfers;
    }
    return count;
  };
  uint64_t cuts = 0;
  while (effort.goes_on(cuts)) {
    const bool quiet = cuts % 2 != 0;
    const uint64_t wanted = over(quiet) + cuts % 5;
    ASSERT_TRUE(
        in_time([&] { return turn(true) != Status::kOk || (up() > 0 && over(quiet) > wanted); }));
    expect_no_failure();
    if (HasFailure()) return;
    cut_all();
    ++cuts;
  }
  ASSERT_TRUE(in_time([&] { return turn(false) != Status::kOk || idle(); }));
  expect_no_failure();
  expect_quiet_memory();
  EXPECT_GE(to_->owner.resumed, cuts / 2);
  EXPECT_GE(from_->end->link().rejoins(), cuts / 2);
  const uint64_t refused = from_->quiet->refused() + to_->quiet->refused();
  EXPECT_GE(over(true), cuts / 2);
  EXPECT_GT(refused, 0U);
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(
      "%llu cuts, %llu resumed, %llu transfers, %llu reads and silent writes, %llu refused\n",
      number(cuts), number(to_->owner.resumed), number(over(false)), number(over(true)),
      number(refused));
}

TEST_F(TcpLifelineTest, AllRailsReturn) {
  connect(3);
  for (int i = 0; i < 3; ++i) {
    cut_all();
    ASSERT_TRUE(in_time([&] { return turn(true) != Status::kOk || up() < 3; }));
    ASSERT_TRUE(in_time([&] { return turn(true) != Status::kOk || up() == 3; }));
    expect_no_failure();
    if (HasFailure()) return;
  }
  ASSERT_TRUE(in_time([&] { return turn(false) != Status::kOk || idle(); }));
  expect_no_failure();
  expect_quiet_memory();
  EXPECT_GE(from_->end->link().rejoins(), 9u);
  EXPECT_GE(to_->owner.resumed, 1u);
}

TEST_F(TcpLifelineTest, APeerThatHasForgottenTheLinkEndsItAtOnce) {
  connect(1);
  to_->owner.link = nullptr;
  cut_all();
  ASSERT_TRUE(in_time([&] { return turn(true) != Status::kOk; }));
  const Link& link = from_->end->link();
  EXPECT_NE(link.context().failure().what.find("does not have this link any more"),
            std::string::npos)
      << link.context().failure().what;
}

TEST_F(TcpLifelineTest, APeerThatIsGoneEndsTheLink) {
  connect(1);
  ASSERT_TRUE(in_time([&] { return turn(true) != Status::kOk || to_->transfers > 10; }));
  to_->quiet->end();
  to_->end.reset();
  listener_.reset();
  Link& link = from_->end->link();
  ASSERT_TRUE(in_time([&] { return from_->end->progress() != Status::kOk; }));
  EXPECT_NE(link.context().failure().what.find("the peer is gone"), std::string::npos)
      << link.context().failure().what;
}

// Says one control work.
class OneWork final : public LifelineStream {
 public:
  explicit OneWork(ControlOp op) { header_.immediate = control_immediate(op, 0); }
  void send(const LifelineHeader&, std::span<const std::byte>) override {}
  Status receive(LifelineHeader* header, std::span<const std::byte>* payload, Error*) override {
    if (std::exchange(said_, true)) return Status::kAgain;
    *header = header_;
    *payload = {};
    return Status::kOk;
  }

 private:
  LifelineHeader header_{.kind = LifelineHeader::kControl};
  bool said_ = false;
};

TEST_F(TcpLifelineTest, OnlyWorksAboutRailsMayComeBesideThem) {
  for (const ControlOp op : {ControlOp::kJoined, ControlOp::kProbe, ControlOp::kAnswer}) {
    connect(1);
    Link& link = to_->end->link();
    link.take_lifeline(std::make_unique<OneWork>(op));
    for (int turn = 0; turn < 2; ++turn) (void)to_->end->progress();
    EXPECT_EQ(link.status(), op == ControlOp::kJoined ? Status::kOk : Status::kRemote);
  }
}

TEST(LifelineDialer, PausesAfterAnExchangeThatWasBroken) {
  ManualClock clock;
  const Fd listener = std::move(*listen_on(*SocketAddress::parse("127.0.0.1:0")));
  const auto dialer = make_lifeline_dialer(clock, *local_address(listener), {}, {});
  std::unique_ptr<LifelineStream> stream;
  Error error;
  for (int turn = 0; turn < 4; ++turn) {
    const uint64_t began_ns = clock.now_ns();
    Accepted caller;  // ends with the turn, unanswered
    ASSERT_TRUE(in_time([&] {
      clock.pass(times::kMillisecond);
      EXPECT_EQ(dialer->dial(&stream, &error), Status::kAgain) << error.what;
      return accept_one(listener, &caller, &error) == Status::kOk;
    }));
    EXPECT_GE(clock.now_ns() - began_ns, turn == 0 ? 0 : times::kRailRedial);
  }
}

}  // namespace
}  // namespace slime::test
