// The control channel's bytes: what goes out comes back, and nothing a stranger sends does harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "switch/protocol/frames.h"
#include "test/switch/control_support.h"

namespace slime::control {
namespace {

using net::test::key_of;
using net::test::wanted;
using testing::HasSubstr;

Nonce nonce_of(uint8_t value) {
  Nonce nonce;
  nonce.fill(std::byte{value});
  return nonce;
}

const JobRef kRef{nonce_of(0xab), 0x1234, 0xfe};

std::vector<Message> one_of_each() {
  return {Hello{nonce_of(7), "physics"},
          Challenge{nonce_of(9), false},
          wanted(32, sap::kMaxSlots),
          Heartbeat{kRef},
          CloseJob{kRef},
          Fence{kRef, true},
          Report{true},
          Drain{true},
          JobGrant{kRef, 0x89abcdef, net::test::address_of_child(1), 4, 256, 64, 3, 30000},
          JobState{State::kFenced, 255},
          Done{},
          Text{R"({"jobs":[]})"},
          Refused{Refusal::kQuota, "tenant a has 2 jobs and may have 2"},
          JoinTree{0x1122334455667788, 1024, 32, 32, 31, 0, wanted(32, sap::kMaxSlots)},
          TreeWait{0x80000001}};
}

Result<Message> decode(std::span<const std::byte> frame) {
  const auto header = decode_header(frame.first(kHeaderBytes), kMaxAnswerBytes);
  if (!header) return fail(header.error());
  if (frame.size() != kHeaderBytes + header->payload_bytes + kMacBytes) {
    return fail(make_error(Status::kInvalid, 0, "other length"));
  }
  return decode_payload(header->type, frame.subspan(kHeaderBytes, header->payload_bytes));
}

TEST(ControlWire, WhatGoesOutComesBack) {
  uint8_t type = 0;
  for (const Message& message : one_of_each()) {
    EXPECT_EQ(type_of(message), static_cast<Type>(++type));
    const auto frame = encode(message, 77);
    const auto header = decode_header(std::span(frame).first(kHeaderBytes), kMaxAnswerBytes);
    ASSERT_TRUE(header) << header.error().what;
    EXPECT_EQ(header->sequence, 77u);
    const auto back = decode(frame);
    ASSERT_TRUE(back) << back.error().what;
    EXPECT_EQ(back->index(), message.index());
    EXPECT_EQ(encode(*back, 77), frame) << name_of(type_of(message));
    if (is_request(type_of(message))) {
      EXPECT_LE(header->payload_bytes, kMaxRequestBytes);
    }
  }
  EXPECT_EQ(type, std::variant_size_v<Message>);
}

TEST(ControlWire, FieldsLieWhereTheyAlwaysLay) {
  const auto frame = encode(Fence{kRef, true}, 0x01020304);
  std::vector<uint8_t> expected = {'S', 'L', 'M', 'C', 5, 6, 0, 0, 4, 3, 2, 1, 20, 0, 0, 0};
  expected.insert(expected.end(), sizeof(JobId), 0xab);
  for (const int byte : {0x34, 0x12, 0xfe, 1}) expected.push_back(static_cast<uint8_t>(byte));
  ASSERT_EQ(frame.size(), expected.size() + kMacBytes);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(uint8_t(frame[i]), expected[i]) << i;
}

TEST(ControlWire, EveryTruncationAndExtensionIsRefused) {
  for (const Message& message : one_of_each()) {
    const Type type = type_of(message);
    const auto frame = encode(message, 1);
    const auto payload =
        std::span(frame).subspan(kHeaderBytes, frame.size() - kHeaderBytes - kMacBytes);
    const bool free_text = type == Type::kText || type == Type::kRefused;
    for (size_t size = 0; size < payload.size(); ++size) {
      if (free_text && size >= 2) continue;  // a shorter text is a text
      if (type == Type::kText) continue;
      EXPECT_FALSE(decode_payload(type, payload.first(size))) << name_of(type) << " " << size;
    }
    for (size_t size = 0; size < kHeaderBytes; ++size) {
      EXPECT_FALSE(decode_header(std::span(frame).first(size), kMaxAnswerBytes));
    }
    std::vector<std::byte> longer(payload.begin(), payload.end());
    longer.push_back(std::byte{0});
    if (!free_text) {
      EXPECT_FALSE(decode_payload(type, longer)) << name_of(type);
    }
  }
}

TEST(ControlWire, ValuesOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    CreateJob job = wanted();
    change(job);
    return !decode(encode(job, 1));
  };
  EXPECT_FALSE(refused([](CreateJob&) {}));
  EXPECT_TRUE(refused([](CreateJob& job) { job.tenant.clear(); }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.tenant = "a b"; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.tenant = "a\"}\n"; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.tenant = std::string("a\0b", 3); }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.slots_least = 0; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.slots_least = job.slots_wanted + 1; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.slots_wanted = sap::kMaxSlots + 1; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.lanes_least = 0; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.lanes_wanted = sap::kMaxLanes + 1; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.formats_wanted = job.formats_least = 0; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.formats_least = 0; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.formats_wanted |= 1 << 5; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.formats_least = 3; })) << "and it wants 1 only";
  EXPECT_FALSE(refused([](CreateJob& job) { job.formats_wanted = sap::kKnownFormats; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.children.clear(); }));
  EXPECT_FALSE(refused([](CreateJob& job) { job.shares = kMaxShares, job.share = 7; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.shares = 0; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.shares = kMaxShares + 1; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.shares = job.share = 2; }));
  EXPECT_TRUE(refused([](CreateJob& job) { job.children.resize(33, job.children[0]); }));
}

