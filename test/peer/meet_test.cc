// How engines find each other: by host and port, by coming, and by the names of regions.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/net/socket.h"
#include "test/peer/test_engine.h"

namespace slime {
namespace {

constexpr int64_t kPatienceNs = 60'000'000'000;

slime_options named(const char* name) {
  slime_options options = TestEngine::with("ifname=lo");
  options.name = name;
  return options;
}

slime_peer_info accept(TestEngine& engine, int64_t timeout_ns = kPatienceNs) {
  slime_peer_info info = SLIME_PEER_INFO_INIT;
  EXPECT_EQ(slime_accept(engine.engine, timeout_ns, &info), SLIME_OK) << slime_last_error();
  return info;
}

std::vector<char> address_in(const slime_peer_info& info) {
  const char* const bytes = static_cast<const char*>(info.address);
  return {bytes, bytes + info.address_bytes};
}

bool none_comes(TestEngine& engine) {
  slime_peer_info info = SLIME_PEER_INFO_INIT;
  return slime_accept(engine.engine, 0, &info) == SLIME_AGAIN;
}

TEST(Accept, TellsWhoHasCome) {
  TestEngine producer(named("producer")), consumer(named("consumer 1"));
  EXPECT_TRUE(none_comes(producer));
  const slime_peer to_producer = consumer.know(producer);
  EXPECT_EQ(consumer.end(consumer.notify(to_producer, "hello")).status, SLIME_OK);
  const slime_peer_info came = accept(producer);
  EXPECT_STREQ(came.name, "consumer 1");
  EXPECT_EQ(came.state, SLIME_PEER_UP);
  EXPECT_TRUE(address_in(came) == consumer.address());
  const slime_peer back = came.peer;
  EXPECT_EQ(producer.end(producer.notify(back, "and back")).status, SLIME_OK);
  EXPECT_EQ(consumer.fetch(1).size(), 1u);
  EXPECT_EQ(producer.fetch(1).at(0).first, back);
  EXPECT_TRUE(none_comes(producer));
  EXPECT_TRUE(none_comes(consumer));  // it has added the other one
  EXPECT_STREQ(consumer.info(to_producer).name, "producer");
}

TEST(Accept, APeerThatHasComeCanBeDialedAgain) {
  TestEngine producer, consumer;
  const slime_peer to_producer = consumer.know(producer);
  EXPECT_EQ(consumer.end(consumer.notify(to_producer, "hello")).status, SLIME_OK);
  const slime_peer back = accept(producer).peer;
  consumer.remove(to_producer);
  // The producer's request may be on its way while the link ends, so it is repeated.
  slime_result result = SLIME_RESULT_INIT;
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kPatienceNs);
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    result = producer.end(producer.notify(back, "again"));
    if (result.status != SLIME_OK) {
      EXPECT_EQ(slime_connect(producer.engine, back, kPatienceNs), SLIME_OK) << slime_last_error();
    }
  } while (result.status != SLIME_OK && std::chrono::steady_clock::now() < end);
  EXPECT_EQ(result.status, SLIME_OK) << result.text;
  EXPECT_NE(accept(consumer).peer, to_producer);
}

TEST(Accept, TellsNothingOfThoseWhoAreAddedOrRemoved) {
  TestEngine here, first, second;
  for (TestEngine* one : {&first, &second}) {
    EXPECT_EQ(one->end(one->notify(one->know(here), "hello")).status, SLIME_OK);
  }
  here.know(first);
  here.remove(here.know(second));
  EXPECT_TRUE(none_comes(here));
}

TEST(Accept, WaitsForOneWhoComes) {
  TestEngine here, there;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(slime_connect(there.engine, there.know(here), kPatienceNs), SLIME_OK);
  });
  int descriptor = -1;
  ASSERT_EQ(slime_event_fd(here.engine, SLIME_EVENT_PEERS, &descriptor), SLIME_OK);
  pollfd readable = {descriptor, POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 60'000), 1);
  EXPECT_NE(accept(here).peer, 0u);
  later.join();
  EXPECT_EQ(::poll(&readable, 1, 0), 0);
  slime_peer_info none = SLIME_PEER_INFO_INIT;
  EXPECT_EQ(slime_accept(here.engine, 20'000'000, &none), SLIME_AGAIN);
}

TEST(Accept, NamesAreChecked) {
  slime_engine* engine = nullptr;
  const std::string longest(255, 'n'), too_long(256, 'n');
  slime_options options = named(too_long.c_str());
  EXPECT_EQ(slime_open(&options, &engine), SLIME_ERR_INVALID);
  TestEngine here(named(longest.c_str())), there;
  const slime_peer peer = there.know(here);
  EXPECT_EQ(there.end(there.notify(peer, "x")).status, SLIME_OK);
  EXPECT_NE(std::string(accept(here).name).find(std::to_string(::getpid())), std::string::npos);
  EXPECT_EQ(there.info(peer).name, longest);
}

