// The whole engine over real sockets: set-up, data, strangers, silence, the death of rails.

#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>

#include "base/net/socket.h"
#include "engine/receiver/recv_comm.h"
#include "engine/sender/send_comm.h"
#include "engine/setup/handshake.h"
#include "test/support/kept_warnings.h"
#include "test/support/manual_clock.h"
#include "test/support/tcp_link.h"
#include "test/support/unused_address.h"

namespace slime::test {
namespace {

Settings rails(int per_interface) {
  Settings settings;
  settings.rails_per_if = per_interface;
  settings.min_stripe = 4096;
  return settings;
}

// Buffers of both ends, registered.
struct Buffers {
  Buffers(TcpHost& from, TcpHost& to, size_t bytes) : source(bytes), target(bytes) {
    for (size_t i = 0; i < bytes; ++i) source[i] = static_cast<std::byte>(i * 7 + i / 251);
    auto s = from.fabric->device(0)->memory().acquire({source.data(), bytes});
    auto t = to.fabric->device(0)->memory().acquire({target.data(), bytes});
    EXPECT_TRUE(s && t);
    source_region = *s;
    target_region = *t;
  }
  std::vector<std::byte> source, target;
  const MemoryRegion *source_region = nullptr, *target_region = nullptr;
};

SendCommImpl& as_impl(SendComm& comm) { return static_cast<SendCommImpl&>(comm); }
RecvCommImpl& as_impl(RecvComm& comm) { return static_cast<RecvCommImpl&>(comm); }

struct Outcome {
  Status sent = Status::kAgain, received = Status::kAgain;
  size_t bytes = 0;
};

// One message, both ends driven in turn; `between` runs at every step.
Outcome transfer(
    TcpLink& link, Buffers& buffers, size_t bytes, const std::function<void()>& between = [] {}) {
  Request *send = nullptr, *receive = nullptr;
  Outcome outcome;
  const Receive wanted{buffers.target.data(), buffers.target.size(), 0, buffers.target_region};
  const auto drive = [](Comm& comm, Request* request, size_t* sizes, Status* status) {
    bool done = false;
    const Status tested = comm.test(request, &done, sizes);
    if (tested != Status::kOk) *status = tested;
    if (done) *status = Status::kOk;
  };
  const bool ended = in_time([&] {
    between();
    // An end that has nothing outstanding is still needed to settle the death of a rail.
    if (outcome.received == Status::kOk) (void)as_impl(*link.receiver).progress();
    if (outcome.sent == Status::kOk) (void)as_impl(*link.sender).progress();
    if (outcome.received == Status::kAgain) {
      if (receive != nullptr) drive(*link.receiver, receive, &outcome.bytes, &outcome.received);
      const Status posted =
          receive ? Status::kOk : link.receiver->irecv({&wanted, 1}, false, &receive);
      if (posted != Status::kOk) outcome.received = posted;
    }
    if (outcome.sent == Status::kAgain) {
      size_t size = 0;
      if (send != nullptr) drive(*link.sender, send, &size, &outcome.sent);
      const Status posted =
          send ? Status::kOk
               : link.sender->isend(buffers.source.data(), bytes, 0, buffers.source_region, &send);
      if (posted != Status::kOk) outcome.sent = posted;
    }
    return outcome.sent != Status::kAgain && outcome.received != Status::kAgain;
  });
  EXPECT_TRUE(ended) << "hangs";
  return outcome;
}

void expect_transfer(
    TcpLink& link, Buffers& buffers, size_t bytes, const std::function<void()>& between = [] {}) {
  std::fill(buffers.target.begin(), buffers.target.end(), std::byte{0xee});
  const Outcome outcome = transfer(link, buffers, bytes, between);
  ASSERT_EQ(outcome.sent, Status::kOk) << link.sender->failure().what;
  ASSERT_EQ(outcome.received, Status::kOk) << link.receiver->failure().what;
  EXPECT_EQ(outcome.bytes, bytes);
  EXPECT_EQ(std::memcmp(buffers.target.data(), buffers.source.data(), bytes), 0);
  for (size_t i = bytes; i < std::min(bytes + 64, buffers.target.size()); ++i) {
    ASSERT_EQ(buffers.target[i], std::byte{0xee}) << "written behind the message";
  }
}

TEST(TcpLink, CarriesEverySizeOverAnyNumberOfRails) {
  for (const auto& [mine, theirs] : {std::pair{1, 1}, {2, 2}, {4, 4}, {1, 3}, {3, 2}, {8, 1}}) {
    TcpHost from(rails(mine)), to(rails(theirs));
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
    Buffers buffers(from, to, 3 << 20);
    for (const size_t bytes : {0, 1, 127, 4096, 4097, 16384, 16385, 65536, 1000003, 3 << 20}) {
      ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, bytes)) << mine << " " << theirs;
    }
  }
}

