// What a program has asked an engine to do: to move pieces of memory to or from one peer, and to
// tell the peer of that.
//
// States: queued, until the peer's link takes it; moving, until its pieces have been moved;
// telling, until the peer has its messages; done, with a result that does not change any more. A
// message that follows its pieces on their rail is told while they move. Then there are two more,
// beside these:
//   lost      pieces were lost, but the peer may have the message behind them, and then has them.
//             Either it is followed, or its message comes back and it is queued again (restart())
//   followed  the peer has taken that message, so no piece is moved again
// Threads: the parts say whose they are.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "peer/messages/message.h"
#include "peer/moving/piece_source.h"
#include "peer/named_regions.h"
#include "peer/region.h"

namespace slime {

// Contiguous at both ends.
struct Piece {
  const std::byte* local = nullptr;
  const MemoryRegion* memory = nullptr;  // of `local`
  Remote* remote = nullptr;
  uint64_t remote_offset = 0;
  uint64_t bytes = 0;
};

struct Outcome {
  Error error{Status::kOk, 0, {}};
  uint64_t bytes = 0;  // that were moved
  // Of a receive: who sent the message that it has got, and with which tag.
  uint64_t peer = 0, tag = 0;
  // Nothing touches the peer's memory for it any more. False: its link was lost while it wrote, or
  // the peer may still carry its signal out.
  bool quiet = true;
  uint64_t queued_ns = 0, moved_ns = 0;
  // Given to each rail of the last link, also what was given up; and how often a part was lost on a
  // rail and given to another one.
  std::array<uint64_t, kMaxRails> rail_bytes = {};
  uint64_t retries = 0;
};

// Is told of the ends of requests whose programs want to know.
class EndListener {
 public:
  virtual ~EndListener() = default;
  // Any thread, with the locks that it holds.
  virtual void on_end(uint64_t handle, bool calls_back) = 0;
};

class PeerRequest {
 public:
  // Its lists are made of this memory, which outlives it.
  explicit PeerRequest(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : pieces(memory), regions(memory), remotes(memory), messages(memory) {}

  // Before it is submitted, and not after.
  Opcode opcode = Opcode::kRead;
  std::pmr::vector<Piece> pieces;
  std::unique_ptr<PieceSource> source;  // of those that follow; nullptr: there are none
  std::pmr::vector<std::shared_ptr<Region>> regions;  // of the pieces
  std::pmr::vector<std::shared_ptr<Remote>> remotes;
  std::pmr::vector<Message>
      messages;  // for the peer, when all pieces have been moved, or behind them
  std::shared_ptr<std::vector<NamedRegion>> listing;  // it asks for the peer's; with nothing else
  uint64_t submitted_ns = 0;
  // This one lives longer than the request is open.
  void tell_end_to(EndListener* listener, uint64_t handle, bool calls_back) {
    listener_ = listener;
    handle_ = handle;
    calls_back_ = calls_back;
  }
  void set_due(uint64_t due_ns) { due_ns_.store(due_ns, std::memory_order_relaxed); }
  bool of_engine = false;           // no program has it
  bool strong = false;              // it begins when all have ended that the peer was given before
  uint32_t round_trips = 1;         // to the peer, where nothing is in the way
  uint64_t letter_bytes = 0;        // that the peer reads
  std::optional<uint64_t> fetches;  // the nonce of the TaggedLetter that it reads

  // A piece more; nothing is moved where it has no bytes. One that goes on where the last one ends,
  // at both ends, is a part of it.
  void append(const Piece& piece);

  // Any thread, when it has been submitted. outcome(): once it is done.
  uint64_t known_bytes() const { return known_bytes_.load(std::memory_order_relaxed); }
  uint64_t bytes_to_move() const { return known_bytes() + letter_bytes; }
  // When it has to end: its deadline, or when it was cancelled.
  uint64_t due_ns() const { return due_ns_.load(std::memory_order_acquire); }
  void cancel(uint64_t now_ns);
  Error overdue(const char* rest) const;  // `rest`: ", and " what has not happened by then; or ""
  bool done() const { return done_.load(std::memory_order_acquire); }
  bool wait_until(uint64_t end_ns) const;  // false: it is not done by then
  const Outcome& outcome() const { return outcome_; }

  // The thread of the peer's link.
  bool has_keys = false;   // of all remotes
  size_t keyed = 0;        // of the first so many
  uint64_t fenced_ns = 0;  // when its rails were fenced, as it was overdue; 0: not yet
  void begin(uint64_t now_ns) {
    if (begun_ns_ == 0) begun_ns_ = now_ns;
  }
  // All its bytes went once, over one link.
  bool went_straight() const { return !given_up() && !restarted_ && outcome_.retries == 0; }
  uint64_t moving_ns(uint64_t now_ns) const { return begun_ns_ != 0 ? now_ns - begun_ns_ : 0; }
  // Nothing more of it is begun, and it ends with this error, the first one.
  bool given_up() const { return outcome_.error.status != Status::kOk; }
  void give_up(Error error) {
    if (!given_up()) outcome_.error = std::move(error);
    next_ = pieces.size();
    source.reset();
  }
  void end(uint64_t now_ns) {
    outcome_.queued_ns = (begun_ns_ != 0 ? begun_ns_ : now_ns) - submitted_ns;
    outcome_.moved_ns = moving_ns(now_ns);
    if (followed_) {
      outcome_.bytes = known_bytes();
      outcome_.quiet = true;
    }
    regions.clear();
    messages.clear();
    source.reset();
    {
      const std::lock_guard lock(mutex_);
      done_.store(true, std::memory_order_release);
    }
    changed_.notify_all();
    if (listener_ != nullptr) listener_->on_end(handle_, calls_back_);
  }
  // All pieces have been moved, or it is given up and none moves any more. One that is lost keeps
  // its regions: it may be moved again.
  void set_moved() {
    moved_ = true;
    if (lost_) return;
    regions.clear();
    source.reset();
  }
  bool moved() const { return moved_; }
  // The rail over which all its bytes have gone or go, each once; nothing if there is more to come,
  // or if they are many: what comes behind them on that rail would wait.
  std::optional<size_t> only_rail() const;
  // Its messages are on their way. It ends with the last, when it has been moved.
  std::pmr::vector<Message> begin_telling() {
    messages_open_ = messages.size();
    return std::move(messages);
  }
  bool tells() const { return messages_open_ > 0; }
  void message_ended(uint64_t now_ns) {
    if (--messages_open_ == 0 && moved_) end(now_ns);
  }
  // The peer has not got this one, which followed its pieces: it is told when they are confirmed.
  void take_back(Message message) {
    messages.push_back(std::move(message));
    --messages_open_;
  }
  // The peer has taken the message that followed its pieces, so it has them: they are not moved
  // again, whatever happens.
  void message_followed() {
    followed_ = true;
    lost_ = false;
  }
  bool has_followed() const { return followed_; }
  void may_be_carried_out() { outcome_.quiet = false; }
  // Its link has gone, and touches no memory of this end any more.
  void lose_link() {
    if (opcode == Opcode::kWrite && open_ + flushes_ > 0) outcome_.quiet = false;
    outcome_.retries += open_;
    open_ = flushes_ = 0;
  }
  // It depends on the peer whether its pieces have come: they have if the peer takes the message
  // that followed them. If not, it is restarted.
  void await_answer() { lost_ = true; }
  bool is_lost() const { return lost_; }
  // It is moved from the beginning, over the next link.
  void restart() {
    lost_ = moved_ = followed_ = flushed_ = false;
    restarted_ = true;
    has_keys = false;
    keyed = 0;
    fenced_ns = 0;
    next_ = 0;
    offset_ = 0;
    outcome_.bytes = 0;
    outcome_.rail_bytes = {};
    if (source == nullptr) return;
    source->rewind();
    pieces.clear();
  }
  bool all_begun() const { return !wants_pieces() && next_ == pieces.size(); }
  // Those that are here have begun, and there are more.
  bool wants_pieces() const {
    return next_ == pieces.size() && source != nullptr && !source->at_end();
  }
  void refill(size_t most);
  bool has_ended() const { return all_begun() && open_ == 0 && flushes_ == 0; }
  // Its bytes were moved, or not all of them; nothing of it moves.
  bool is_still() const { return all_begun() && open_ == 0; }
  bool has_used(size_t rail) const { return outcome_.rail_bytes[rail] > 0; }
  // The next part, of `most` bytes at most; it counts as begun.
  Piece take(uint64_t most);
  void opened() { ++open_; }
  void placed(size_t rail, uint64_t bytes, bool again) {
    outcome_.rail_bytes[rail] += bytes;
    if (again) ++outcome_.retries;
  }
  // What it has written into memory of a device at the peer is flushed (remote_flushes.h), once.
  bool take_wish_to_flush() { return opcode == Opcode::kWrite && !std::exchange(flushed_, true); }
  void flush_began() { ++flushes_; }
  void flush_ended() { --flushes_; }
  void closed(uint64_t bytes) {
    --open_;
    outcome_.bytes += bytes;
    if (bytes > 0) outcome_.quiet = true;  // the peer has no link from before any more
  }

  // Of a receive: the message that it gets (messages/tagged.h).
  void set_source(uint64_t peer, uint64_t tag) {
    outcome_.peer = peer;
    outcome_.tag = tag;
  }
  void received(uint64_t bytes) { outcome_.bytes = bytes; }

 private:
  std::atomic<uint64_t> known_bytes_ = 0;  // of the pieces so far
  size_t next_ = 0;                        // pieces before it have begun
  uint64_t offset_ = 0;                    // of that piece, bytes that have
  uint32_t open_ = 0;                      // transfers
  uint32_t flushes_ = 0;                   // that have not ended
  bool flushed_ = false;                   // or nothing was to be flushed
  bool restarted_ = false;
  size_t messages_open_ = 0;
  bool moved_ = false;
  bool lost_ = false;      // await_answer()
  bool followed_ = false;  // message_followed()
  EndListener* listener_ = nullptr;
  uint64_t handle_ = 0;  // of the program
  bool calls_back_ = false;
  uint64_t begun_ns_ = 0;
  Outcome outcome_;
  std::atomic<uint64_t> due_ns_ = UINT64_MAX;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> done_ = false;
  mutable std::mutex mutex_;  // for those who sleep on changed_
  mutable std::condition_variable changed_;
};

using Requests = std::vector<std::shared_ptr<PeerRequest>>;

inline void PeerRequest::append(const Piece& piece) {
  if (piece.bytes == 0) return;
  known_bytes_.store(known_bytes() + piece.bytes, std::memory_order_relaxed);
  Piece* const last = pieces.empty() ? nullptr : &pieces.back();
  if (last != nullptr && last->memory == piece.memory && last->remote == piece.remote &&
      last->local + last->bytes == piece.local &&
      last->remote_offset + last->bytes == piece.remote_offset) {
    last->bytes += piece.bytes;
  } else {
    pieces.push_back(piece);
  }
}

inline void PeerRequest::refill(size_t most) {
  pieces.clear();
  next_ = 0;
  has_keys = false;  // perhaps of other regions
  auto done = source->refill(*this, most);
  if (!done) give_up(std::move(done.error()));
}

inline std::optional<size_t> PeerRequest::only_rail() const {
  constexpr uint64_t kMostBytes = 1 << 20;
  if (source != nullptr || !all_begun() || known_bytes() > kMostBytes) return std::nullopt;
  const auto& rails = outcome_.rail_bytes;
  const auto found = std::ranges::find(rails, known_bytes());
  if (outcome_.retries > 0 || found == rails.end()) return std::nullopt;
  return static_cast<size_t>(found - rails.begin());
}

// One that is overdue already stays that.
inline void PeerRequest::cancel(uint64_t now_ns) {
  uint64_t due_ns = due_ns_.load(std::memory_order_relaxed);
  if (due_ns <= now_ns) return;
  cancelled_.store(true, std::memory_order_relaxed);
  while (due_ns > now_ns &&
         !due_ns_.compare_exchange_weak(due_ns, now_ns, std::memory_order_release)) {
  }
}

inline Error PeerRequest::overdue(const char* rest) const {
  if (cancelled_.load(std::memory_order_relaxed)) {
    return make_error(Status::kCancelled, 0, "it was cancelled%s", rest);
  }
  return make_error(Status::kTimeout, 0, "its deadline has passed%s", rest);
}

inline bool PeerRequest::wait_until(uint64_t end_ns) const {
  std::unique_lock lock(mutex_);
  const std::chrono::steady_clock::time_point end{std::chrono::nanoseconds(end_ns)};
  return changed_.wait_until(lock, end, [this] { return done(); });
}

inline Piece PeerRequest::take(uint64_t most) {
  const Piece& whole = pieces[next_];
  Piece part = whole;
  part.bytes = std::min(most, whole.bytes - offset_);
  part.local += offset_;
  part.remote_offset += offset_;
  offset_ += part.bytes;
  if (offset_ == whole.bytes) {
    offset_ = 0;
    ++next_;
  }
  return part;
}

}  // namespace slime
