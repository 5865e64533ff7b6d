#include "switch/protocol/client.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "settings/times.h"

namespace slime {

using control::Message;
using control::Refused;

namespace {

constexpr int kTreePauseMs = 10;
constexpr uint64_t kMaxPollMs = 1000;

}  // namespace

Result<std::unique_ptr<SwitchClient>> SwitchClient::start(const Addresses& addresses,
                                                          const Credentials& who,
                                                          uint64_t timeout_ns, const Clock& clock) {
  std::unique_ptr<SwitchClient> client(new SwitchClient(addresses, who, clock));
  Error error;
  if (client->begin(timeout_ns, &error) != Status::kOk) return fail(std::move(error));
  return client;
}

// Waits until no request is under way, or the connection has failed. progress() fails by itself
// when the deadline has passed, so this loop needs no deadline of its own. Without a connection
// there is only the time to wait for.
Status SwitchClient::wait(Error* error) {
  for (;;) {
    const Status status = progress(error);
    if (status != Status::kAgain) return status;
    const uint64_t now = clock_.now_ns();
    const uint64_t left_ns = due_ns() > now ? due_ns() - now : 0;
    pollfd ready{descriptor(), events(), 0};
    const auto left_ms = std::min(left_ns / 1'000'000 + 1, kMaxPollMs);
    if (poll(&ready, 1, static_cast<int>(left_ms)) < 0 && errno != EINTR) {
      *error = system_error(errno, "poll for %s", name().c_str());
      return error->status;
    }
  }
}

Result<std::unique_ptr<SwitchClient>> SwitchClient::open(const Addresses& addresses,
                                                         const Credentials& who,
                                                         uint64_t timeout_ns) {
  auto client = start(addresses, who, timeout_ns);
  Error error;
  if (client && (*client)->wait(&error) != Status::kOk) return fail(std::move(error));
  return client;
}

// Any answer but a refusal, which is an error.
Result<Message> SwitchClient::ask(const Message& request, uint64_t timeout_ns) {
  Error error;
  Status status = post(request, timeout_ns, &error);
  if (status == Status::kAgain) {
    return fail(Status::kInvalid, "%s: another request is under way", name().c_str());
  }
  if (status == Status::kOk) status = wait(&error);
  if (status != Status::kOk) return fail(std::move(error));
  const auto* refused = std::get_if<Refused>(&answer());
  if (refused != nullptr) return fail(error_of(*refused, control::type_of(request)));
  return answer();
}

Result<control::JobGrant> SwitchClient::join_tree(const control::JoinTree& wanted,
                                                  uint64_t timeout_ns) {
  const uint64_t end_ns = clock_.now_ns() + timeout_ns;
  for (;;) {
    const auto answer = ask(wanted, times::kTreeQuestion);
    if (!answer) return fail(answer.error());
    if (const auto* grant = std::get_if<control::JobGrant>(&*answer)) return *grant;
    if (clock_.now_ns() >= end_ns) return fail(incomplete(wanted));
    (void)poll(nullptr, 0, kTreePauseMs);
  }
}

Error SwitchClient::incomplete(const control::JoinTree& wanted) const {
  const auto* wait = std::get_if<control::TreeWait>(&answer());
  const std::string who = wait != nullptr ? control::branch_list(wait->missing) : "";
  return make_error(Status::kTimeout, 0,
                    "%s: the tree of %u switches was not complete in time, branch %s is missing; "
                    "look at the logs of the leaves, and of their root",
                    name().c_str(), wanted.branches, who.empty() ? "?" : who.c_str());
}

}  // namespace slime
