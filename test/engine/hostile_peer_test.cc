// What a peer, or a NIC, may claim of works that never were: stripes of a receive that was not
// announced, completions of works that are not open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <type_traits>
#include <vector>

#include "message/recv_comm.h"
#include "message/send_comm.h"
#include "test/fuzz/support/fuzz_rail.h"
#include "test/support/manual_clock.h"

namespace slime::test {
namespace {

constexpr size_t kRails = 2;
constexpr size_t kEagerMax = 128;

// One end of a link; the other end and the NICs are the test.
template <typename Comm>
class End {
 public:
  End(size_t inbox_bytes, size_t outbox_bytes)
      : devices_(fuzz::devices_of(kRails, clock_)),
        inbox_(*RegisteredBuffer::make(device(), inbox_bytes)),
        written_(inbox_.data()) {
    auto outbox = RegisteredBuffer::make(device(), outbox_bytes);
    comm_ =
        std::make_unique<Comm>(*devices_, device(),
                               fuzz::parts_of(wires_, std::is_same_v<Comm, SendCommImpl>, kEagerMax,
                                              std::move(inbox_), std::move(*outbox)));
    EXPECT_EQ(comm_->progress(), Status::kOk);
  }

  Device& device() { return *devices_->device(0); }
  Comm& comm() { return *comm_; }
  const fuzz::Wire& wire(size_t i) const { return wires_[i]; }
  void kill(size_t i) { wires_[i].dead = true; }
  void pass(uint64_t ns) { clock_.pass(ns); }
  std::byte* inbox() { return written_; }

  void announce(uint32_t immediate, uint64_t bytes) {
    wires_[0].arrivals.push_back({Done::Kind::kArrived, immediate, bytes, 0});
  }
  void arrive(uint32_t immediate, uint64_t bytes) {
    announce(immediate, bytes);
    settle();
  }
  void complete(size_t wire, uint64_t cookie) {
    wires_[wire].arrivals.push_back({Done::Kind::kSent, 0, 0, cookie});
    settle();
  }
  void refuse(size_t wire, uint64_t cookie) {
    wires_[wire].arrivals.push_back({Done::Kind::kRefused, 0, 0, cookie});
  }
  bool done(Request* request) {
    bool is_done = false;
    EXPECT_EQ(comm_->test(request, &is_done, nullptr), Status::kOk);
    return is_done;
  }

 private:
  void settle() {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(comm_->progress(), Status::kOk);
  }

  ManualClock clock_;
  fuzz::Wire wires_[kRails];
  std::unique_ptr<Devices> devices_;
  RegisteredBuffer inbox_;
  std::byte* const written_;
  std::unique_ptr<Comm> comm_;
};

struct Receiver : End<RecvCommImpl> {
  Receiver() : End(eager_memory_bytes(kEagerMax, kRails), cts_memory_bytes(kRails)) {}

  Request* receive() {
    Request* request = nullptr;
    const Receive one{buffer.data(), buffer.size(), 0, nullptr};
    EXPECT_EQ(comm().irecv({&one, 1}, false, &request), Status::kOk);
    return request;
  }
  void write_header(uint32_t index, uint32_t length) {
    const EagerHeader header{index, length, 0, index, 0, 0};
    std::byte* const buffer = inbox() + index % kEagerBuffers * eager_buffer_bytes(kEagerMax);
    std::memcpy(buffer, &header, sizeof header);
  }
  void send_eager(uint32_t index) {
    write_header(index, 8);
    arrive(eager_immediate(index), sizeof(EagerHeader) + 8);
  }