// Finding

// A port of this host that nobody listens at, most likely.
class FreePort {
 public:
  FreePort() {
    auto listener = listen_on(*SocketAddress::parse("127.0.0.1:0"));
    EXPECT_TRUE(listener);
    text_ = local_address(*listener)->to_string();
  }
  const char* text() const { return text_.c_str(); }

 private:
  std::string text_;
};

int find(TestEngine& engine, const char* where, int64_t timeout_ns, std::vector<char>* blob) {
  blob->resize(SLIME_ADDRESS_BYTES);
  size_t bytes = blob->size();
  const int status = slime_find(engine.engine, where, timeout_ns, blob->data(), &bytes);
  blob->resize(status == SLIME_OK ? bytes : 0);
  return status;
}

TEST(Find, AnEngineThatIsDiscoverable) {
  const FreePort port;
  slime_options options = TestEngine::with("ifname=lo");
  options.discoverable = port.text();
  TestEngine there(options), here;
  for (int i = 0; i < 100; ++i) {
    std::vector<char> blob;
    ASSERT_EQ(find(here, port.text(), kPatienceNs, &blob), SLIME_OK) << slime_last_error();
    EXPECT_TRUE(blob == there.address());
  }
  std::vector<char> blob;
  ASSERT_EQ(find(here, port.text(), kPatienceNs, &blob), SLIME_OK);
  EXPECT_EQ(here.end(here.notify(here.know(blob), "found")).status, SLIME_OK);
  slime_engine* second = nullptr;
  EXPECT_EQ(slime_open(&options, &second), SLIME_ERR_SYSTEM);  // the port is taken
}

