#include "peer/moving/mover.h"

#include <algorithm>
#include <cinttypes>
#include <iterator>

#include "base/check.h"

namespace slime {
namespace {

constexpr char kNoLetter[] = "its sender has given the message up, or has gone; receive again";

}  // namespace

void Mover::add(std::shared_ptr<PeerRequest> request) {
  const uint64_t late_ns = link_.rails().clock().now_ns + kLateLookNs;
  look_ns_ = std::min({look_ns_, request->due_ns(), late_ns});
  waiting_.push_back(std::move(request));
}

bool Mover::in_time(uint64_t now_ns) {
  if (now_ns < look_ns_) return true;
  uint64_t first_ns = UINT64_MAX;
  bool all = true;
  for (auto* requests : {&waiting_, &moving_}) {
    for (const auto& request : *requests) {
      all &= ends_in_time(*request, now_ns, &first_ns);
    }
    end_those_done(requests, now_ns);
  }
  look_ns_ = std::clamp(first_ns, now_ns + kLookNs, now_ns + kLateLookNs);
  return all;
}

// False: it is overdue, and nothing helps. `look_ns`: the first time at which something is due.
bool Mover::ends_in_time(PeerRequest& request, uint64_t now_ns, uint64_t* look_ns) {
  uint64_t next_ns = request.due_ns();
  if (now_ns >= next_ns) {
    give_up(request, request.overdue(""));
    if (is_over(request)) return true;
    next_ns += kGraceNs;
    if (now_ns >= next_ns) {
      if (!link_.may_lose_rail()) return false;
      if (request.fenced_ns == 0) {
        request.fenced_ns = now_ns;
        fence_rails(request);
      }
      next_ns = request.fenced_ns + kFenceNs;
    }
  }
  *look_ns = std::min(*look_ns, next_ns);
  return now_ns < next_ns || is_over(request);
}

void Mover::give_all_up(const Error& why) {
  for (auto* requests : {&waiting_, &moving_}) {
    for (const auto& request : *requests) give_up(*request, why);
  }
}

void Mover::fence_rails(PeerRequest& request) {
  std::vector<const WorkOwner*> owners;
  for (const auto& transfer : transfers_) {
    if (transfer->request == &request) owners.push_back(transfer.get());
  }
  std::ranges::sort(owners);
  const auto is_of = [&](const WorkOwner* owner, uint32_t part) {
    return std::ranges::binary_search(owners, owner) || flushes_.is_of(owner, part, request);
  };
  LinkRails& rails = link_.rails();
  for (size_t i = 0; i < rails.count() && link_.status() == Status::kOk; ++i) {
    const bool carries = flushes_.wait_for(i, request) || rails[i].works.any_open(is_of);
    if (!rails[i].up() || !carries) continue;
    (void)link_.fence_rail(i, "it carried a request that was overdue or cancelled");
  }
}

// Also a request that was given up with its message; the first error stays.
void Mover::give_up(PeerRequest& request, Error why) {
  request.give_up(std::move(why));
  for (const auto& transfer : transfers_) {
    if (transfer->request == &request) queue_.drop(*transfer);
  }
}

void Mover::move(uint64_t now_ns) {
  flushes_.submit_waiting();  // before reads that take their places
  queue_.submit_waiting();
  size_t passed = 0, most = kMostPassed;
  while (passed < std::min(waiting_.size(), most)) {
    PeerRequest& request = *waiting_[passed];
    prepare(request);
    if (request.has_keys && !request.all_begun()) {
      if (has_room(request)) request.begin(now_ns);
      if (!begin(request)) most = std::min(most, passed + kMostPassedBySmall);
    }
    if (request.all_begun()) {
      let_message_follow(waiting_[passed], now_ns);
      moving_.push_back(std::move(waiting_[passed]));
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(passed));
    } else {
      ++passed;
    }
  }
  end_those_done(now_ns);
}

// Behind its bytes, where nothing overtakes them. Those in device memory are flushed first.
void Mover::let_message_follow(const std::shared_ptr<PeerRequest>& request, uint64_t now_ns) {
  const bool may = request->opcode == Opcode::kWrite && request->messages.size() == 1 &&
                   request->remotes.size() == 1 && !request->given_up() &&
                   !request->remotes.front()->address.in_device;
  if (!may) return;
  const auto rail = request->only_rail();
  if (rail && link_.rails()[*rail].ordered) messages_.follow(request, rings_, *rail, now_ns);
}

void Mover::end_those_done(Queue* requests, uint64_t now_ns) {
  std::erase_if(*requests, [&](const std::shared_ptr<PeerRequest>& request) {
    if (!is_over(*request)) return false;
    measure(*request, now_ns);
    messages_.after(request, now_ns);
    return true;
  });
}

// Nothing of it moves, and what it has written is where it belongs, also if it was given up.
bool Mover::is_over(PeerRequest& request) {
  if (request.is_still() && request.take_wish_to_flush()) flushes_.begin(request);
  return request.has_ended();
}

