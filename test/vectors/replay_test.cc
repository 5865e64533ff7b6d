// Every vector, packet by packet, on the real shard, on the model of the protocol, and on the
// software switch over UDP: the outputs must be the recorded ones, in their order.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "switch/softswitch/softswitch.h"
#include "test/support/switch_model.h"
#include "test/vectors/recorder.h"

namespace slime::vectors {
namespace {

constexpr char kDirectory[] = "test/vectors/data";
constexpr int kPatienceMs = 20'000, kQuietMs = 30;

using Packets = std::vector<test::CapturedPacket>;

// Input `at` and the outputs that follow it.
std::span<const test::CapturedPacket> outputs_of(const Vector& vector, size_t at) {
  size_t end = at + 1;
  while (end < vector.packets.size() && !vector.is_input(vector.packets[end])) ++end;
  return std::span(vector.packets).subspan(at + 1, end - at - 1);
}

void expect_packets(const Packets& found, std::span<const test::CapturedPacket> expected,
                    size_t at) {
  ASSERT_EQ(found.size(), expected.size()) << "after packet " << at + 1;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(text_of(found[i]), text_of(expected[i])) << "packet " << at + 2 + i;
  }
}

class Replay : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto loaded = load_vector(kDirectory, GetParam());
    ASSERT_TRUE(loaded) << loaded.error().what;
    vector_ = std::move(*loaded);
    ASSERT_FALSE(vector_.packets.empty());
    ASSERT_TRUE(vector_.is_input(vector_.packets.front()));
  }
  Vector vector_;
};

TEST_P(Replay, OnShards) {
  Vector bare = vector_;
  bare.packets.clear();
  Recorder recorder(bare);
  for (size_t at = 0; at < vector_.packets.size(); ++at) {
    const test::CapturedPacket& packet = vector_.packets[at];
    if (!vector_.is_input(packet)) continue;
    const Packets found =
        recorder.deliver(packet.from, packet.payload, vector_.shard_of(packet.to));
    ASSERT_NO_FATAL_FAILURE(expect_packets(found, outputs_of(vector_, at), at));
  }
}

TEST_P(Replay, OnTheModel) {
  std::vector<test::SwitchModel> shards;
  for (uint32_t shard = 0; shard < vector_.shards; ++shard) {
    shards.emplace_back(shard, vector_.shards).add_job(vector_.job);
  }
  for (size_t at = 0; at < vector_.packets.size(); ++at) {
    const test::CapturedPacket& packet = vector_.packets[at];
    if (!vector_.is_input(packet)) continue;
    Packets found;
    for (const test::Answer& answer : shards[vector_.shard_of(packet.to)].handle(
             packet.payload, packet.from, packet.time_us * 1000)) {
      for (const SocketAddress& to : answer.to) found.push_back({0, packet.to, to, answer.bytes});
    }
    ASSERT_NO_FATAL_FAILURE(expect_packets(found, outputs_of(vector_, at), at));
  }
}

// Who has the recorded address and port, on this host: a socket.
class Peers {
 public:
  // False: an address is taken.
  bool bind_all(const Vector& vector) {
    for (const test::CapturedPacket& packet : vector.packets) {
      for (const SocketAddress& end : {packet.from, packet.to}) {
        if (vector.shard_of(end) < vector.shards || sockets_.count(end.to_string())) continue;
        Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        if (::bind(fd.get(), end.data(), end.size()) != 0) return false;
        sockets_[end.to_string()] = std::move(fd);
      }
    }
    return true;
  }
  bool send(const test::CapturedPacket& packet) {
    const Fd& fd = sockets_.at(packet.from.to_string());
    return ::sendto(fd.get(), packet.payload.data(), packet.payload.size(), 0, packet.to.data(),
                    packet.to.size()) == static_cast<ssize_t>(packet.payload.size());
  }
  std::string receive(const SocketAddress& at) {
    const Fd& fd = sockets_.at(at.to_string());
    pollfd ready{fd.get(), POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) != 1) return "nothing";
    test::CapturedPacket packet{0, {}, at, std::vector<std::byte>(sap::kMaxPacketBytes)};
    sockaddr_in name{};
    socklen_t bytes = sizeof name;
    const ssize_t got = ::recvfrom(fd.get(), packet.payload.data(), packet.payload.size(),
                                   MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&name), &bytes);
    packet.payload.resize(got > 0 ? static_cast<size_t>(got) : 0);
    packet.from = *SocketAddress::from_sockaddr(reinterpret_cast<sockaddr*>(&name), bytes);
    return text_of(packet);
  }
  bool hear_nothing() {
    std::vector<pollfd> all;
    for (const auto& [name, fd] : sockets_) all.push_back({fd.get(), POLLIN, 0});
    return poll(all.data(), all.size(), kQuietMs) == 0;
  }

 private:
  std::map<std::string, Fd> sockets_;
};

