// Keeps the two ends of a link in touch while none of its rails is up, for an owner that asks for
// it: a connection beside the rails, over which the control works travel that end the lives of the
// rails and bring one back. What the link had submitted is safe meanwhile (Failover).
//
//   active end                                  passive end
//     its last rail dies
//     dials the listener again          -->       take(): the owner finds the link by its id
//     kFenceNotice for each life that   <-->      fails the rails that it still took for up, and
//     the peer has not answered                   answers
//     kJoin, kJoined                    <-->      (Rejoin)
//     a rail is up; it closes the connection
//
// States: idle; needed, from rails_gone() to rail_up(), while it is dialed or open; open without
// being needed, at an end that has not noticed the death yet, or whose last frames are not
// answered. A connection that breaks is dialed again. Works under way on it are lost then, and
// their owners repeat them, as with a rail. The link fails when no rail has returned in time, or
// when the peer does not have it any more.
//
// What makes it safe: it carries no data of the user, and its frames may come twice or never, as
// those of rails. Memory: kMostUnderWay works. Thread: that of the link.
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

  // `dialer`: at the active end. `limit_ns`: for how long the link lives without a rail; 0: it
  // fails with its last rail.
  Lifeline(LinkContext& context, const LinkMemory& memory, std::unique_ptr<LifelineDialer> dialer,
           uint64_t limit_ns)
      : context_(context), memory_(memory), dialer_(std::move(dialer)), limit_ns_(limit_ns) {}

  bool wanted() const { return limit_ns_ > 0; }
  bool open() const { return stream_ != nullptr; }
  bool idle() const { return !needed_ && !open(); }

  void rails_gone(uint64_t now_ns);
  void rail_up() { needed_ = false; }
  // The peer has dialed; an older connection is replaced.
  void take(std::unique_ptr<LifelineStream> stream);
  // It must be open. The owner is told as with a rail.
  void send(const ControlWork& control);
  // Dials, answers, and looks at the deadlines. An error has failed the link.
  Status progress(uint64_t now_ns);
  // The immediate of the next control work that has come. Its bytes are in the inbox.
  std::optional<uint32_t> next();

 private:
  struct UnderWay {
    WorkOwner* owner;
    uint32_t part;
  };

  void send_frame(LifelineHeader header, std::span<const std::byte> payload);
  void opened(uint64_t now_ns);
  void broken(const Error& why);
  void close();
  Status dial(uint64_t now_ns);
  bool take_answer(uint32_t taken);
  bool place(const LifelineHeader& header, std::span<const std::byte> payload);

  LinkContext& context_;
  const LinkMemory& memory_;
  const std::unique_ptr<LifelineDialer> dialer_;
  const uint64_t limit_ns_;
  bool needed_ = false;
  uint64_t needed_since_ns_ = 0;
  std::string last_failure_;
  // Of the present connection.
  std::unique_ptr<LifelineStream> stream_;
  std::deque<UnderWay> under_way_;  // frames that the peer has not taken yet, oldest first
  uint32_t peer_took_ = 0;          // our frames before these
  uint32_t taken_ = 0, told_ = 0;   // the peer's frames; what we have said of that
  uint64_t asked_ns_ = 0;           // when the last kAlive was sent
  uint64_t heard_ns_ = 0;           // when under_way_ last became shorter, or was empty
};

}  // namespace slime