void Mover::measure(const PeerRequest& request, uint64_t now_ns) {
  constexpr uint64_t kMostBytes = 4096, kWeight = 8;
  const uint64_t bytes = request.known_bytes();
  if (bytes == 0 || bytes > kMostBytes || request.of_engine || !request.went_straight()) return;
  const uint64_t ns = request.moving_ns(now_ns);
  round_trip_ns_ = round_trip_ns_ == 0 ? ns : (round_trip_ns_ * (kWeight - 1) + ns) / kWeight;
}

// The keys of the regions that it names.
void Mover::prepare(PeerRequest& request) {
  if (request.has_keys || request.all_begun()) return;
  bool known = true;
  for (size_t i = request.keyed; i < request.remotes.size(); ++i) {
    const auto& remote = request.remotes[i];
    remote->use_on(number_);
    if (!keys_.want(remote)) return;
    known &= remote->state != Remote::Keys::kAsked;
    if (known) request.keyed = i + 1;
    if (remote->state != Remote::Keys::kRefused) continue;
    return request.give_up(make_error(
        Status::kRemote, 0, "%s",
        request.fetches ? kNoLetter
                        : "the peer has no such region (any more): it was deregistered, or its "
                          "address is an old one; get a new address from the peer"));
  }
  request.has_keys = known;
}

bool Mover::has_room(const PeerRequest& request) const {
  const size_t rails = std::max<size_t>(link_.rails().up_count(), 1);
  const bool is_small = request.source == nullptr && request.known_bytes() <= kSmall;
  return transfers_.size() - free_.size() < kTransfersPerRail * rails && !queue_.any() &&
         (is_small || open_bytes_ < kMostOpenBytes * rails);
}

// False: there is no room for the next part. It may also wait for keys, or have been given up.
bool Mover::begin(PeerRequest& request) {
  while (!request.all_begun()) {
    if (!has_room(request)) return false;
    if (request.wants_pieces()) {
      request.refill(kRefill);
      prepare(request);
      if (!request.has_keys) return true;
      continue;
    }
    start(request);
  }
  return true;
}

Mover::PieceTransfer& Mover::take_transfer() {
  if (free_.empty()) {
    free_.reserve(transfers_.size() + 1);
    transfers_.push_back(std::make_unique<PieceTransfer>());
    transfers_.back()->mover = this;
    free_.push_back(transfers_.back().get());
  }
  PieceTransfer* const transfer = free_.back();
  free_.pop_back();
  return *transfer;
}

void Mover::start(PeerRequest& request) {
  PieceTransfer& transfer = take_transfer();
  const Piece piece = request.take(most_bytes());
  transfer.request = &request;
  transfer.remote = piece.remote;
  request.opened();
  open_bytes_ += piece.bytes;
  queue_.start(transfer,
               {.local = piece.local,
                .region = piece.memory,
                .bytes = piece.bytes,
                .remote_address = piece.remote->address.base + piece.remote_offset,
                .remote_offset = piece.remote_offset,
                .remote_keys = piece.remote->keys.data(),
                .opcode = request.opcode,
                .may_be_refused = true},
               queue_.plan(piece.bytes));
}

uint64_t Mover::most_bytes() const {
  const uint64_t stripe = link_.scheduler().stripe_limits().most / kLineBytes * kLineBytes;
  return stripe < kMostPiece / kMaxStripes ? stripe * kMaxStripes : kMostPiece;
}

void Mover::ended(PieceTransfer& transfer) {
  PeerRequest& request = *transfer.request;
  if (transfer.refused() && request.fetches) {
    request.give_up(make_error(Status::kRemote, 0, "%s", kNoLetter));
  } else if (transfer.refused()) {
    transfer.remote->refuse();
    request.give_up(make_error(Status::kRemote, 0,
                               "the peer refused %s of %" PRIu64
                               " bytes: it has deregistered that memory, or its region "
                               "does not let peers do that",
                               request.opcode == Opcode::kRead ? "a read" : "a write",
                               transfer.piece().bytes));
  }
  transfer.request = nullptr;
  open_bytes_ -= transfer.piece().bytes;
  request.closed(request.given_up() ? 0 : transfer.piece().bytes);
  free_.push_back(&transfer);
}

void Mover::add_open(Requests* to) const {
  for (const auto* requests : {&moving_, &waiting_}) {
    std::ranges::copy_if(*requests, std::back_inserter(*to),
                         [](const auto& request) { return !request->of_engine; });
  }
}

std::vector<std::shared_ptr<PeerRequest>> Mover::take_all() {
  std::vector<std::shared_ptr<PeerRequest>> all;
  for (auto* requests : {&moving_, &waiting_}) {
    std::ranges::move(*requests, std::back_inserter(all));
    requests->clear();
  }
  for (const auto& request : all) request->lose_link();
  return all;
}

}  // namespace slime
