// Keeps a job alive on its switch by heartbeats, and closes it at the end.
//
// Threads: run_due() runs in the housekeeper's; let_lapse() may be called meanwhile. All else
// belongs to the communicator's thread.
#pragma once

#include <atomic>
#include <memory>

#include "base/housekeeper.h"
#include "switch/protocol/client.h"

namespace slime {

struct LeaseTerms {
  SocketAddress address;  // of the switch's control channel
  Credentials who;
  control::JobRef job;
  uint32_t lease_ms = 0;
};

class Lease final : private BackgroundTask {
 public:
  Lease(LeaseTerms terms, std::unique_ptr<SwitchClient> client,
        std::shared_ptr<Housekeeper> keeper);
  ~Lease() override;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  // The switch is lost: no more heartbeats, and the job is not closed at the end. Never waits.
  void let_lapse() { lapsing_ = true; }
  const LeaseTerms& terms() const { return terms_; }

 private:
  uint64_t run_due(uint64_t now_ns) override;
  Result<control::JobState> renew();

  const LeaseTerms terms_;
  std::unique_ptr<SwitchClient> client_;
  std::atomic<bool> lapsing_{false};
  bool warned_ = false;
  const std::shared_ptr<Housekeeper> keeper_;
};

}  // namespace slime
