// A connection beside the rails of a link, for an owner that asks for it. While no rail is up, it
// carries the control works that end the lives of rails and bring one back. What the link had
// submitted is safe meanwhile (Failover).
//
//   active end                                  passive end
//     its last rail dies
//     dials the listener again          -->       LinkOwner::resume() finds the link by its id,
//                                                 then take()
//     kFenceNotice for each life that   <-->      fails the rails that it still took for up, and
//     the peer has not answered                   answers
//     kJoin, kJoined                    <-->      (Rejoin)
//     a rail is up; it closes the connection
//
// States: idle; needed, from begin_need() to end_need(), while it is dialed or open; open without
// being needed, at an end that has not noticed the death yet, or whose last frames are not
// answered. The passive end closes one that it does not need and on which nothing comes. The active
// end dials again when a connection breaks that is needed. Works under way on it are lost. Their
// owners treat them as works of a dead rail: notices and kJoined are sent again. The link fails
// when no rail has returned in time, or when the peer does not have it any more.
//
// What makes it safe: it carries no data of the user, and its works may come twice or never, as
// those of rails. A kJoined that is lost with the connection costs the time of a try
// (times::kRejoin) at the end that misses it. Memory: kMostUnderWay works. Times are polled ones
// (LinkClock): an end that was stopped takes no more than rail_timeout / 16 of its own pause for
// the peer's silence. Thread: that of the link.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "link/lifeline/stream.h"
#include "link/link_context.h"
#include "link/link_memory.h"
#include "link/link_rails.h"

namespace slime {

class Lifeline {
 public:
  static constexpr size_t kMostUnderWay = kControlRoom;
  static constexpr uint32_t kMostFrames = 64;

  // `dialer`: at the active end. `limit_ns`: for how long the link lives without a rail; 0: it
  // fails with its last rail.
  Lifeline(LinkContext& context, const LinkMemory& memory, std::unique_ptr<LifelineDialer> dialer,
           uint64_t limit_ns)
      : context_(context), memory_(memory), dialer_(std::move(dialer)), limit_ns_(limit_ns) {}

  bool enabled() const { return limit_ns_ > 0; }
  bool open() const { return stream_ != nullptr; }
  bool idle() const { return !needed_ && !open(); }

  // The link has no rail any more, or one again.
  void begin_need(uint64_t now_ns);
  void end_need();
  // The peer has dialed; an older connection is replaced.
  void take(std::unique_ptr<LifelineStream> stream, uint64_t now_ns);
  // It must be open. The owner is told as with a rail.
  void send(const ControlWork& control);
  // Dials, answers, and looks at the deadlines: call next() before. An error has failed the link.
  Status progress(uint64_t now_ns);
  // The immediate of the next control work that has come; its bytes are in the inbox. nullopt: none
  // has come, the connection has broken, or the link has failed (LinkContext); or kMostFrames
  // frames were taken since the last progress(), as the thread polls other links too.
  std::optional<uint32_t> next(uint64_t now_ns);

 private:
  struct UnderWay {
    WorkOwner* owner;
    uint32_t part;
  };

  void send_frame(LifelineHeader header, std::span<const std::byte> payload);
  void begin_connection(uint64_t now_ns);
  void break_off(const Error& why);
  void close();
  void watch_connection(uint64_t now_ns);
  void warn_once();
  Status dial(uint64_t now_ns);
  std::string last_failure() const;
  bool take_answer(uint32_t taken, uint64_t now_ns);
  bool place(const LifelineHeader& header, std::span<const std::byte> payload);

  LinkContext& context_;
  const LinkMemory& memory_;
  const std::unique_ptr<LifelineDialer> dialer_;
  const uint64_t limit_ns_;
  bool needed_ = false, warned_ = false;
  uint64_t needed_since_ns_ = 0;
  std::string broke_because_;  // the last connection; "": none has since the need began
  // Of the present connection.
  std::unique_ptr<LifelineStream> stream_;
  std::deque<UnderWay> under_way_;  // frames that the peer has not taken yet, oldest first
  uint32_t peer_took_ = 0;          // how many of our frames the peer has taken
  uint32_t taken_ = 0, told_ = 0;   // the peer's frames; what we have said of that
  uint32_t frames_left_ = 0;        // that next() may take
  uint64_t came_ns_ = 0;            // when the last frame came
  uint64_t asked_ns_ = 0;           // when the last kAlive was sent
  uint64_t heard_ns_ = 0;           // when under_way_ last became shorter, or was empty
};

}  // namespace slime