TEST(TcpLink, SurvivesTheDeathOfAllRailsButOne) {
  TcpHost from(rails(4)), to(rails(4));
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 3 << 20);
  ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 3 << 20));
  for (int dead = 0; dead < 3; ++dead) {
    MortalRail* victim = (dead % 2 ? to : from).rails[static_cast<size_t>(dead)];
    int steps = 0;
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 3 << 20,
                                            [&] {
                                              victim->dead =
                                                  victim->dead ||
                                                  ++steps == 5;  // in the middle of the message
                                            }))
        << "rail " << dead;
  }
  ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 1000));
}

// A receiver that has its message is not called any more. The rail dies with the acknowledgement of
// a stripe, so that only this receiver can say what had arrived.
TEST(TcpLink, AnIdleReceiverTellsWhatHadArrivedOverADeadRail) {
  TcpHost from(rails(2)), to(rails(2), SteadyClock::instance(), true);
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  constexpr size_t kBytes = 64 << 10;
  Buffers buffers(from, to, kBytes);
  const Receive wanted{buffers.target.data(), kBytes, 0, buffers.target_region};
  Request *send = nullptr, *receive = nullptr;
  bool sent = false, received = false;
  ASSERT_TRUE(in_time([&] {
    if (receive == nullptr) (void)link.receiver->irecv({&wanted, 1}, false, &receive);
    EXPECT_EQ(link.receiver->progress(), Status::kOk);
    EXPECT_EQ(link.sender->isend(buffers.source.data(), kBytes, 0, buffers.source_region, &send),
              Status::kOk);
    return send != nullptr;
  }));
  ASSERT_EQ(link.sender->test(send, &sent, nullptr), Status::kOk);
  ASSERT_FALSE(sent) << "the receiver has not looked yet";
  ASSERT_TRUE(in_time([&] {
    EXPECT_EQ(link.receiver->test(receive, &received, nullptr), Status::kOk);
    return received || ::testing::Test::HasFailure();
  }));
  from.rails[static_cast<SendRequest&>(*send).rail[0]]->dead = true;
  ASSERT_TRUE(in_time([&] {
    EXPECT_EQ(link.sender->test(send, &sent, nullptr), Status::kOk);
    return sent || ::testing::Test::HasFailure();
  })) << "the sender waits for ever";
}

