// The set-up of a link over real sockets: strangers, peers that are gone, time-outs.
#include <cstring>

#include "base/net/socket.h"
#include "link/setup/handshake.h"
#include "message/message_owner.h"
#include "test/engine/tcp_transfer.h"
#include "test/support/manual_clock.h"
#include "test/support/unused_address.h"

namespace slime::test {
namespace {

// A stranger at the listener: whatever it sends, it is turned away and the right peer gets in.
class StrangerTest : public ::testing::TestWithParam<int> {};

TEST_P(StrangerTest, IsTurnedAway) {
  Settings settings = rails(1);
  settings.handshake_timeout = 0.2;
  TcpHost from(settings), to(settings);
  Handle handle;
  auto listener = Listener::open(*to.devices, 0, &handle);
  ASSERT_TRUE(listener);
  AddressFields fields;
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
  auto connector = Connector::open(*from.devices, 0, handle);
  ASSERT_FALSE(connector);
  EXPECT_EQ(connector.error().status, Status::kInvalid);
  EXPECT_NE(connector.error().what.find("handle"), std::string::npos);
  EXPECT_FALSE(Connector::open(*from.devices, 7, handle));
}

TEST(Connector, ReportsAListenerThatIsGone) {
  TcpHost from(rails(1)), to(rails(1));
  Handle handle;
  { ASSERT_TRUE(Listener::open(*to.devices, 0, &handle)); }
  AddressFields fields;
  std::memcpy(&fields, handle.data(), sizeof fields);
  fields.address = SocketAddress::parse(unused_address())->pack();  // its own port may be anybody's
  std::memcpy(handle.data(), &fields, sizeof fields);
  auto connector = Connector::open(*from.devices, 0, handle);
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
  auto listener = Listener::open(*to.devices, 0, &handle);
  ASSERT_TRUE(listener);
  auto connector = Connector::open(*from.devices, 0, handle);
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

// The connection of a peer that knows the handle, and has heard the welcome.
Fd proven_peer(Listener& listener, const Handle& handle, TcpHost& host) {
  AddressFields fields;
  std::memcpy(&fields, handle.data(), sizeof fields);
  const auto address = SocketAddress::unpack(fields.address);
  auto peer = start_connect(*address);
  Error error;
  HandshakeMessage<Hello> hello;
  hello.value.nonce = fields.nonce;
  hello.value.words = MessageWords().pack();
  hello.value.rails = describe_rails(host.devices->device(0)->rails());
  HandshakeMessage<Welcome> welcome;
  const bool heard =
      peer && in_time([&] { return finish_connect(*peer, *address, &error) == Status::kOk; }) &&
      hello.send(*peer, &error) == Status::kOk && in_time([&] {
        auto accepted = listener.accept();
        EXPECT_TRUE(accepted) << accepted.error().what;
        return welcome.receive(*peer, &error) == Status::kOk;
      });
  EXPECT_TRUE(heard) << error.what;
  return heard ? std::move(*peer) : Fd();
}

// The listener's time is over while a peer, which has proven that it knows the handle, is in the
// middle of the handshake.
TEST(Listener, APeerThatHasProvenItselfIsNotNobody) {
  ManualClock clock;
  Settings settings = rails(1);
  settings.request_timeout = 1;
  TcpHost to(settings, clock);
  Handle handle;
  auto listener = Listener::open(*to.devices, 0, &handle);
  ASSERT_TRUE(listener);
  const auto nobody_yet = [&] {
    auto accepted = (*listener)->accept();
    EXPECT_TRUE(accepted) << accepted.error().what;
    return accepted && *accepted == nullptr;
  };
  ASSERT_TRUE(nobody_yet());  // its time begins
  Fd peer = proven_peer(**listener, handle, to);
  ASSERT_TRUE(peer);
  clock.pass(seconds_to_ns(settings.request_timeout));
  EXPECT_TRUE(nobody_yet());
  peer.reset();  // and of it one hears
  Error error;
  ASSERT_TRUE(in_time([&] {
    auto accepted = (*listener)->accept();
    if (!accepted) error = accepted.error();
    return !accepted;
  }));
  EXPECT_EQ(error.status, Status::kRemote) << error.what;
}

// As a network that flaps, or a firewall, resets the connection of a peer.
void reset_a_peer(Listener& listener, const Handle& handle, TcpHost& host) {
  Fd peer = proven_peer(listener, handle, host);
  ASSERT_TRUE(peer);
  abort_connection(std::move(peer));
}

TEST(Listener, APeerWhoseConnectionIsResetMayComeAgain) {
  TcpHost from(rails(1)), to(rails(1));
  Handle handle;
  auto listener = Listener::open(*to.devices, 0, &handle);
  ASSERT_TRUE(listener);
  ASSERT_NO_FATAL_FAILURE(reset_a_peer(**listener, handle, from));
  auto connector = Connector::open(*from.devices, 0, handle);
  ASSERT_TRUE(connector);
  std::unique_ptr<SendComm> sender;
  std::unique_ptr<RecvComm> receiver;
  ASSERT_TRUE(in_time([&] {
    auto accepted = (*listener)->accept();
    EXPECT_TRUE(accepted) << accepted.error().what;
    if (!accepted) return true;
    if (*accepted != nullptr) receiver = std::move(*accepted);
    if (!sender) sender = (*connector)->step().value();
    return sender && receiver;
  }));
}

TEST(Listener, APeerThatDoesNotComeAgainHasATimeLimit) {
  ManualClock clock;
  Settings settings = rails(1);
  TcpHost to(settings, clock);
  Handle handle;
  auto listener = Listener::open(*to.devices, 0, &handle);
  ASSERT_TRUE(listener);
  ASSERT_NO_FATAL_FAILURE(reset_a_peer(**listener, handle, to));
  std::string why;
  ASSERT_TRUE(in_time([&] {
    auto accepted = (*listener)->accept();
    if (!accepted) why = accepted.error().what;
    clock.pass(seconds_to_ns(settings.connect_timeout) / 1000);
    return !accepted;
  }));
  EXPECT_NE(why.find("it has not connected again within 60 s"), std::string::npos) << why;
}

TEST(Listener, GivesUpWhenNobodyComes) {
  Settings settings = rails(1);
  settings.request_timeout = 0.2;
  TcpHost to(settings);
  Handle handle;
  auto listener = Listener::open(*to.devices, 0, &handle);
  ASSERT_TRUE(listener);
  Error error;
  ASSERT_TRUE(in_time([&] {
    auto accepted = (*listener)->accept();
    if (!accepted) error = accepted.error();
    return !accepted;
  }));
  EXPECT_EQ(error.status, Status::kTimeout);
}

// As docker0 has, whose address is the same on every host.
TEST(TcpSetup, AnAddressOfThisHostThatAnotherHostOffersSaysSo) {
  Settings settings;
  settings.connect_timeout = 2;
  TcpHost from(settings), to(settings);
  for (const std::string host : {"hostB:7", "", "own"}) {
    Handle handle;
    (void)Listener::open(*to.devices, 0, &handle);  // and closed: nobody listens any more
    AddressFields fields;
    std::memcpy(&fields, handle.data(), sizeof fields);
    if (host != "own") {
      fields.name.fill('\0');
      std::ranges::copy(host, fields.name.begin());
    }
    std::memcpy(handle.data(), &fields, sizeof fields);
    auto connector = Connector::open(*from.devices, 0, handle);
    ASSERT_TRUE(connector) << connector.error().what;
    std::string why;
    ASSERT_TRUE(in_time([&] {
      auto step = (*connector)->step();
      if (!step) why = step.error().what;
      return !step;
    }));
    const bool named =
        why.find("it offers 127.0.0.1, which is this host's lo") != std::string::npos;
    EXPECT_EQ(named, host != "own") << why;
    EXPECT_EQ(why.find("hostB:7 (127.0.0.1:") != std::string::npos, host == "hostB:7") << why;
  }
}

}  // namespace
}  // namespace slime::test
