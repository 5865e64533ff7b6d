// Loans: reading the sender's memory, and noticing when it may not be read any more.
#include "transports/tcp/loan.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cerrno>

#include "test/unit/tcp_support.h"

namespace slime::tcp {
namespace {

Settings lending() {
  Settings settings;
  settings.tcp_cma_min = 1;
  return settings;
}

// A ledger, a registration and a source in this process, which lends to itself.
struct Lender {
  Nonce nonce = *random_nonce();
  Ledger ledger{nonce};
  RegionTable regions;
  std::vector<std::byte> source = std::vector<std::byte>(100'000, std::byte{7});
  uint64_t key = *regions.add(source.data(), source.size());

  Loan loan() const {
    return {reinterpret_cast<uint64_t>(source.data()),
            reinterpret_cast<uint64_t>(regions.state_of(key)), static_cast<uint32_t>(key >> 32), 0};
  }
};

TEST(TcpLoan, IsReadFromAnyOffset) {
  Lender lender;
  Borrower borrower;
  EXPECT_FALSE(borrower.is_open());
  ASSERT_TRUE(borrower.open(getpid(), lender.ledger.address(), lender.nonce));
  lender.source[50'000] = std::byte{9};
  std::vector<std::byte> target(50'000);
  ASSERT_EQ(borrower.copy(target.data(), lender.loan(), 50'000, target.size()), 0);
  EXPECT_EQ(target[0], std::byte{9});
  EXPECT_EQ(target[49'999], std::byte{7});
}

TEST(TcpLoan, OpensNothingWithoutTheRightNonce) {
  Lender lender;
  Borrower borrower;
  EXPECT_FALSE(borrower.open(getpid(), lender.ledger.address(), *random_nonce()));
  EXPECT_FALSE(borrower.open(getpid(), 8, lender.nonce)) << "nothing is mapped there";
  EXPECT_FALSE(borrower.open(0x3fffffff, lender.ledger.address(), lender.nonce)) << "no process";
  EXPECT_FALSE(borrower.is_open());
}

TEST(TcpLoan, EndsWithTheRegistration) {
  Lender lender;
  Borrower borrower;
  ASSERT_TRUE(borrower.open(getpid(), lender.ledger.address(), lender.nonce));
  const Loan loan = lender.loan();
  ASSERT_TRUE(lender.regions.remove(lender.key));
  std::byte target[64];
  EXPECT_EQ(borrower.copy(target, loan, 0, sizeof target), EOWNERDEAD);
  lender.key = *lender.regions.add(lender.source.data(), lender.source.size());
  EXPECT_EQ(borrower.copy(target, loan, 0, sizeof target), EOWNERDEAD) << "the slot is another's";
  EXPECT_EQ(borrower.copy(target, lender.loan(), 0, sizeof target), 0);
}

TEST(TcpLoan, EndsWithTheChannel) {
  Lender lender;
  Borrower borrower;
  ASSERT_TRUE(borrower.open(getpid(), lender.ledger.address(), lender.nonce));
  lender.ledger.close();
  std::byte target[64];
  EXPECT_EQ(borrower.copy(target, lender.loan(), 0, sizeof target), EOWNERDEAD);
}

TEST(TcpLoan, OfMemoryThatIsGoneIsAFault) {
  Lender lender;
  Borrower borrower;
  ASSERT_TRUE(borrower.open(getpid(), lender.ledger.address(), lender.nonce));
  constexpr size_t kPages = 2 * 4096;
  void* pages = mmap(nullptr, kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  Loan loan = lender.loan();
  loan.source = reinterpret_cast<uint64_t>(pages);
  std::vector<std::byte> target(kPages);
  EXPECT_EQ(borrower.copy(target.data(), loan, 0, kPages), 0);
  ASSERT_EQ(munmap(static_cast<char*>(pages) + 4096, 4096), 0);
  EXPECT_EQ(borrower.copy(target.data(), loan, 0, kPages), EFAULT);
  munmap(pages, 4096);
}

TEST(TcpLoan, OfAProcessThatIsGoneIsAFault) {
  Lender lender;
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  ASSERT_GT(child, 0);
  Borrower borrower;
  const bool opened = borrower.open(child, lender.ledger.address(), lender.nonce);
  std::byte target[64];
  EXPECT_EQ(opened ? borrower.copy(target, lender.loan(), 0, sizeof target) : 0, 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!opened) GTEST_SKIP() << "this kernel does not let a process read its child's memory";
  EXPECT_EQ(borrower.copy(target, lender.loan(), 0, sizeof target), ESRCH);
}

// Until the failure of the passive end; what arrives before it is counted.
size_t arrivals_until_failure(Channel& channel, Status* status) {
  size_t arrivals = 0;
  EXPECT_TRUE(eventually([&] {
    arrivals += poll_once(channel, status).size();
    return *status != Status::kOk;
  }));
  return arrivals;
}

TEST(TcpLoan, AnEndThatClosesTakesItsLoansBack) {
  TestPair pair = connected_pair(false, lending());
  TestBuffer from(*pair.left_rail, 4096), to(*pair.right_rail, 4096, 0xee);
  ASSERT_EQ(post_one(*pair.active, work_of(from, 0, to, 0, 4096)), 1u);
  pair.active.reset();
  Status status = Status::kOk;
  EXPECT_EQ(arrivals_until_failure(*pair.passive, &status), 0u);
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_NE(pair.passive->failure().what.find("closed the channel, or deregistered"),
            std::string::npos)
      << pair.passive->failure().what;
}

TEST(TcpLoan, AnEndThatFencesTakesItsLoansBack) {
  TestPair pair = connected_pair(false, lending());
  TestBuffer from(*pair.left_rail, 4096), to(*pair.right_rail, 4096, 0xee);
  ASSERT_EQ(post_one(*pair.active, work_of(from, 0, to, 0, 4096)), 1u);
  pair.active->fence();
  Status status = Status::kOk;
  EXPECT_EQ(arrivals_until_failure(*pair.passive, &status), 0u);
  EXPECT_EQ(status, Status::kRemote);
}

TEST(TcpLoan, DeregisteringTakesALoanBack) {
  TestPair pair = connected_pair(false, lending());
  TestBuffer from(*pair.left_rail, 4096), to(*pair.right_rail, 4096);
  ASSERT_EQ(post_one(*pair.active, work_of(from, 0, to, 0, 4096)), 1u);
  from.deregister();
  Status status = Status::kOk;
  EXPECT_EQ(arrivals_until_failure(*pair.passive, &status), 0u);
  EXPECT_EQ(status, Status::kRemote);
}

// The sender may touch the memory again only when the peer has it; what is behind waits too.
TEST(TcpLoan, IsDoneWhenThePeerHasIt) {
  TestPair pair = connected_pair(false, lending());
  TestBuffer from(*pair.left_rail, 4096), to(*pair.right_rail, 4096);
  from.fill_pattern(1);
  Status status = Status::kOk;
  const Work empty = work_of(from, 0, to, 0, 0, 0, 1);
  ASSERT_EQ(post_one(*pair.active, empty), 1u);
  ASSERT_TRUE(eventually([&] { return poll_once(*pair.active, &status).size() == 1; }))
      << "a work without bytes needs no answer";
  ASSERT_EQ(post_one(*pair.active, work_of(from, 0, to, 0, 4096, 0, 2)), 1u);
  ASSERT_EQ(post_one(*pair.active, empty), 1u);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(poll_once(*pair.active, &status).empty());
  size_t arrived = 0, sent = 0;
  ASSERT_TRUE(eventually([&] {
    arrived += poll_once(*pair.passive, &status).size();
    const size_t now = poll_once(*pair.active, &status).size();
    EXPECT_TRUE(now == 0 || arrived >= 2);
    sent += now;
    return sent == 2 && arrived >= 3;
  }));
  EXPECT_EQ(arrived, 3u);
  EXPECT_EQ(std::memcmp(from.data(), to.data(), 4096), 0);
}

TEST(TcpLoan, WithoutConsentNothingIsLent) {
  Settings none;
  none.tcp_cma_min = 0;
  TestPair pair = connected_pair(false, none);
  TestBuffer from(*pair.left_rail, 100'000), to(*pair.right_rail, 100'000);
  ASSERT_EQ(post_one(*pair.active, work_of(from, 0, to, 0, 100'000)), 1u);
  Status status = Status::kOk;
  ASSERT_TRUE(eventually([&] {
    poll_once(*pair.active, &status);
    return !poll_once(*pair.passive, &status).empty();
  }));
  EXPECT_EQ(pair.passive->counters.bytes_borrowed.get(), 0u);
}

}  // namespace
}  // namespace slime::tcp
