// Rank 0's second role: gathers the ranks (rendezvous.h), carries their exchanges, and decides when
// the run has failed, and which rank has failed.
//
// States: gathering (until all ranks are here) -> running -> over, once there is a verdict or all
// ranks have left. There is one verdict at most, and it ends exchanges for good. Memory: that of a
// host, then per rank a connection (frames.h) and its part of one exchange. Threads: everything is
// done by one of its own; the ranks, rank 0 too, talk to it through member.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rendezvous/frames.h"
#include "rendezvous/identity.h"

namespace slime::rendezvous {

// What every rank of one run must agree on.
struct Agreement {
  std::string token;
  int size = 0;
  std::string version;    // of the program
  std::string arguments;  // what of the command line must be alike
};
// The hello of a rank.
nlohmann::json hello_of(const Agreement& agreement);

class Coordinator {
 public:
  // Listens on the identity's port, or takes over its listen_fd.
  static Result<std::unique_ptr<Coordinator>> start(const Identity& identity, Agreement agreement,
                                                    double timeout_s);
  ~Coordinator();  // returns when all ranks have left, or shortly after a verdict

 private:
  struct Rank {
    std::unique_ptr<Connection> connection;  // null: gone
    std::string name;                        // for sentences
    uint64_t heard_ns = 0;
    uint64_t beats = 0;
    std::string where;
    std::optional<nlohmann::json> part;  // of the exchange
    bool left = false;
    bool silent = false;  // when the verdict was found
  };
  struct Exchange {
    uint64_t number = 0;
    size_t parts = 0;  // that have come
    std::string label;
  };
  struct Verdict {
    std::string text;
    bool usage = false;
    int grace_s = 0;        // how long ranks may go on, so that their plugins notice it themselves
    bool reported = false;  // a rank has reported it about itself
    uint64_t at_ns = 0;     // 0: none
  };

  Coordinator(Agreement agreement, double timeout_s);
  void run(Fd listener);
  Result<void> gather(Fd listener);
  void wait_for_events() const;
  void excuse_pause();
  void serve_ranks();
  void handle(size_t rank, const Frame& frame);
  void take_part(size_t rank, const nlohmann::json& body);
  void take_failure(size_t rank, const nlohmann::json& body);
  void complete_exchange();
  void watch();
  void blame_stall(uint64_t idle_s);
  void decide(Verdict verdict);
  void broadcast(FrameType type, const nlohmann::json& body);
  bool is_over() const { return verdict_.at_ns != 0; }
  bool all_left() const;

  const Agreement agreement_;
  const uint64_t timeout_ns_;
  std::vector<Rank> ranks_;
  Exchange exchange_;
  uint64_t moved_ns_ = 0, beat_ns_ = 0, looked_ns_ = 0;
  Verdict reported_;  // of the first rank that reported a failure: decided a little later
  Verdict verdict_;
  std::thread thread_;
};

}  // namespace slime::rendezvous