// A small message is done when its rail has taken it. Its sender then closes while one of the rails
// is dead, which may be that one.
TEST(TcpLink, ASmallMessageOutlivesItsRailAndItsSender) {
  for (const size_t victim : {0, 1}) {
    TcpHost from(rails(2), SteadyClock::instance(), true),
        to(rails(2), SteadyClock::instance(), true);
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
    constexpr size_t kBytes = 100;
    Buffers buffers(from, to, kBytes);
    Request *send = nullptr, *receive = nullptr;
    bool sent = false, received = false;
    ASSERT_TRUE(in_time([&] {
      const Status status =
          send ? link.sender->test(send, &sent, nullptr)
               : link.sender->isend(buffers.source.data(), kBytes, 0, buffers.source_region, &send);
      EXPECT_EQ(status, Status::kOk);
      return sent || ::testing::Test::HasFailure();
    }));
    from.rails[victim]->dead = true;
    link.sender.reset();
    const Receive wanted{buffers.target.data(), kBytes, 0, buffers.target_region};
    ASSERT_TRUE(in_time([&] {
      const Status status = receive ? link.receiver->test(receive, &received, nullptr)
                                    : link.receiver->irecv({&wanted, 1}, false, &receive);
      EXPECT_EQ(status, Status::kOk) << link.receiver->failure().what;
      return received || ::testing::Test::HasFailure();
    }));
    EXPECT_EQ(std::memcmp(buffers.target.data(), buffers.source.data(), kBytes), 0);
  }
}

bool all_up(TcpLink& link, size_t count) {
  return as_impl(*link.sender).link().rails().up_count() == count &&
         as_impl(*link.receiver).link().rails().up_count() == count;
}

// Both ends are driven until each has so many rails up.
void await_rails(TcpLink& link, size_t count) {
  ASSERT_TRUE(in_time([&] {
    EXPECT_EQ(link.sender->progress(), Status::kOk) << link.sender->failure().what;
    EXPECT_EQ(link.receiver->progress(), Status::kOk) << link.receiver->failure().what;
    return all_up(link, count) || ::testing::Test::HasFailure();
  }));
}

TEST(TcpLink, ADeadRailReturnsAndCarriesTraffic) {
  Settings settings = rails(2);
  settings.rail_retry = 0.01;
  TcpHost from(settings), to(settings);
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 3 << 20);
  for (int life = 1; life <= 6; ++life) {
    MortalRail* victim = (life % 2 ? to : from).rails[static_cast<size_t>(life % 2)];
    victim->dead = true;
    ASSERT_NO_FATAL_FAILURE(await_rails(link, 1));
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 1 << 20));
    victim->dead = false;
    ASSERT_NO_FATAL_FAILURE(await_rails(link, 2));
    EXPECT_GE(as_impl(*link.sender).link().rejoins(), static_cast<uint64_t>(life));
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 3 << 20));
  }
}

// One end has a port without a carrier. It says so, and the pause before a try is over as soon as
// the port has its carrier back: at the end that begins tries, and at the other, which tells it.
TEST(TcpLink, ARailWithoutACarrierIsLeftAndTakenBackAtOnce) {
  for (const bool active : {true, false}) {
    SCOPED_TRACE(active);
    Settings settings = rails(2);
    settings.rail_retry = 3600;
    TcpHost from(settings), to(settings);
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
    Buffers buffers(from, to, 3 << 20);
    MortalRail* rail = (active ? from : to).rails[1];
    rail->port = Carrier::kDown;
    ASSERT_NO_FATAL_FAILURE(await_rails(link, 1));
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 1 << 20));
    rail->port = Carrier::kUp;
    ASSERT_NO_FATAL_FAILURE(await_rails(link, 2));
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 3 << 20));
  }
}

// Ranks end one after the other, and their rails too: that is no death of a rail.
TEST(TcpLink, NoRailIsReportedDownWhereThePeerHasClosed) {
  const KeptWarnings down(" is down");
  for (const bool sender_closes : {true, false}) {
    TcpHost from(rails(3)), to(rails(3));
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
    if (sender_closes) {
      link.sender.reset();
    } else {
      link.receiver.reset();
    }
    Comm& other = sender_closes ? static_cast<Comm&>(*link.receiver) : *link.sender;
    EXPECT_TRUE(in_time([&] { return other.progress() == Status::kRemote; }));
  }
  EXPECT_EQ(down.lines(), std::vector<std::string>());
}

