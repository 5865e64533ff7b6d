#include "test/contract/checks.h"

#include <algorithm>

namespace slime::contract {
namespace {

bool is_failure(Status status) { return status != Status::kOk && status != Status::kAgain; }

void append(Problems* problems, Problems more) {
  problems->insert(problems->end(), more.begin(), more.end());
}

void traffic(Pair& pair, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    pair.post(pair.left, 4);
    if (i % 3 != 0) pair.poll(pair.left, 3);
    if (i % 2 != 0) pair.poll(pair.right, 5);
    pair.world().pump();
  }
}

// What an end says for good: twice the same, and no work taken.
void check_for_good(End& end, Transfer& ledger, Problems* problems) {
  if (end.channel->failure().what.size() < 20) problems->push_back("failure without a sentence");
  if (end.channel->failure().status != end.status) {
    problems->push_back("failure() has another status than the call that failed");
  }
  size_t taken = 1, count = 1;
  std::array<Done, 4> done;
  for (int i = 0; i < 3; ++i) {
    if (end.channel->post(ledger.works().first(1), &taken) != end.status || taken != 0) {
      problems->push_back("post() on a failed channel did not return the failure");
    }
    if (end.channel->poll(done, &count) != end.status || count != 0) {
      problems->push_back("poll() on a failed channel did not return the failure");
    }
  }
}

// The works around it are done, and the channel goes on.
Problems problems_beside_refusal(Pair& pair, Transfer& ledger) {
  Problems problems;
  for (size_t i = 0; i < ledger.size(); ++i) {
    if (!pair.await_end(ledger, i)) problems.push_back("a work did not end");
  }
  pair.settle();
  for (const End* end : {&pair.left, &pair.right}) {
    if (end->status != Status::kOk) problems.push_back(end->channel->failure().what);
  }
  if (!ledger.was_refused(1)) problems.push_back("the bad work was not refused");
  if (ledger.has_arrived(1)) problems.push_back("the bad work was reported");
  if (!ledger.untouched(1)) problems.push_back("written all the same");
  for (const size_t good : {size_t{0}, size_t{2}}) {
    if (!ledger.was_sent(good) || !ledger.has_arrived(good)) {
      problems.push_back("a good work beside it was lost");
    }
  }
  append(&problems, ledger.problems());
  return problems;
}

}  // namespace

Problems refusal_problems(Pair& pair, Transfer& ledger, const Work& bad) {
  Problems problems;
  const std::vector<Work> works = {ledger.works()[0], bad, ledger.works()[2]};
  size_t taken = 0;
  const Status posted = pair.left.channel->post(works, &taken);
  const bool refused_here = posted != Status::kOk;  // a key that the NIC cannot have given out
  if (taken != (refused_here ? 0 : 3)) problems.push_back("three works were not taken");
  ledger.took(taken);
  if (pair.goes_on_after_refusal(bad.opcode)) {
    append(&problems, problems_beside_refusal(pair, ledger));
    return problems;
  }
  if (!refused_here && !pair.await_failure(pair.right)) problems.push_back("the receiver took it");
  if (!pair.await_failure(pair.left)) problems.push_back("the sender never noticed");
  for (End* end : {&pair.left, &pair.right}) {
    if (!is_failure(end->status)) continue;
    check_for_good(*end, ledger, &problems);
  }
  pair.settle();
  if (ledger.has_arrived(1)) problems.push_back("the bad work was reported");
  if (!refused_here && bad.opcode != Opcode::kWriteWithImmediate && !ledger.was_refused(1)) {
    problems.push_back("the bad work was not refused before the failure");
  }
  const bool silent = bad.opcode == Opcode::kWrite;  // its kSent may be missing
  const bool first_arrived = silent ? ledger.landed_whole(0) : ledger.has_arrived(0);
  const bool in_order = pair.left.rail->caps().ordered && bad.opcode != Opcode::kRead;
  if (!refused_here && in_order && !first_arrived) {
    problems.push_back("the good work before it did not arrive");
  }
  for (const size_t index : {size_t{1}, size_t{2}}) {
    const bool must = index == 1 || in_order;
    if (must && !ledger.untouched(index)) problems.push_back("written all the same");
  }
  append(&problems, ledger.problems());
  return problems;
}

Problems fence_problems(Pair& pair, int rounds, Opcode opcode) {
  Problems problems;
  Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(200, 900), opcode);
  traffic(pair, rounds);
  pair.right.channel->fence();
  const std::vector<std::byte> before = ledger.target().copy();
  for (int i = 0; i < 3; ++i) {
    pair.post(pair.left, 4);
    pair.world().pump();
    pair.poll(pair.right, 1);  // what had been confirmed, piece by piece
  }
  pair.settle();
  if (ledger.target().copy() != before) problems.push_back("written after the fence");
  if (pair.right.status != Status::kOk) problems.push_back("poll failed after the fence");
  if (pair.poll(pair.right, 4)) problems.push_back("arrivals did not come to an end");
  size_t taken = 0;
  pair.right.channel->post(ledger.works().first(1), &taken);
  if (taken != 0) problems.push_back("a fenced channel took a work");
  pair.right.channel->fence();  // again: nothing more to do
  for (size_t i = 0; i < ledger.size(); ++i) {
    if (ledger.was_confirmed(i) && !ledger.has_arrived(i))
      problems.push_back("confirmed, but lost");
  }
  if (!pair.await_failure(pair.left)) problems.push_back("the peer never noticed the fence");
  append(&problems, pair.problems());
  return problems;
}

Problems close_problems(Pair& pair, int rounds) {
  Problems problems;
  Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(150, 1'000));
  traffic(pair, rounds);
  const std::string name = pair.right.channel->peer_name();
  pair.left.channel.reset();
  std::ranges::fill(ledger.source().bytes(), std::byte{0xaa});
  if (!pair.await_failure(pair.right)) problems.push_back("the end was not reported");
  if (pair.right.status != Status::kRemote) problems.push_back("the end was not kRemote");
  if (pair.right.channel->failure().what.find(name) == std::string::npos || name.empty()) {
    problems.push_back("the failure does not name the peer: " + pair.right.channel->failure().what);
  }
  for (size_t i = 0; i < ledger.size(); ++i) {
    if (ledger.was_sent(i) && !ledger.has_arrived(i)) problems.push_back("kSent, but lost");
  }
  append(&problems, pair.problems());
  return problems;
}

}  // namespace slime::contract