  std::vector<std::byte> buffer = std::vector<std::byte>(100);
};

void send_all_stripes_that_could_be(Receiver& receiver) {
  for (uint32_t entry = 0; entry < kCtsEntries; ++entry) {
    for (uint32_t generation = 0; generation < 16; ++generation) {
      receiver.arrive(DataImmediate{entry, 0, 0, 1, generation}.pack(), 8);
    }
  }
}

TEST(HostilePeer, AStripeForNobodyChangesNothing) {
  Receiver receiver;
  send_all_stripes_that_could_be(receiver);
  Request* const request = receiver.receive();
  ASSERT_NE(request, nullptr);
  EXPECT_FALSE(receiver.done(request));
}

// After some eager messages CTS are held back: then not even the right generation makes a stripe
// of a receive that the sender cannot know.
TEST(HostilePeer, AStripeOfAReceiveThatWasNotAnnouncedChangesNothing) {
  Receiver receiver;
  uint32_t index = 0;
  for (; index < kEagerStreak; ++index) {
    Request* const request = receiver.receive();
    receiver.send_eager(index);
    ASSERT_TRUE(receiver.done(request));
  }
  Request* const held = receiver.receive();
  send_all_stripes_that_could_be(receiver);
  EXPECT_FALSE(receiver.done(held));
  receiver.send_eager(index);
  EXPECT_TRUE(receiver.done(held));
}

// A header alone says that the message is too long. This one is not.
TEST(HostilePeer, AMessageWithoutItsPayloadIsNotDelivered) {
  for (const auto& [length, expected] : {std::pair{101u, Status::kConfig},
                                         {100u, Status::kRemote},
                                         {~0u, Status::kConfig},
                                         {0u, Status::kOk}}) {
    SCOPED_TRACE(length);
    Receiver receiver;
    Request* const request = receiver.receive();
    receiver.write_header(0, length);
    receiver.announce(eager_immediate(0), sizeof(EagerHeader));
    bool done = false;
    EXPECT_EQ(receiver.comm().test(request, &done, nullptr), expected);
    EXPECT_EQ(done, expected == Status::kOk);
  }
}

// A rail is reported as down once the peer says so too. A peer that never does is the cause that
// the user sees, but the rail is what can be mended.
TEST(HostilePeer, TheTimeOutNamesARailWhoseEndThePeerHasNotAnswered) {
  Receiver receiver;
  Request* const request = receiver.receive();
  receiver.kill(1);
  Status status = Status::kOk;
  for (int i = 0; i < 40 && status == Status::kOk; ++i) {
    receiver.pass(100'000'000'000);
    bool done = false;
    status = receiver.comm().test(request, &done, nullptr);
    EXPECT_FALSE(done);
  }
  EXPECT_EQ(status, Status::kTimeout);
  EXPECT_THAT(receiver.comm().failure().what,
              testing::HasSubstr("rail f.1 is down, and the peer has not answered that: the fuzzer "
                                 "ended this rail"));
}

struct Sender : End<SendCommImpl> {
  Sender() : End(cts_memory_bytes(kRails), eager_memory_bytes(kEagerMax, kRails)) {
    region = *device().memory().acquire({data.data(), data.size()});
  }
  ~Sender() { device().memory().release(region); }

  void clear_to_send() {
    const CtsHeader header{0, 0, 1, 1, 0};
    const CtsReceive entry{0x1000, 0, data.size(), 0, 0};
    std::memcpy(inbox(), &header, sizeof header);
    std::memcpy(inbox() + sizeof header, &entry, sizeof entry);
    arrive(cts_immediate(0, 0), sizeof header + cts_receive_bytes(kRails));
  }
  // All of `data`; its first stripes are posted.
  Request* begin_large_message() {
    clear_to_send();
    Request* request = nullptr;
    EXPECT_EQ(comm().isend(data.data(), data.size(), 0, region, &request), Status::kOk);
    EXPECT_FALSE(request != nullptr && done(request));
    return request;
  }
  // The stripes that were posted so far on each rail, as the rail knows them.
  std::vector<std::vector<Work>> posted() const {
    std::vector<std::vector<Work>> stripes(kRails);
    for (size_t i = 0; i < kRails; ++i) {
      std::ranges::copy_if(wire(i).posted, std::back_inserter(stripes[i]), [](const Work& work) {
        return kind_of(work.immediate) == ImmediateKind::kData;
      });
    }
    return stripes;
  }

  std::vector<std::byte> data = std::vector<std::byte>(16 << 20);
  const MemoryRegion* region = nullptr;
};

TEST(HostilePeer, ARefusalOfWhatWasNotSentIsAnError) {
  constexpr uint32_t kBytes = 8;
  for (const Refusal& refusal : {Refusal{0, kBytes}, Refusal{1, 0}, Refusal{31, 0xffff}}) {
    SCOPED_TRACE(refusal.pack());
    Sender sender;
    Request* request = nullptr;
    ASSERT_EQ(sender.comm().isend(sender.data.data(), kBytes, 0, sender.region, &request),
              Status::kOk);
    ASSERT_NE(request, nullptr);
    sender.announce(control_immediate(message_op::kTooLong, refusal.pack()), 0);
    EXPECT_EQ(sender.comm().progress(), Status::kRemote);
  }
}

// Most stripes of a large message wait until a rail has room for them. A claimed completion makes
// no room: its cookie names no work that is open on that rail.
TEST(HostilePeer, ACompletionOfNoOpenWorkChangesNothing) {
  Sender sender;
  Request* const request = sender.begin_large_message();
  ASSERT_NE(request, nullptr);
  const auto first = sender.posted();
  ASSERT_FALSE(first[0].empty());
  std::set<uint64_t> posted;
  for (const Work& work : sender.wire(0).posted) posted.insert(work.cookie);
  for (uint64_t slot = 0; slot < 1024; ++slot) {
    for (uint64_t generation = 0; generation < 4; ++generation) {
      const uint64_t claimed = generation << 32 | slot;
      if (!posted.contains(claimed)) sender.complete(0, claimed);
    }
  }
  EXPECT_EQ(sender.posted()[0].size(), first[0].size()) << "room that a claim has made";

  // All stripes are posted and completed in the end. A completion that comes twice counts once.
  std::vector<size_t> completed(kRails);
  for (bool done = false; !done; done = sender.done(request)) {
    const auto now = sender.posted();
    ASSERT_TRUE(completed[0] < now[0].size() || completed[1] < now[1].size());
    for (size_t i = 0; i < kRails; ++i) {
      for (; completed[i] < now[i].size(); ++completed[i]) {
        sender.complete(i, now[i][completed[i]].cookie);
        sender.complete(i, now[i][completed[i]].cookie);
      }
    }
  }
  uint64_t bytes = 0;
  for (const auto& rail : sender.posted()) {
    for (const Work& work : rail) bytes += work.length;
  }
  EXPECT_EQ(bytes, sender.data.size());
}

// The request cannot be done, and no other rail would do better. A refusal of a work that is not
// open changes nothing.
TEST(HostilePeer, ARefusedWriteEndsTheLinkAndSaysWhy) {
  Sender sender;
  ASSERT_NE(sender.begin_large_message(), nullptr);
  const Work work = sender.posted()[0].at(0);
  sender.refuse(0, work.cookie + (uint64_t{2} << 32));
  EXPECT_EQ(sender.comm().progress(), Status::kOk);
  sender.refuse(0, work.cookie);
  EXPECT_EQ(sender.comm().progress(), Status::kRemote);
  EXPECT_THAT(sender.comm().failure().what,
              testing::HasSubstr("rail f.0: the peer refused a write of " +
                                 std::to_string(work.length) + " bytes"));
}

}  // namespace
}  // namespace slime::test