TEST(TcpLink, NoRailIsLeftWhereNoneHasACarrier) {
  const KeptWarnings warnings("no rail has a carrier");
  TcpHost from(rails(2)), to(rails(2));
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 3 << 20);
  for (MortalRail* rail : from.rails) rail->port = Carrier::kDown;
  ASSERT_TRUE(in_time([&] {
    expect_transfer(link, buffers, 1 << 20);
    return !warnings.lines().empty() || ::testing::Test::HasFailure();
  }));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end) {
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, 1 << 20));
  }
  EXPECT_TRUE(all_up(link, 2));
  EXPECT_EQ(warnings.lines().size(), 1u) << "said again and again";
}

TEST(TcpLink, TheErrorNamesAPortWithoutACarrier) {
  TcpHost from(rails(1)), to(rails(1));
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 4096);
  to.rails[0]->port = Carrier::kDown;
  to.rails[0]->dead = true;
  EXPECT_EQ(transfer(link, buffers, 4096).received, Status::kRemote);
  const std::string& why = link.receiver->failure().what;
  EXPECT_NE(why.find("lo has no carrier"), std::string::npos) << why;
  EXPECT_EQ(link.sender->failure().what.find("carrier"), std::string::npos);
}

TEST(TcpLink, FailsAtBothEndsWithItsLastRail) {
  TcpHost from(rails(2)), to(rails(2));
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 3 << 20);
  for (MortalRail* rail : from.rails) rail->dead = true;
  const Outcome outcome = transfer(link, buffers, 3 << 20);
  EXPECT_EQ(outcome.sent, Status::kRemote);
  EXPECT_EQ(outcome.received, Status::kRemote);
  EXPECT_NE(link.receiver->failure().what.find("last rail"), std::string::npos);
  EXPECT_NE(link.receiver->failure().what.find(link.receiver->peer_name()), std::string::npos);
}

TEST(TcpLink, APeerThatGoesAwayIsARemoteErrorThatNamesIt) {
  TcpHost from(rails(1)), to(rails(1));
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 4096);
  const Receive wanted{buffers.target.data(), 4096, 0, buffers.target_region};
  Request* receive = nullptr;
  ASSERT_EQ(link.receiver->irecv({&wanted, 1}, false, &receive), Status::kOk);
  const std::string name = link.receiver->peer_name();
  link.sender.reset();
  Status status = Status::kOk;
  ASSERT_TRUE(in_time([&] {
    bool done = false;
    status = link.receiver->test(receive, &done, nullptr);
    return status != Status::kOk;
  }));
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_NE(link.receiver->failure().what.find(name), std::string::npos);
  EXPECT_EQ(link.receiver->irecv({&wanted, 1}, false, &receive), Status::kRemote) << "not sticky";
}

TEST(TcpLink, ASilentPeerIsATimeOutThatSaysWhatWasWaitedFor) {
  ManualClock clock;
  const Settings settings = rails(1);
  TcpHost from(settings, clock), to(settings, clock);
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 1 << 20);
  Request* request = nullptr;
  Status status = Status::kOk;
  ASSERT_TRUE(in_time([&] {  // the receiver never posts
    clock.pass(seconds_to_ns(settings.request_timeout) / 16);
    status = link.sender->isend(buffers.source.data(), 1 << 20, 0, buffers.source_region, &request);
    return status != Status::kOk;
  }));
  EXPECT_EQ(status, Status::kTimeout);
  EXPECT_NE(link.sender->failure().what.find("receiver"), std::string::npos);
}

