#include "switch/controller/uplink.h"

#include <algorithm>

namespace slime::net {
namespace {

constexpr int kQuestionsPerTurn = 16;  // the controller's own clients wait no longer than that

}  // namespace

int Uplink::timeout_ms(int most) const {
  uint64_t next = std::max(leaf_.next_question_ns(), not_before_ns_);
  if (asked_) next = client_->due_ns();
  if (!asked_ && client_) next = std::min(next, used_ns_ + options_.idle_ns);
  const uint64_t now = clock_.now_ns();
  if (next <= now) return 1;
  return static_cast<int>(std::min<uint64_t>((next - now) / 1'000'000 + 1, uint64_t(most)));
}

// As many questions as are answered at once, up to a limit.
void Uplink::run() {
  for (int i = 0; i < kQuestionsPerTurn; ++i) {
    if (!ask() || !finish()) return;
  }
}

// True: a question is under way.
bool Uplink::ask() {
  const uint64_t now = clock_.now_ns();
  if (asked_) return true;
  if (leaf_.next_question_ns() > now || now < not_before_ns_) {
    if (client_ && now >= used_ns_ + options_.idle_ns) client_.reset();
    return false;
  }
  asked_ = leaf_.next_question();
  if (!asked_) return false;
  return client_ ? post() : connect();
}

bool Uplink::connect() {
  fresh_ = true;
  auto client = SwitchClient::start(options_.parent, {options_.key}, options_.timeout_ns, clock_);
  if (!client) {
    lose(client.error());
    return false;
  }
  client_ = std::move(*client);
  return post();
}

bool Uplink::post() {
  Error error;
  used_ns_ = clock_.now_ns();
  if (client_->post(*asked_, options_.timeout_ns, &error) == Status::kOk) return true;
  lose(error);
  return false;
}

// True: an answer came.
bool Uplink::finish() {
  Error error;
  const Status status = client_->progress(&error);
  if (status == Status::kAgain) return false;
  if (status != Status::kOk) {
    lose(error);
    return false;
  }
  fresh_ = false;
  const control::Message asked = std::move(*asked_);
  asked_.reset();
  leaf_.on_answer(asked, client_->answer());
  return true;
}

// A parent that was restarted has closed the connection, so the question is asked once more over a
// new one. That is safe: a repeated question changes nothing at the parent.
void Uplink::lose(const Error& error) {
  client_.reset();
  if (!fresh_) {
    (void)connect();
    return;
  }
  const control::Message asked = std::move(*asked_);
  asked_.reset();
  not_before_ns_ = clock_.now_ns() + options_.pause_ns;
  leaf_.on_failure(asked, error);
}

}  // namespace slime::net