TEST(ControlWire, GrantsOfUnknownFormatsAreRefused) {
  JobGrant grant{kRef, 1, net::test::address_of_child(1), 4, 256, 64, sap::kKnownFormats, 30000};
  EXPECT_TRUE(decode(encode(grant, 1)));
  for (const uint32_t formats : {0u, sap::kKnownFormats | 1u << 5, 1u << 8}) {
    grant.formats = formats;
    EXPECT_FALSE(decode(encode(grant, 1))) << formats;
  }
}

CreateJob wanted_on_rails(int children, uint32_t rails) {
  CreateJob job = wanted(children * static_cast<int>(rails));
  job.rails = rails;
  return job;
}

TEST(ControlWire, ChildrenOfSeveralRailsComeBack) {
  for (const auto& [children, rails] : {std::pair(1, 8u), {3, 2u}, {32, 8u}}) {
    const CreateJob job = wanted_on_rails(children, rails);
    const auto frame = encode(job, 1);
    EXPECT_LE(frame.size(), kHeaderBytes + kMaxRequestBytes + kMacBytes);
    const auto back = decode(frame);
    ASSERT_TRUE(back) << back.error().what;
    EXPECT_EQ(std::get<CreateJob>(*back).rails, rails);
    EXPECT_EQ(std::get<CreateJob>(*back).children, job.children);
  }
  const auto part = encode(JoinTree{7, 33, 32, 2, 1, 0, wanted_on_rails(32, 8)}, 1);
  EXPECT_LE(part.size(), kHeaderBytes + kMaxRequestBytes + kMacBytes);
  EXPECT_TRUE(decode(part));
}

