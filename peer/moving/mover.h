// Moves the pieces of requests over a link.
//
// Requests begin in the order in which they came, while fewer than kTransfersPerRail pieces a rail
// and kMostOpenBytes a rail are under way. Up to kMostPassed requests that wait for the peer's keys
// let others pass. Those that wait for room let requests of up to kSmall bytes pass, which would
// wait for a whole long request otherwise. A piece is cut where it is longer than kMostPiece, so
// that a request that is given up ends soon. A long request gets its pieces some at a time, when
// there is room for them.
//
// States of a request here: waiting (for keys, or for room), begun (in moving_), ended. A write
// into memory of a device is flushed before it ends. One that is overdue begins nothing more, and
// ends with its last transfer. If that does not come, the rails that carry it are fenced: then
// nothing of it is under way when both ends have. Memory: as many transfers as were ever under way
// at once, kTransfersPerRail for each rail at most. Thread: that of the link.
#pragma once

#include <deque>
#include <memory>
#include <memory_resource>
#include <vector>

#include "link/link.h"
#include "link/transfer.h"
#include "link/transfer_queue.h"
#include "peer/keys.h"
#include "peer/messages/messages.h"
#include "peer/moving/peer_request.h"
#include "peer/moving/remote_flushes.h"

namespace slime {

class Mover {
 public:
  // A quarter more than the send queue of a rail holds (RailCaps::send_queue_depth, 256): with
  // fewer, works leave as soon as they are made, and each has a doorbell of its own.
  static constexpr size_t kTransfersPerRail = 320;
  static constexpr size_t kMostPassed = 256, kMostPassedBySmall = 32;
  static constexpr uint64_t kSmall = 64 << 10;  // bytes of a request
  static constexpr uint64_t kMostPiece = 16 << 20;
  static constexpr size_t kRefill = 1024;  // pieces of a long request
  // Begun and not ended, for each rail that is up: so that what comes later waits for no more.
  static constexpr uint64_t kMostOpenBytes = 64 << 20;
  // When it is overdue, what a request has under way gets so long to end by itself, and then the
  // peer so long to fence the rails that carry it.
  static constexpr uint64_t kGraceNs = 100'000'000;
  static constexpr uint64_t kFenceNs = 800'000'000;
  // Deadlines are looked at so often, at most; and at least, as requests may be cancelled.
  static constexpr uint64_t kLookNs = 5'000'000, kLateLookNs = 20'000'000;

  // `number`: of the link, among all of this peer. `messages` get requests whose pieces have been
  // moved, or whose message follows them.
  Mover(Rings& rings, Keys& keys, Messages& messages, uint64_t number,
        std::pmr::memory_resource* memory)
      : link_(rings.link),
        rings_(rings),
        keys_(keys),
        messages_(messages),
        number_(number),
        queue_(link_.rails(), link_.scheduler()),
        flushes_(link_.rails(), number),
        waiting_(memory),
        moving_(memory) {}

  void add(std::shared_ptr<PeerRequest> request);
  // Deadlines. False: transfers of an overdue request do not end. Then the link must go, so that
  // nothing touches their memory.
  bool in_time(uint64_t now_ns);
  // Begins what can begin, and ends requests that have a result. Call it after Link::progress().
  void move(uint64_t now_ns);
  // Of small requests, on average; 0: there was none.
  uint64_t round_trip_ns() const { return round_trip_ns_; }
  bool idle() const { return waiting_.empty() && moving_.empty(); }
  // Little is under way, and nothing waits for that.
  bool is_light() const { return waiting_.empty() && open_bytes_ <= kSmall; }
  // Before a dead rail hands back its works. Stripes are not sent again where their request is
  // given up, or the peer has taken the message behind them, or got(request): it has that message,
  // and has not taken it yet. Then they have come, or were refused, and the peer refuses the
  // message too.
  template <typename Got>
  void note_arrived(Got got) {
    for (const auto& transfer : transfers_) {
      PeerRequest* const of = transfer->request;
      if (of == nullptr) continue;
      const bool ends = of->given_up() || of->has_followed();
      if (!ends && !got(*of)) continue;
      if (!ends) of->await_answer();
      transfer->note_arrived(UINT64_MAX);
    }
  }
  void add_open(Requests* to) const;  // of the program
  void end_those_done(uint64_t now_ns) { end_those_done(&moving_, now_ns); }
  void give_all_up(const Error& why);
  // All that have not ended, for who ends them when the link touches their memory no more.
  std::vector<std::shared_ptr<PeerRequest>> take_all();

 private:
  struct PieceTransfer final : Transfer {
    void on_placed(size_t rail, uint64_t bytes, bool again) override {
      request->placed(rail, bytes, again);
    }
    void on_end() override { mover->ended(*this); }

    Mover* mover = nullptr;
    PeerRequest* request = nullptr;
    Remote* remote = nullptr;
  };

  using Queue = std::pmr::deque<std::shared_ptr<PeerRequest>>;

  void end_those_done(Queue* requests, uint64_t now_ns);
  void measure(const PeerRequest& request, uint64_t now_ns);
  bool is_over(PeerRequest& request);
  bool ends_in_time(PeerRequest& request, uint64_t now_ns, uint64_t* look_ns);
  void give_up(PeerRequest& request, Error why);
  void fence_rails(PeerRequest& request);
  bool has_room(const PeerRequest& request) const;
  void prepare(PeerRequest& request);
  bool begin(PeerRequest& request);
  void start(PeerRequest& request);
  PieceTransfer& take_transfer();
  void ended(PieceTransfer& transfer);
  void let_message_follow(const std::shared_ptr<PeerRequest>& request, uint64_t now_ns);
  uint64_t most_bytes() const;

  Link& link_;
  Rings& rings_;
  Keys& keys_;
  Messages& messages_;
  const uint64_t number_;
  TransferQueue queue_;
  RemoteFlushes flushes_;
  std::vector<std::unique_ptr<PieceTransfer>> transfers_;
  std::vector<PieceTransfer*> free_;
  Queue waiting_;            // not all of them has begun
  Queue moving_;             // all has
  uint64_t open_bytes_ = 0;  // of transfers
  uint64_t round_trip_ns_ = 0;
  uint64_t look_ns_ = UINT64_MAX;  // when in_time() looks at all of them
};

}  // namespace slime