TEST(Find, WaitsForAnEngineThatIsOpenedLater) {
  const FreePort port;
  TestEngine here;
  std::vector<char> blob;
  EXPECT_EQ(find(here, port.text(), 30'000'000, &blob), SLIME_ERR_TIMEOUT);
  EXPECT_NE(std::strstr(slime_last_error(), port.text()), nullptr) << slime_last_error();
  std::thread later([&] { (void)find(here, port.text(), kPatienceNs, &blob); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  slime_options options = TestEngine::with("ifname=lo");
  options.discoverable = port.text();
  TestEngine there(options);
  later.join();
  EXPECT_TRUE(blob == there.address());
}

TEST(Find, WhatIsNoEngineIsNamed) {
  auto listener = listen_on(*SocketAddress::parse("127.0.0.1:0"));
  ASSERT_TRUE(listener);
  const std::string where = local_address(*listener)->to_string();
  std::thread other([&] {
    const std::string text = "220 mail.example ready\r\n";
    pollfd waited = {listener->get(), POLLIN, 0};
    (void)::poll(&waited, 1, 60'000);
    const Fd caller(::accept(listener->get(), nullptr, nullptr));
    (void)::send(caller.get(), text.data(), text.size(), 0);
  });
  TestEngine here;
  std::vector<char> blob;
  EXPECT_EQ(find(here, where.c_str(), kPatienceNs, &blob), SLIME_ERR_REMOTE);
  EXPECT_NE(std::strstr(slime_last_error(), where.c_str()), nullptr) << slime_last_error();
  other.join();
  EXPECT_NE(find(here, "no port", kPatienceNs, &blob), SLIME_OK);
  EXPECT_NE(find(here, "127.0.0.1", kPatienceNs, &blob), SLIME_OK);
}

// Names of regions

class RegionsTest : public testing::Test {
 protected:
  slime_region add(std::span<char> memory, const char* name, int expected = SLIME_OK) {
    slime_memory terms = SLIME_MEMORY_INIT;
    terms.name = name;
    slime_region region = 0;
    EXPECT_EQ(slime_register(there_.engine, memory.data(), memory.size(), &terms, &region),
              expected)
        << slime_last_error();
    return region;
  }
  std::vector<slime_remote_info> list(size_t most = 1000) {
    std::vector<slime_remote_info> all(most);
    size_t count = most;
    EXPECT_EQ(slime_regions(here_.engine, peer_, kPatienceNs, all.data(), &count), SLIME_OK)
        << slime_last_error();
    all.resize(std::min(most, count));
    listed_ = count;
    return all;
  }

  std::vector<char> mine_ = std::vector<char>(100), theirs_ = std::vector<char>(100, 't');
  TestEngine here_, there_;
  slime_peer peer_ = here_.know(there_);
  size_t listed_ = 0;
};

TEST_F(RegionsTest, AreFoundByName) {
  EXPECT_TRUE(list().empty());
  there_.add(theirs_);  // without a name
  const slime_region keys = add(theirs_, "keys");
  add(theirs_, "a name of 63 bytes, the longest that there may be, in this text");
  const auto all = list();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_STREQ(all[1].name, "keys");
  EXPECT_EQ(all[1].base, reinterpret_cast<uint64_t>(theirs_.data()));
  EXPECT_EQ(all[1].bytes, theirs_.size());
  EXPECT_EQ(all[1].rights, uint32_t{SLIME_REMOTE_READ | SLIME_REMOTE_WRITE});
  slime_remote remote = 0;
  ASSERT_EQ(slime_import(here_.engine, peer_, all[1].blob, &remote), SLIME_OK);
  EXPECT_EQ(here_.run(peer_, SLIME_READ, {here_.add(mine_), remote, 0, 0, 100}).status, SLIME_OK);
  EXPECT_EQ(mine_, theirs_);
  EXPECT_EQ(slime_deregister(there_.engine, keys, -1), SLIME_OK);
  EXPECT_EQ(list().size(), 1u);
}

TEST_F(RegionsTest, HaveNamesOfTheirOwn) {
  add(theirs_, "keys");
  add(theirs_, "keys", SLIME_ERR_INVALID);
  EXPECT_NE(std::strstr(slime_last_error(), "keys"), nullptr);
  add(theirs_, std::string(64, 'n').c_str(), SLIME_ERR_INVALID);
  EXPECT_EQ(list().size(), 1u);
}

TEST_F(RegionsTest, ManyOfThemAndLittleRoom) {
  for (int i = 0; i < 500; ++i) add(theirs_, ("layer " + std::to_string(i)).c_str());
  const auto all = list();
  ASSERT_EQ(all.size(), 500u);
  EXPECT_TRUE(
      std::ranges::is_sorted(all, {}, [](const auto& one) { return std::string(one.name); }));
  EXPECT_EQ(list(3).size(), 3u);
  EXPECT_EQ(listed_, 500u);
}

// Each end has more to answer than its ring holds, while it waits for the other's answer.
TEST(Regions, TwoEnginesAskEachOtherAtTheSameTime) {
  const size_t kRegions = 300;
  std::vector<char> memory(100);
  TestEngine left, right;
  for (TestEngine* one : {&left, &right}) {
    for (size_t i = 0; i < kRegions; ++i) {
      const std::string name = "layer " + std::to_string(i);
      slime_memory terms = SLIME_MEMORY_INIT;
      terms.name = name.c_str();
      slime_region region = 0;
      ASSERT_EQ(slime_register(one->engine, memory.data(), memory.size(), &terms, &region),
                SLIME_OK);
    }
  }
  const auto ask = [kRegions](TestEngine& engine, slime_peer peer) {
    for (int i = 0; i < 20; ++i) {
      size_t count = 0;
      EXPECT_EQ(slime_regions(engine.engine, peer, kPatienceNs, nullptr, &count), SLIME_OK)
          << slime_last_error();
      EXPECT_EQ(count, kRegions);
    }
  };
  const slime_peer to_right = left.know(right), to_left = right.know(left);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back(ask, std::ref(left), to_right);
    threads.emplace_back(ask, std::ref(right), to_left);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RegionsTest, OfAPeerThatIsRemovedMeanwhile) {
  EXPECT_TRUE(list().empty());
  for (int i = 0; i < 50; ++i) add(theirs_, ("layer " + std::to_string(i)).c_str());
  size_t count = 0;
  const int status = slime_regions(here_.engine, peer_, 1, nullptr, &count);  // 1 ns
  EXPECT_TRUE(status == SLIME_ERR_TIMEOUT || status == SLIME_OK) << slime_last_error();
  here_.remove(peer_);
  const slime_peer_info came = accept(there_);
  for (int ms = 0; there_.info(came.peer).state == SLIME_PEER_UP && ms < 60'000; ++ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_NE(std::strstr(there_.info(came.peer).text, "has removed"), nullptr)
      << there_.info(came.peer).text;
}

TEST_F(RegionsTest, OfAPeerThatIsGone) {
  EXPECT_TRUE(list().empty());
  there_.close();
  slime_remote_info room;
  size_t count = 1;
  EXPECT_EQ(slime_regions(here_.engine, peer_, kPatienceNs, &room, &count), SLIME_ERR_REMOTE);
  EXPECT_EQ(slime_regions(here_.engine, peer_ + 1, kPatienceNs, &room, &count), SLIME_ERR_INVALID);
}

}  // namespace
}  // namespace slime