// The counts come before the addresses: children, and rails beyond the first, 16 bits each.
TEST(ControlWire, CountsOfRailsThatCannotBeAreRefused) {
  const auto frame = encode(wanted_on_rails(2, 2), 1);
  const size_t at = frame.size() - kMacBytes - 4 * SocketAddress::kWireBytes - 4;
  const auto with = [&](uint8_t children, uint8_t more_rails, uint8_t high = 0) {
    auto bytes = frame;
    bytes[at] = std::byte{children};
    bytes[at + 2] = std::byte{more_rails};
    bytes[at + 3] = std::byte{high};
    return decode(bytes).has_value();
  };
  EXPECT_TRUE(with(2, 1));
  EXPECT_TRUE(with(4, 0)) << "one rail looks as it always did";
  EXPECT_TRUE(with(1, 3));
  EXPECT_FALSE(with(2, 2)) << "more than there are";
  EXPECT_FALSE(with(2, 0)) << "fewer than there are";
  EXPECT_FALSE(with(0, 1));
  EXPECT_FALSE(with(33, 0));
  EXPECT_FALSE(with(1, 8));
  EXPECT_FALSE(with(2, 0xff, 0xff)) << "as many as wrap around to 0";
  EXPECT_FALSE(with(2, 1, 1));
  JoinTree join{7, 6, 2, 3, 1, 0, wanted_on_rails(2, 2)};
  EXPECT_TRUE(decode(encode(join, 1)));
  join.workers = 4;
  EXPECT_FALSE(decode(encode(join, 1))) << "addresses are no workers";
  EXPECT_FALSE(decode(encode(JoinTree{7, 6, 2, 3, 1, 4, wanted_on_rails(1, 2)}, 1)))
      << "a switch has one rail";
}

TEST(ControlWire, PartsOfTreesOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    JoinTree join{7, 6, 2, 3, 1, 0, wanted(2)};
    change(join);
    return !decode(encode(join, 1));
  };
  EXPECT_FALSE(refused([](JoinTree&) {}));
  EXPECT_FALSE(refused([](JoinTree& join) { join = {7, 33, 32, 2, 1, 4, wanted(1)}; }));
  EXPECT_TRUE(refused([](JoinTree& join) { join.tree = 0; }));
  EXPECT_TRUE(refused([](JoinTree& join) { join.branches = 1; }));
  EXPECT_TRUE(refused([](JoinTree& join) { join.branches = 33; }));
  EXPECT_TRUE(refused([](JoinTree& join) { join.branch = 3; }));
  EXPECT_TRUE(refused([](JoinTree& join) { join.workers = 3; }));
  EXPECT_TRUE(refused([](JoinTree& join) { join.workers = 0; }));
  EXPECT_TRUE(refused([](JoinTree& join) { join.contributors = 3; })) << "a leaf without workers";
  EXPECT_TRUE(refused([](JoinTree& join) { join.contributors = 97; }));
  EXPECT_TRUE(refused([](JoinTree& join) { join.shards = 4; })) << "a switch is one child";
  EXPECT_TRUE(refused([](JoinTree& join) { join.shards = 17, join.part = wanted(1); }));
  EXPECT_TRUE(refused([](JoinTree& join) { join.part.tenant.clear(); }));
}

TEST(ControlWire, HeadersThatCannotBeAreRefused) {
  const auto frame = encode(Report{}, 1);
  const auto with = [&](size_t at, uint8_t value) {
    auto bytes = std::vector(frame.begin(), frame.begin() + kHeaderBytes);
    bytes[at] = std::byte{value};
    return decode_header(bytes, kMaxRequestBytes);
  };
  EXPECT_TRUE(with(0, 'S'));
  EXPECT_FALSE(with(0, 'G'));
  EXPECT_THAT(with(4, kVersion - 1).error().what,
              HasSubstr("it is of version 4 and this program speaks version 5"));
  EXPECT_FALSE(with(5, 0));
  EXPECT_FALSE(with(5, 16));
  EXPECT_FALSE(with(6, 1));
  EXPECT_FALSE(with(13, 0x21)) << "longer than a request may be";
  EXPECT_FALSE(with(15, 0x80));
}

