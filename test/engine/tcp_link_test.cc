// One link over real sockets: messages of every size, silence, errors at both ends.
#include "test/engine/tcp_transfer.h"
#include "test/support/manual_clock.h"

namespace slime::test {
namespace {

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

// At both ends, also where a size needs more than 32 bits.
TEST(TcpLink, ASendThatIsTooLongNamesBothSizes) {
  for (const uint64_t taken : {uint64_t{50'000}, uint64_t{5} << 30}) {
    SCOPED_TRACE(taken);
    TcpHost from(rails(1)), to(rails(1));
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
    Buffers buffers(from, to, 1 << 20);
    const Receive small{buffers.target.data(), taken, 0, buffers.target_region};
    Request *receive = nullptr, *send = nullptr;
    ASSERT_EQ(link.receiver->irecv({&small, 1}, false, &receive), Status::kOk);
    Status at_sender = Status::kOk, at_receiver = Status::kOk;
    ASSERT_TRUE(in_time([&] {
      bool done = false;
      if (at_receiver == Status::kOk) at_receiver = link.receiver->test(receive, &done, nullptr);
      if (at_sender == Status::kOk) {
        at_sender = link.sender->isend(buffers.source.data(), taken + 10'000, 0,
                                       buffers.source_region, &send);
      }
      return at_sender != Status::kOk && at_receiver != Status::kOk;
    }));
    const std::string what = "a send of " + std::to_string(taken + 10'000) +
                             " bytes (tag 0) meets a receive of " + std::to_string(taken) +
                             " bytes";
    for (const auto& [status, failure] : {std::pair(at_sender, link.sender->failure().what),
                                          std::pair(at_receiver, link.receiver->failure().what)}) {
      EXPECT_EQ(status, Status::kConfig);
      EXPECT_NE(failure.find(what), std::string::npos) << failure;
    }
  }
}

// An eager message needs no receive. The receiver's processor copies it to its place, which device
// memory may be; a communicator that takes host memory only says so.
TEST(TcpLink, NoEagerMessagesIntoDeviceMemory) {
  for (const bool host_memory : {false, true}) {
    TcpHost from((Settings())), to(Settings(), SteadyClock::instance(), false, MemoryKind::kCuda);
    ASSERT_TRUE(to.devices->device(0)->properties().takes(MemoryKind::kCuda));
    TcpLink link;
    ASSERT_NO_FATAL_FAILURE(link.connect(from, to, {}, {.host_memory = host_memory}));
    std::vector<std::byte> data(64, std::byte{7});
    const MemoryRegion* const region =
        *from.devices->device(0)->memory().acquire({data.data(), data.size()});
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
