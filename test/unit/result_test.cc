#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/error.h"
#include "base/net/socket.h"
#include "base/random.h"

namespace slime {
namespace {

TEST(Error, CarriesStatusCodeAndSentence) {
  const Error error = make_error(Status::kRemote, 12, "post to %s, %d bytes", "10.0.0.1:80", 4096);
  EXPECT_EQ(error.status, Status::kRemote);
  EXPECT_EQ(error.code, 12);
  EXPECT_EQ(error.what, "post to 10.0.0.1:80, 4096 bytes");
}

TEST(Error, LongSentenceIsCutAndSaysSo) {
  const Error error = make_error(Status::kInvalid, 0, "%s", std::string(100000, 'x').c_str());
  EXPECT_EQ(error.what, std::string(1023, 'x') + "...");
}

TEST(Error, SystemErrorNamesTheCode) {
  const Error error = system_error(ECONNREFUSED, "connect to %s", "10.0.0.1:80");
  EXPECT_EQ(error.what, "connect to 10.0.0.1:80: Connection refused (errno 111)");
  EXPECT_EQ(error.code, ECONNREFUSED);
  EXPECT_EQ(error.status, Status::kRemote);
}

TEST(Error, StatusFollowsErrno) {
  EXPECT_EQ(status_of_errno(EAGAIN), Status::kAgain);
  EXPECT_EQ(status_of_errno(ECONNRESET), Status::kRemote);
  EXPECT_EQ(status_of_errno(EPIPE), Status::kRemote);
  EXPECT_EQ(status_of_errno(ETIMEDOUT), Status::kTimeout);
  EXPECT_EQ(status_of_errno(EMFILE), Status::kNoMemory);
  EXPECT_EQ(status_of_errno(ENOMEM), Status::kNoMemory);
  EXPECT_EQ(status_of_errno(EBADF), Status::kSystem);
}

TEST(Error, IsNeverTryAgain) {
  EXPECT_EQ(system_error(EAGAIN, "connect").status, Status::kSystem);
  EXPECT_EQ(system_error(EINPROGRESS, "connect").status, Status::kSystem);
}

TEST(Error, TravelsInAResult) {
  const auto halve = [](int n) -> Result<int> {
    if (n % 2 != 0) return fail(make_error(Status::kInvalid, 0, "%d is odd", n));
    return n / 2;
  };
  EXPECT_EQ(halve(8).value(), 4);
  ASSERT_FALSE(halve(7));
  EXPECT_EQ(halve(7).error().what, "7 is odd");
}

TEST(StatusName, EveryStatusHasItsOwn) {
  std::set<std::string> names;
  constexpr int kCount = static_cast<int>(Status::kCancelled) + 1;
  for (int i = 0; i < kCount; ++i) names.insert(status_name(static_cast<Status>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(names.count("?"), 0u);
}

TEST(Random, NoncesDiffer) {
  std::set<Nonce> nonces;
  for (int i = 0; i < 1000; ++i) nonces.insert(random_nonce().value());
  EXPECT_EQ(nonces.size(), 1000u);
}

TEST(Random, FillsLongBuffersToTheEnd) {
  // getrandom returns at most 256 bytes for certain; a buffer this long takes several calls.
  std::vector<std::byte> bytes(1 << 20);
  ASSERT_TRUE(random_bytes(bytes));
  const std::span<const std::byte> tail = std::span(bytes).last(64);
  EXPECT_THAT(tail, testing::Contains(testing::Ne(std::byte{0})));
  EXPECT_TRUE(random_bytes({}));
}

TEST(Random, SameNonceComparesEveryByte) {
  const Nonce nonce = random_nonce().value();
  EXPECT_TRUE(same_nonce(nonce, nonce));
  for (size_t i = 0; i < nonce.size(); ++i) {
    Nonce other = nonce;
    other[i] ^= std::byte{0x10};
    EXPECT_FALSE(same_nonce(nonce, other)) << i;
  }
}

}  // namespace
}  // namespace slime