TEST(TcpLink, ASendThatIsTooLongNamesBothSizes) {
  TcpHost from(rails(1)), to(rails(1));
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, 1 << 20);
  const Receive small{buffers.target.data(), 50'000, 0, buffers.target_region};
  Request *receive = nullptr, *send = nullptr;
  ASSERT_EQ(link.receiver->irecv({&small, 1}, false, &receive), Status::kOk);
  Status status = Status::kOk;
  ASSERT_TRUE(in_time([&] {
    bool done = false;
    (void)link.receiver->test(receive, &done, nullptr);
    status = link.sender->isend(buffers.source.data(), 60'000, 0, buffers.source_region, &send);
    return status != Status::kOk;
  }));
  EXPECT_EQ(status, Status::kInvalid);
  EXPECT_NE(link.sender->failure().what.find("60000"), std::string::npos);
  EXPECT_NE(link.sender->failure().what.find("50000"), std::string::npos);
}

// A stranger at the listener: whatever it sends, it is turned away and the right peer gets in.
class StrangerTest : public ::testing::TestWithParam<int> {};

TEST_P(StrangerTest, IsTurnedAway) {
  Settings settings = rails(1);
  settings.handshake_timeout = 0.2;
  TcpHost from(settings), to(settings);
  Handle handle;
  auto listener = Listener::open(*to.fabric, 0, &handle);
  ASSERT_TRUE(listener);
  HandleFields fields;
  std::memcpy(&fields, handle.data(), sizeof fields);
  auto stranger = start_connect(*SocketAddress::unpack(fields.address));
  ASSERT_TRUE(stranger);
  Error error;
  ASSERT_TRUE(in_time([&] {
    return finish_connect(*stranger, *SocketAddress::unpack(fields.address), &error) == Status::kOk;
  }));
  HandshakeMessage<Hello> hello;
  if (GetParam() == 1) std::memset(static_cast<void*>(&hello.value), 'G', sizeof hello.value);
  if (GetParam() == 3) hello.value.preamble.version = 99;
  // 0 stays silent, 2 is a right hello but for the nonce.
  if (GetParam() > 0) {
    ASSERT_EQ(hello.send(*stranger, &error), Status::kOk);
  }
  // It is dropped: the stranger sees the end of its connection.
  HandshakeMessage<Welcome> welcome;
  ASSERT_TRUE(in_time([&] {
    auto accepted = (*listener)->accept();
    EXPECT_TRUE(accepted) << accepted.error().what;
    EXPECT_TRUE(!accepted || *accepted == nullptr);
    const Status status = welcome.receive(*stranger, &error);
    return status != Status::kAgain;
  }));
  EXPECT_FALSE(welcome.begun()) << "a stranger was answered";
  TcpLink link;
  EXPECT_NO_FATAL_FAILURE(link.connect(from, to));
}
INSTANTIATE_TEST_SUITE_P(Strangers, StrangerTest, ::testing::Values(0, 1, 2, 3));

TEST(Connector, RefusesAHandleThatIsNone) {
  TcpHost from(rails(1));
  Handle handle = {};
  auto connector = Connector::open(*from.fabric, 0, handle);
  ASSERT_FALSE(connector);
  EXPECT_EQ(connector.error().status, Status::kInvalid);
  EXPECT_NE(connector.error().what.find("handle"), std::string::npos);
  EXPECT_FALSE(Connector::open(*from.fabric, 7, handle));
}

TEST(Connector, ReportsAListenerThatIsGone) {
  TcpHost from(rails(1)), to(rails(1));
  Handle handle;
  { ASSERT_TRUE(Listener::open(*to.fabric, 0, &handle)); }
  HandleFields fields;
  std::memcpy(&fields, handle.data(), sizeof fields);
  fields.address = SocketAddress::parse(unused_address())->pack();  // its own port may be anybody's
  std::memcpy(handle.data(), &fields, sizeof fields);
  auto connector = Connector::open(*from.fabric, 0, handle);
  ASSERT_TRUE(connector) << connector.error().what;
  Error error;
  ASSERT_TRUE(in_time([&] {
    auto step = (*connector)->step();
    if (!step) error = step.error();
    return !step;
  }));
  EXPECT_EQ(error.status, Status::kRemote) << error.what;
}

TEST(Connector, GivesUpOnAPeerThatNeverAccepts) {
  Settings settings = rails(1);
  settings.request_timeout = 0.2;
  TcpHost from(settings), to(settings);
  Handle handle;
  auto listener = Listener::open(*to.fabric, 0, &handle);
  ASSERT_TRUE(listener);
  auto connector = Connector::open(*from.fabric, 0, handle);
  ASSERT_TRUE(connector);
  Error error;
  ASSERT_TRUE(in_time([&] {
    auto step = (*connector)->step();
    if (!step) error = step.error();
    return !step;
  }));
  EXPECT_EQ(error.status, Status::kTimeout);
  EXPECT_NE(error.what.find("accept"), std::string::npos) << error.what;
}

// The listener's time is over while a peer, which has proven that it knows the handle, is in the
// middle of the handshake.
TEST(Listener, APeerThatHasProvenItselfIsNotNobody) {
  ManualClock clock;
  Settings settings = rails(1);
  settings.request_timeout = 1;
  TcpHost to(settings, clock);
  Handle handle;
  auto listener = Listener::open(*to.fabric, 0, &handle);
  ASSERT_TRUE(listener);
  const auto nobody_yet = [&] {
    auto accepted = (*listener)->accept();
    EXPECT_TRUE(accepted) << accepted.error().what;
    return accepted && *accepted == nullptr;
  };
  ASSERT_TRUE(nobody_yet());  // its time begins
  HandleFields fields;
  std::memcpy(&fields, handle.data(), sizeof fields);
  const auto address = SocketAddress::unpack(fields.address);
  auto peer = start_connect(*address);
  ASSERT_TRUE(peer);
  Error error;
  ASSERT_TRUE(in_time([&] { return finish_connect(*peer, *address, &error) == Status::kOk; }));
  HandshakeMessage<Hello> hello;
  hello.value.nonce = fields.nonce;
  hello.value.rails = describe_rails(to.fabric->device(0)->rails());
  ASSERT_EQ(hello.send(*peer, &error), Status::kOk);
  HandshakeMessage<Welcome> welcome;
  ASSERT_TRUE(in_time([&] {
    EXPECT_TRUE(nobody_yet());
    return welcome.receive(*peer, &error) == Status::kOk;
  }));
  clock.pass(seconds_to_ns(settings.request_timeout));
  EXPECT_TRUE(nobody_yet());
  peer->reset();  // and of it one hears
  ASSERT_TRUE(in_time([&] {
    auto accepted = (*listener)->accept();
    if (!accepted) error = accepted.error();
    return !accepted;
  }));
  EXPECT_EQ(error.status, Status::kRemote) << error.what;
}

TEST(Listener, GivesUpWhenNobodyComes) {
  Settings settings = rails(1);
  settings.request_timeout = 0.2;
  TcpHost to(settings);
  Handle handle;
  auto listener = Listener::open(*to.fabric, 0, &handle);
  ASSERT_TRUE(listener);
  Error error;
  ASSERT_TRUE(in_time([&] {
    auto accepted = (*listener)->accept();
    if (!accepted) error = accepted.error();
    return !accepted;
  }));
  EXPECT_EQ(error.status, Status::kTimeout);
}

// An eager message needs no receive. The receiver's processor copies it to its place, which device
// memory may be; a communicator that takes host memory only says so.
TEST(TcpLink, NoEagerMessagesIntoDeviceMemory) {
  for (const bool host_memory : {false, true}) {
    TcpHost from((Settings())), to(Settings(), SteadyClock::instance(), false, MemoryKind::kCuda);
    ASSERT_TRUE(to.fabric->device(0)->properties().takes(MemoryKind::kCuda));
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to, {}, {.host_memory = host_memory}));
    std::vector<std::byte> data(64, std::byte{7});
    const MemoryRegion* const region =
        *from.fabric->device(0)->memory().acquire({data.data(), data.size()});
    Request* send = nullptr;
    for (int i = 0; i < 1000 && send == nullptr; ++i) {
      ASSERT_EQ(link.sender->isend(data.data(), data.size(), 0, region, &send), Status::kOk);
      ASSERT_EQ(link.receiver->progress(), Status::kOk);
    }
    EXPECT_EQ(send != nullptr, host_memory);
  }
}

}  // namespace
}  // namespace slime::test
