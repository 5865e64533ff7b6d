// Two ranks of a CollNet in one process, and a software switch in the same process.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "switch/protocol/client.h"
#include "test/boundary/support/coll_api.h"
#include "test/support/local_switch.h"

namespace slime::boundary {

inline std::unique_ptr<LocalSwitch> switch_at(const std::string& address) {
  return std::make_unique<LocalSwitch>(LocalSwitchOptions{.listen = address});
}
// The jobs of a switch, as it says itself.
inline nlohmann::json jobs_on(const LocalSwitch& of) {
  auto client =
      SwitchClient::open(SocketAddress::parse(of.address()).value(), SecretKey(), 60'000'000'000);
  const auto report = client ? (*client)->report(true, 60'000'000'000) : control::Text();
  return report ? nlohmann::json::parse(report->text, nullptr, false)["jobs"] : nlohmann::json();
}
// To all of them.
inline uint64_t contributions(const LocalSwitch& of) {
  uint64_t sum = 0;
  for (const auto& job : jobs_on(of)) sum += job["counters"]["contributions"].get<uint64_t>();
  return sum;
}

inline nlohmann::json job_on(const LocalSwitch& of) {
  const auto jobs = jobs_on(of);
  EXPECT_EQ(jobs.size(), 1u);
  return jobs.empty() ? nlohmann::json() : jobs[0];
}

// An operator ends the generation of this switch's job, which is lost at once. A switch keeps
// generations some time apart.
inline void fence(const LocalSwitch& one) {
  auto client =
      SwitchClient::open(SocketAddress::parse(one.address()).value(), SecretKey(), 60'000'000'000);
  ASSERT_TRUE(client);
  const uint16_t job = job_on(one)["job"];
  EXPECT_TRUE(wait_until([&] { return (*client)->fence_number(job, 60'000'000'000).has_value(); }));
}

struct Rank {
  void* comm = nullptr;
  void* mhandle = nullptr;
  std::vector<int32_t> memory;  // send, then receive
  ResultCode connected = nccl::kInProgress;
};

class CollPair : public CollTest {
 protected:
  void each(const std::function<void(Rank&)>& task) {
    std::thread other([&] { task(ranks_[1]); });
    task(ranks_[0]);
    other.join();
  }

  void connect() {
    std::array<HandleBytes, 2> bytes{};
    void *listening[2] = {}, *handles[2] = {bytes[0].data(), bytes[1].data()};
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(coll_.listen(0, handles[i], &listening[i]), nccl::kSuccess);
    }
    each([&](Rank& rank) {
      const size_t i = &rank == &ranks_[0] ? 0 : 1;
      rank.connected = coll_.connect(handles, 2, static_cast<int>(i), listening[i], &rank.comm);
      if (rank.connected == nccl::kSuccess) {
        EXPECT_EQ(coll_.close_listen(listening[i]), nccl::kSuccess);
      }
    });
  }

  Rank ranks_[2];
};

class CollSwitch : public CollPair {
 protected:
  static constexpr size_t kElements = 3000;
  virtual void settings() { set("NCCL_SLIME_SWITCH_TIMEOUT", "60"); }
  virtual std::string switches() const { return switch_->address(); }
  virtual bool keeps_log() const { return false; }  // of connect

  void SetUp() override {
    settings();
    set("NCCL_SLIME_SWITCH", switches().c_str());
    init();
    connect();
    for (Rank& rank : ranks_) {
      ASSERT_EQ(rank.connected, nccl::kSuccess) << Log::text();
      ASSERT_NE(rank.comm, nullptr);
      rank.memory.resize(2 * kElements);
      ASSERT_EQ(coll_.reg_mr(rank.comm, rank.memory.data(),
                             static_cast<int64_t>(rank.memory.size() * sizeof(int32_t)),
                             nccl::kPointerHost, &rank.mhandle),
                nccl::kSuccess);
    }
    if (!keeps_log()) Log::clear();
  }

  void TearDown() override {
    for (Rank& rank : ranks_) {
      if (rank.mhandle == nullptr) continue;
      EXPECT_EQ(coll_.dereg_mr(rank.comm, rank.mhandle), nccl::kSuccess);
    }
    // Rank 0 gives the job back when the other has left.
    each([this](Rank& rank) {
      if (rank.comm == nullptr) return;
      EXPECT_EQ(coll_.close_coll(rank.comm), nccl::kSuccess);
    });
    finalize_both();
  }

  AllreduceCall call_of(Rank& rank, size_t first = 0, size_t count = kElements) const {
    return {.send = rank.memory.data() + first,
            .receive = rank.memory.data() + kElements + first,
            .count = static_cast<int64_t>(count),
            .send_mhandle = rank.mhandle,
            .receive_mhandle = rank.mhandle};
  }
  void* start(Rank& rank, const AllreduceCall& call) {
    void* request = nullptr;
    EXPECT_EQ(coll_.iallreduce(rank.comm, call, &request), nccl::kSuccess) << Log::text();
    return request;
  }
  // Both requests done.
  bool wait_for(void* first, void* second) {
    void* requests[2] = {first, second};
    return wait_until([&] {
      for (void*& request : requests) {
        int done = 0, size = -1;
        if (request == nullptr) continue;
        EXPECT_EQ(coll_.test(request, &done, &size), nccl::kSuccess) << Log::text();
        if (done != 0) request = nullptr;
      }
      return HasFailure() || (requests[0] == nullptr && requests[1] == nullptr);
    });
  }
  void fill() {
    for (size_t i = 0; i < kElements; ++i) {
      ranks_[0].memory[i] = static_cast<int32_t>(i * 7919);
      ranks_[1].memory[i] = -static_cast<int32_t>(i * 7907);
    }
  }
  bool has_sums(const Rank& rank) const {
    for (size_t i = 0; i < kElements; ++i) {
      if (rank.memory[kElements + i] != static_cast<int32_t>(i * 12)) return false;
    }
    return true;
  }

  void sum() {
    fill();
    for (Rank& rank : ranks_) std::fill_n(&rank.memory[kElements], kElements, 0);
    void* const first = start(ranks_[0], call_of(ranks_[0]));
    void* const second = start(ranks_[1], call_of(ranks_[1]));
    ASSERT_TRUE(wait_for(first, second)) << Log::text();
    ASSERT_TRUE(has_sums(ranks_[0]) && has_sums(ranks_[1]));
  }
  // Sums up until the log says so.
  void sum_until(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (Log::text().find(text) == std::string::npos) {
      ASSERT_NO_FATAL_FAILURE(sum());
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "no '" << text << "' in\n" << Log::text();
    }
  }

  std::unique_ptr<LocalSwitch> switch_ = std::make_unique<LocalSwitch>();
};

}  // namespace slime::boundary
