#include "peer/engine/discovery.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "base/net/dialer.h"
#include "peer/blobs.h"

namespace slime {
namespace {

constexpr const char* kWhat = "where an engine is found";
constexpr uint64_t kPauseNs = 50'000'000;  // between rounds, while nobody listens
constexpr size_t kMostBytes = 1024;

// Reads what the other end says until it ends the connection.
class Answer {
 public:
  // kOk: it is whole.
  Status read(const Fd& fd, Error* error) {
    for (;;) {
      const ssize_t got = ::recv(fd.get(), bytes_.data() + size_, bytes_.size() - size_, 0);
      if (got == 0) return size_ > 0 ? Status::kOk : fail_with(error, "it says nothing");
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Status::kAgain;
      if (got < 0) {
        *error = system_error(errno, "recv");
        return error->status;
      }
      size_ += static_cast<size_t>(got);
      if (size_ == bytes_.size()) return fail_with(error, "it is no engine: it says too much");
    }
  }
  std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }
  void restart() { size_ = 0; }

 private:
  static Status fail_with(Error* error, const char* why) {
    *error = make_error(Status::kRemote, 0, "%s", why);
    return error->status;
  }

  std::array<std::byte, kMostBytes> bytes_ = {};
  size_t size_ = 0;
};

void sleep_until_readable(const Dialer& dialer, uint64_t now_ns, uint64_t end_ns) {
  constexpr uint64_t kLongestNs = 20'000'000;
  const uint64_t until_ns =
      std::clamp(std::min(dialer.due_ns(), end_ns), now_ns, now_ns + kLongestNs);
  pollfd waited{dialer.fd().get(), POLLIN, 0};
  const timespec limit{0, static_cast<long>(until_ns - now_ns)};
  (void)::ppoll(&waited, dialer.fd() ? 1 : 0, &limit, nullptr);
}

}  // namespace

Result<std::unique_ptr<DiscoveryPort>> DiscoveryPort::open(const std::string& where,
                                                           std::vector<std::byte> address) {
  auto host = split_host_port(where, 0, kWhat);
  if (!host) return fail(std::move(host.error()));
  auto listener = listen_at(*host, kWhat);
  if (!listener) return fail(std::move(listener.error()));
  return std::unique_ptr<DiscoveryPort>(
      new DiscoveryPort(std::move(*listener), std::move(address)));
}

// The bytes are few, so a new connection has room for them. Without a descriptor a caller waits.
bool DiscoveryPort::answer() {
  for (int count = 0; count < kCallersATurn; ++count) {
    Accepted caller;
    Error error;
    if (accept_one(listener_, &caller, &error) != Status::kOk) return count > 0;
    size_t sent = 0;
    (void)send_message(caller.fd, address_, &sent, &error);
  }
  return true;
}

Result<std::vector<std::byte>> find_engine(const std::string& host_port, uint64_t limit_ns) {
  const auto host = split_host_port(host_port, 0, kWhat);
  if (!host) return fail(host.error());
  const Deadline deadline(SteadyClock::instance(), limit_ns);
  auto addresses = resolve(*host, kWhat, deadline);
  if (!addresses) return fail(std::move(addresses.error()));
  Dialer dialer(*addresses, {.retry = Dialer::Retry::kAll, .pause_ns = kPauseNs});
  Answer answer;
  for (;;) {
    const Deadline::Look look(deadline);
    const uint64_t now_ns = steady_now_ns();
    Error error;
    Status status = dialer.progress(now_ns, &error);
    if (status == Status::kOk) {
      status = answer.read(dialer.fd(), &error);
      if (status == Status::kOk) break;
      if (status != Status::kAgain) {
        answer.restart();
        status = dialer.again(now_ns, &error);
      }
    }
    if (status != Status::kAgain) return fail(std::move(error));
    if (look.expired()) {
      return fail(
          Status::kTimeout,
          "no engine was found at %s: %s; is one open there, with "
          "slime_options.discoverable?",
          to_string(*host).c_str(),
          dialer.last_failure().empty() ? "it does not answer" : dialer.last_failure().c_str());
    }
    sleep_until_readable(dialer, now_ns, deadline.end_ns());
  }
  auto found = unpack_engine(answer.bytes());
  if (!found) {
    return fail(Status::kRemote, "%s: %s", to_string(*host).c_str(), found.error().what.c_str());
  }
  return std::vector<std::byte>(answer.bytes().begin(), answer.bytes().end());
}

}  // namespace slime
