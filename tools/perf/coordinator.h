// Rank 0's second role: seats the ranks, carries their exchanges, and decides when the run failed
// and who is to blame. One thread; ranks (rank 0 too) talk to it through member.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/net/socket.h"
#include "tools/perf/hello_port.h"
#include "tools/perf/identity.h"
#include "tools/perf/wire.h"

namespace slime::perf {

// What every rank of one run must agree on.
struct Agreement {
  std::string token;
  int size = 0;
  std::string version;    // of slime-perf
  std::string arguments;  // what of the command line must be alike
};
nlohmann::json to_json(const Agreement& agreement);
// Empty: they agree. Otherwise the sentence that a refused rank is told.
std::string disagreement(const Agreement& wanted, const nlohmann::json& hello);

class Coordinator {
 public:
  // Listens on the identity's port, or takes over its listen_fd.
  static Result<std::unique_ptr<Coordinator>> start(const Identity& identity, Agreement agreement,
                                                    double timeout_s);
  ~Coordinator();  // returns when all ranks have left, or shortly after a verdict

 private:
  struct Seat {
    std::unique_ptr<Wire> wire;  // null: not here (yet)
    std::string host;
    int64_t pid = 0;
    uint64_t heard_ns = 0;
    uint64_t pulse = 0;
    std::string where;
    bool has_part = false;
    nlohmann::json part;
    bool left = false;
    bool silent = false;  // when the verdict was found
  };

  Coordinator(Fd listener, Agreement agreement, double timeout_s);
  void run();
  void wait_for_events();
  void excuse_absence();
  void seat(Caller caller);
  void serve_seats();
  void handle(size_t rank, const Frame& frame);
  void take_part(size_t rank, const nlohmann::json& body);
  void take_failure(size_t rank, const nlohmann::json& body);
  void complete_exchange();
  void watch();
  void blame_stall(uint64_t idle_s);
  // `grace_s`: how long ranks may go on, so that plugins can say how they saw it.
  void judge(int culprit, const std::string& text, bool usage = false, int grace_s = 0);
  void broadcast(FrameType type, const nlohmann::json& body);
  std::string describe(size_t rank) const;
  bool all_left() const;

  HelloPort port_;
  const Agreement agreement_;
  const uint64_t timeout_ns_;
  std::vector<Seat> seats_;
  size_t seated_ = 0;
  uint64_t exchange_ = 0;
  size_t parts_ = 0;
  std::string label_;
  uint64_t started_ns_ = 0, moved_ns_ = 0, beat_ns_ = 0, looked_ns_ = 0;
  uint64_t failure_ns_ = 0;  // when the first rank reported a failure
  int failed_rank_ = -1;
  std::string failure_;
  bool usage_failure_ = false;
  bool reported_ = false;   // the verdict is what a rank has said of itself
  uint64_t judged_ns_ = 0;  // 0: the run goes on
  std::string verdict_;
  std::thread thread_;
};

}  // namespace slime::perf