TEST(ControlWire, RandomBytesDoNoHarm) {
  const char* given = getenv("SLIME_SEED");
  const auto seed = given != nullptr ? strtoull(given, nullptr, 0) : std::random_device{}();
  SCOPED_TRACE("SLIME_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto messages = one_of_each();
  for (int i = 0; i < 20000; ++i) {
    auto frame = encode(messages[random() % messages.size()], 1);
    const size_t changes = 1 + random() % 8;
    for (size_t k = 0; k < changes; ++k) {
      frame[random() % frame.size()] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) frame.resize(kHeaderBytes + random() % (frame.size() - kHeaderBytes));
    const auto message = decode(frame);
    if (message) {
      EXPECT_TRUE(decode(encode(*message, 1))) << "what was accepted can be sent";
    }
    std::vector<std::byte> noise(random() % 1200);
    std::ranges::generate(noise, [&] { return static_cast<std::byte>(random()); });
    (void)decode_payload(static_cast<Type>(1 + random() % 15), noise);
    (void)decode_header(noise, kMaxRequestBytes);
  }
}

TEST(ControlWire, TextOfStrangersIsPrintable) {
  const auto back = decode(encode(Refused{Refusal::kBusy, "a\x1b[2Jb\nc"}, 1));
  EXPECT_EQ(std::get<Refused>(*back).text, "a [2Jb c");
}

// --- keys and signatures ---

// HMAC-SHA-256, test cases 1 and 2 need shorter keys than we take: 3, 6 and 7 of RFC 4231 (4.4,
// 4.7, 4.8).
TEST(Hmac, GivesTheValuesOfTheStandard) {
  const auto hex = [](const SecretKey& key, const std::string& text) {
    const auto mac = hmac_sha256(key, std::as_bytes(std::span(text)));
    std::string out;
    for (const std::byte byte : mac.value()) {
      char two[3];
      snprintf(two, sizeof two, "%02x", unsigned(byte));
      out += two;
    }
    return out;
  };
  EXPECT_EQ(hex(key_of(std::string(20, '\xaa')), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  const SecretKey large = key_of(std::string(131, '\xaa'));
  EXPECT_EQ(hex(large, "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hex(large,
                "This is a test using a larger than block-size key and a larger than block-size "
                "data. The key needs to be hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(Hmac, KeysComeFromFiles) {
  const std::string path = testing::TempDir() + "slime_key_" + std::to_string(getpid());
  const auto with = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    chmod(path.c_str(), 0600);
    return SecretKey::read_file(path);
  };
  const auto key = with("0123456789abcdef\r\n");
  ASSERT_TRUE(key) << key.error().what;
  EXPECT_EQ(key->bytes().size(), 16u);
  EXPECT_FALSE(with("0123456789abcde\n"));
  EXPECT_FALSE(with(""));
  EXPECT_TRUE(with(std::string(SecretKey::kMaxBytes, 'x') + "\n"));
  EXPECT_FALSE(with(std::string(SecretKey::kMaxBytes + 1, 'x')));
  EXPECT_FALSE(with(std::string(10000, 'x')));
  EXPECT_THAT(with("short").error().what, HasSubstr(path));
  remove(path.c_str());
  EXPECT_FALSE(SecretKey::read_file(path));
  EXPECT_FALSE(SecretKey::read_file(testing::TempDir()));
}

TEST(Hmac, KeyFilesThatOthersMayReadOrChangeAreRefused) {
  const std::string path = testing::TempDir() + "slime_modes_" + std::to_string(getpid());
  std::ofstream(path) << "0123456789abcdef\n";
  for (const mode_t mode : {0400, 0600, 0640, 0440}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(SecretKey::read_file(path)) << std::oct << mode;
  }
  for (const mode_t mode : {0644, 0604, 0660, 0602, 0641}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    const auto key = SecretKey::read_file(path);
    ASSERT_FALSE(key) << std::oct << mode;
    EXPECT_EQ(key.error().status, Status::kConfig);
    EXPECT_THAT(key.error().what, HasSubstr("chmod 640 " + path));
  }
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  if (chown(path.c_str(), 65534, 65534) == 0) {  // root's to do
    const auto key = SecretKey::read_file(path);
    ASSERT_FALSE(key);
    EXPECT_THAT(key.error().what, HasSubstr("belongs to user 65534"));
    EXPECT_THAT(key.error().what, HasSubstr("chown 0 " + path));
  }
  remove(path.c_str());
}

// A link chooses the file, so its owner counts as the file's does: also that of a link within the
// path, and behind another link. Kubernetes' secrets are root's links to root's links.
TEST(Hmac, ASymbolicLinkOfAStrangerIsRefused) {
  const std::string place = testing::TempDir() + "slime_links_" + std::to_string(getpid());
  ASSERT_EQ(mkdir(place.c_str(), 0755), 0);
  ASSERT_EQ(mkdir((place + "/data").c_str(), 0755), 0);
  std::ofstream(place + "/data/key") << "0123456789abcdef\n";
  ASSERT_EQ(chmod((place + "/data/key").c_str(), 0600), 0);
  const auto link = [&](const std::string& target, const char* name) {
    EXPECT_EQ(symlink(target.c_str(), (place + "/" + name).c_str()), 0);
  };
  link("data", "..data");
  link("..data/key", "key");
  link(place + "//..data/", "absolute");
  link("loop", "loop");
  for (const char* name : {"data/key", "..data/key", "key", "absolute/key", "absent"}) {
    const bool is_there = std::string(name).ends_with("key");
    EXPECT_EQ(SecretKey::read_file(place + "/" + name).has_value(), is_there) << name;
  }
  EXPECT_THAT(SecretKey::read_file(place + "/loop").error().what, HasSubstr("symbolic links"));
  EXPECT_FALSE(SecretKey::read_file(""));
  EXPECT_FALSE(SecretKey::read_file("/"));
  if (lchown((place + "/..data").c_str(), 65534, 65534) == 0) {  // root's to do
    EXPECT_TRUE(SecretKey::read_file(place + "/data/key"));
    for (const char* name : {"..data/key", "key", "absolute/key"}) {
      const auto key = SecretKey::read_file(place + "/" + name);
      ASSERT_FALSE(key) << name;
      EXPECT_EQ(key.error().status, Status::kConfig);
      EXPECT_THAT(key.error().what, HasSubstr("the link ..data on the way to it belongs to user"));
    }
  }
  std::filesystem::remove_all(place);
}

TEST(ControlSigner, ASignatureHoldsInOnePlaceOnly) {
  const SecretKey key = key_of("0123456789abcdef");
  const Signer signer(key, "a", nonce_of(1), nonce_of(2));
  auto frame = encode(Heartbeat{kRef}, 5);
  ASSERT_TRUE(signer.sign(Direction::kRequest, frame));
  EXPECT_EQ(signer.check(Direction::kRequest, frame), true);
  EXPECT_EQ(signer.check(Direction::kAnswer, frame), false);
  EXPECT_EQ(Signer(key, "a", nonce_of(3), nonce_of(2)).check(Direction::kRequest, frame), false);
  EXPECT_EQ(Signer(key, "a", nonce_of(1), nonce_of(3)).check(Direction::kRequest, frame), false);
  EXPECT_EQ(Signer(key, "b", nonce_of(1), nonce_of(2)).check(Direction::kRequest, frame), false);
  EXPECT_EQ(Signer().check(Direction::kRequest, frame), false) << "signed, and we have no key";
  const SecretKey other = key_of("0123456789abcdeX");
  EXPECT_EQ(Signer(other, "a", nonce_of(1), nonce_of(2)).check(Direction::kRequest, frame), false);
  for (size_t i = 0; i < frame.size(); ++i) {
    frame[i] ^= std::byte{1};
    EXPECT_EQ(signer.check(Direction::kRequest, frame), false) << "byte " << i;
    frame[i] ^= std::byte{1};
  }
  EXPECT_EQ(signer.check(Direction::kRequest, encode(Done{}, 5)), false) << "not signed at all";
}

}  // namespace
}  // namespace slime::control
