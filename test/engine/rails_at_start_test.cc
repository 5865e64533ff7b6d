// A link starts with the rails that connect at both ends, and the others join it later.
#include <algorithm>
#include <cstring>

#include "link/setup/handshake.h"
#include "test/engine/tcp_transfer.h"
#include "test/support/kept_warnings.h"

namespace slime::test {
namespace {

constexpr size_t kBytes = 1 << 20;

Settings quick(int count) {
  Settings settings = rails(count);
  settings.rail_retry = 0.05;
  return settings;
}

// Of two rails, and gives up soon.
Settings hurried() {
  Settings settings = quick(2);
  settings.connect_timeout = 2;
  return settings;
}

// Moves both ends until so many rails are up at both.
bool await_rails(TcpLink& link, size_t count) {
  return in_time([&] {
    EXPECT_EQ(as_impl(*link.sender).progress(), Status::kOk) << link.sender->failure().what;
    EXPECT_EQ(as_impl(*link.receiver).progress(), Status::kOk) << link.receiver->failure().what;
    return ::testing::Test::HasFailure() ||
           (as_impl(*link.sender).link().rails().up_count() == count &&
            as_impl(*link.receiver).link().rails().up_count() == count);
  });
}

// The errors of both ends.
struct Failures {
  std::string sender, receiver;
};
Failures fail_to_connect(TcpHost& from, TcpHost& to) {
  Failures why;
  Handle handle;
  auto listener = Listener::open(*to.devices, 0, &handle);
  EXPECT_TRUE(listener) << listener.error().what;
  auto connector = Connector::open(*from.devices, 0, handle);
  EXPECT_TRUE(connector) << connector.error().what;
  EXPECT_TRUE(in_time([&] {
    if (why.receiver.empty()) {
      auto accepted = (*listener)->accept();
      if (!accepted) why.receiver = accepted.error().what;
    }
    if (why.sender.empty()) {
      auto step = (*connector)->step();
      if (!step) why.sender = step.error().what;
    }
    return !why.sender.empty() && !why.receiver.empty();
  }));
  return why;
}

TEST(RailsAtStart, OneThatFailsAtOneEndJoinsLater) {
  for (const bool at_sender : {true, false}) {
    SCOPED_TRACE(at_sender);
    const KeptWarnings warnings("the link starts with");
    TcpHost from(quick(3)), to(quick(3));
    MortalRail* const victim = (at_sender ? from : to).rails[1];
    victim->dead = true;
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
    ASSERT_EQ(warnings.lines().size(), 2u) << "one at each end";
    for (const std::string& line : warnings.lines()) {
      EXPECT_NE(line.find("with 2 of 3 rails"), std::string::npos) << line;
      EXPECT_NE(line.find("rail lo.1"), std::string::npos) << line;
    }
    EXPECT_EQ(as_impl(*link.sender).link().rails().up_count(), 2u);
    EXPECT_EQ(as_impl(*link.receiver).link().rails().up_count(), 2u);
    Buffers buffers(from, to, kBytes);
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, kBytes));
    victim->dead = false;
    ASSERT_TRUE(await_rails(link, 3));
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, kBytes));
    EXPECT_EQ(as_impl(*link.sender).link().rejoins(), 1u);
  }
}

// Its NIC has lost its address since the devices were opened, and gets it back.
TEST(RailsAtStart, OneThatCannotBeOpenedJoinsLater) {
  for (const bool at_sender : {true, false}) {
    SCOPED_TRACE(at_sender);
    const KeptWarnings warnings("the link starts with 1 of 2 rails");
    TcpHost from(quick(2)), to(quick(2));
    MortalRail* const victim = (at_sender ? from : to).rails[1];
    victim->cannot_open = true;
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
    ASSERT_EQ(warnings.lines().size(), 2u) << "one at each end";
    for (const char* const part : {"rail lo.1: the test lets nobody open it",
                                   "rail lo.1 to the peer's lo.1 (", "could not be opened at"}) {
      EXPECT_TRUE(std::ranges::any_of(
          warnings.lines(),
          [&](const std::string& line) { return line.find(part) != std::string::npos; }))
          << part << ": " << warnings.lines()[0] << warnings.lines()[1];
    }
    Buffers buffers(from, to, kBytes);
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, kBytes));
    victim->cannot_open = false;
    ASSERT_TRUE(await_rails(link, 2));
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, kBytes));
  }
}

TEST(RailsAtStart, NoneThatCanBeOpenedIsAnError) {
  TcpHost from(hurried()), to(hurried());
  for (MortalRail* rail : from.rails) rail->cannot_open = true;
  const std::string why = fail_to_connect(from, to).sender;
  EXPECT_NE(why.find("the test lets nobody open it"), std::string::npos) << why;
}

// The peer connects to the address of a rail that works: the first has no carrier, or no longer has
// its address (this one is set aside for documents).
TEST(RailsAtStart, ThePeersMeetOverARailThatWorks) {
  for (const bool has_carrier : {false, true}) {
    TcpHost to(quick(2));
    to.rails[0]->port = has_carrier ? Carrier::kUp : Carrier::kDown;
    to.rails[0]->shown.oob_address = has_carrier ? "203.0.113.1" : "127.0.0.2";
    Handle handle;
    const auto listener = Listener::open(*to.devices, 0, &handle);
    ASSERT_TRUE(listener) << listener.error().what;
    AddressFields fields;
    std::memcpy(&fields, handle.data(), sizeof fields);
    EXPECT_EQ(SocketAddress::unpack(fields.address)->host(), "127.0.0.1");
  }
}

TEST(RailsAtStart, WithoutTheFirstRail) {
  TcpHost from(quick(2)), to(quick(2));
  to.rails[0]->dead = true;
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  Buffers buffers(from, to, kBytes);
  for (const size_t bytes : {size_t{0}, size_t{100}, kBytes}) {
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, bytes));
  }
}

TEST(RailsAtStart, NoneIsAnErrorThatNamesThem) {
  TcpHost from(hurried()), to(hurried());
  for (MortalRail* rail : from.rails) rail->dead = true;
  const std::string why = fail_to_connect(from, to).sender;
  EXPECT_NE(why.find("rail lo.0"), std::string::npos) << why;
  EXPECT_NE(why.find("rail lo.1"), std::string::npos) << why;
  EXPECT_NE(why.find("the test made this rail die"), std::string::npos) << why;
}

// Each end has another one, so that nothing connects.
TEST(RailsAtStart, NoneAtBothEndsIsAnErrorAtBoth) {
  TcpHost from(hurried()), to(hurried());
  from.rails[0]->dead = true;
  to.rails[1]->dead = true;
  const Failures why = fail_to_connect(from, to);
  for (const std::string& text : {why.sender, why.receiver}) {
    EXPECT_NE(text.find("the test made this rail die"), std::string::npos) << text;
    EXPECT_NE(text.find("rail lo.0"), std::string::npos) << text;
    EXPECT_NE(text.find("rail lo.1"), std::string::npos) << text;
  }
}

// RAIL_RETRY=0: what did not connect stays out.
TEST(RailsAtStart, NothingIsTriedAgainWhereTheUserSaysSo) {
  Settings settings = quick(2);
  settings.rail_retry = 0;
  TcpHost from(settings), to(settings);
  from.rails[1]->dead = true;
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  from.rails[1]->dead = false;
  Buffers buffers(from, to, kBytes);
  for (int i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_transfer(link, buffers, kBytes));
  }
  EXPECT_EQ(as_impl(*link.sender).link().rails().up_count(), 1u);
}

}  // namespace
}  // namespace slime::test