// The same vector in another part of 127.0.0.0/8: other tests on this host may be replaying too.
Vector moved(Vector vector, uint8_t network) {
  const auto move = [network](SocketAddress& address) {
    const std::string text = address.to_string();
    address =
        *SocketAddress::parse("127." + std::to_string(network) + text.substr(text.find('.', 4)));
  };
  move(vector.address);
  for (SocketAddress& child : vector.job.children) move(child);
  if (vector.job.parent) move(vector.job.parent->address);
  for (test::CapturedPacket& packet : vector.packets) {
    move(packet.from);
    move(packet.to);
  }
  return vector;
}

TEST_P(Replay, OnTheSoftwareSwitch) {
  std::unique_ptr<net::SoftSwitch> soft;
  Peers peers;
  Vector here;
  for (uint8_t network = 77; network < 117 && !soft; ++network) {
    here = moved(vector_, network);
    peers = Peers();
    net::SoftSwitchOptions options;
    options.address = here.address;
    options.shards = here.shards;
    options.max_lanes = 16;  // more than any vector's job: what is too long for the job arrives
    options.slot_bytes = 1 << 20;
    options.socket_buffer_bytes = 1 << 16;
    auto opened = net::SoftSwitch::open(options);
    if (opened && peers.bind_all(here)) soft = std::move(*opened);
  }
  if (!soft) GTEST_SKIP() << "no free addresses in 127.77.0.0 to 127.116.255.255";
  const auto added = soft->add_job(here.job);
  ASSERT_TRUE(added) << added.error().what;
  for (size_t at = 0; at < here.packets.size(); ++at) {
    if (!here.is_input(here.packets[at])) continue;
    ASSERT_TRUE(peers.send(here.packets[at]));
    for (const test::CapturedPacket& expected : outputs_of(here, at)) {
      ASSERT_EQ(peers.receive(expected.to), text_of(expected)) << "after packet " << at + 1;
    }
  }
  EXPECT_TRUE(peers.hear_nothing());
}

INSTANTIATE_TEST_SUITE_P(Vectors, Replay, testing::ValuesIn(vector_names(kDirectory)),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// `make vectors` writes them; afterwards, and everywhere else, they are what is written.
TEST(Generator, WritesWhatIsKept) {
  const char* directory = std::getenv("SLIME_WRITE_VECTORS");
  std::vector<std::string> names;
  for (const Vector& vector : generate()) {
    names.push_back(vector.name);
    if (directory != nullptr) {
      EXPECT_TRUE(save_vector(directory, vector));
    }
    const auto kept = load_vector(kDirectory, vector.name);
    ASSERT_TRUE(kept) << kept.error().what;
    EXPECT_EQ(print_job(*kept), print_job(vector));
    EXPECT_TRUE(kept->packets == vector.packets) << vector.name;
  }
  std::ranges::sort(names);
  EXPECT_EQ(vector_names(kDirectory), names);
}

}  // namespace
}  // namespace slime::vectors
