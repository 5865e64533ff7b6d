#include "transports/tcp/acceptor.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/log.h"

namespace slime::tcp {

namespace {

// The beginning of what a stranger sent, so that a person recognises the program: "GET / HTTP".
std::string printable(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<unsigned char>(byte);
    char buffer[8];
    const bool plain = value >= 0x20 && value < 0x7f && value != '\\';
    std::snprintf(buffer, sizeof(buffer), plain ? "%c" : "\\x%02x", value);
    text += buffer;
  }
  return text;
}

// Judges by the first bytes, so that a talkative stranger need not be waited for.
bool begins_like_a_hello(const ControlMessage<kHelloBytes>& hello) {
  const size_t bytes = std::min(hello.done, sizeof(kHelloMagic));
  return std::memcmp(hello.bytes.data(), &kHelloMagic, bytes) == 0;
}

}  // namespace

Acceptor::Acceptor(std::string rail_name, const SocketAddress& local, const Settings& settings,
                   const Clock& clock)
    : rail_name_(std::move(rail_name)),
      local_(local),
      buffer_bytes_(settings.socket_buffer),
      handshake_ns_(seconds_to_ns(settings.handshake_timeout)),
      clock_(clock) {}

Result<void> Acceptor::listen() {
  auto listener = listen_on(local_);
  if (!listener) return fail(std::move(listener.error()));
  // Before the first connection: the window scale is chosen with the handshake (tcp(7)).
  auto granted = set_buffers(*listener, buffer_bytes_);
  if (!granted) return fail(std::move(granted.error()));
  auto listening = local_address(*listener);
  if (!listening) return fail(std::move(listening.error()));
  listener_ = std::move(*listener);
  listening_ = *listening;
  return {};
}

Result<SocketAddress> Acceptor::expect(const Nonce& nonce) {
  const std::lock_guard lock(mutex_);
  if (!listener_) {
    auto ready = listen();
    if (!ready) return fail(std::move(ready.error()));
  }
  expected_.push_back({nonce, std::nullopt});
  return listening_;
}

void Acceptor::forget(const Nonce& nonce) {
  const std::lock_guard lock(mutex_);
  std::erase_if(expected_, [&](const Expected& e) { return same_nonce(e.nonce, nonce); });
}

uint64_t Acceptor::strangers() const {
  const std::lock_guard lock(mutex_);
  return strangers_.count();
}

std::string Acceptor::summary_of_strangers() const {
  const std::lock_guard lock(mutex_);
  return strangers_.summary();
}

Status Acceptor::take(const Nonce& nonce, Arrival* arrival, Error* error) {
  const std::lock_guard lock(mutex_);
  const uint64_t now_ns = clock_.now_ns();
  std::erase_if(unmatched_, [&](Unmatched& u) { return settle(u, now_ns); });
  const Status accepted = accept_visitors(listener_, now_ns, error);
  Expected* expected = find(nonce);
  if (expected && expected->arrival) {
    *arrival = std::move(*expected->arrival);
    expected_.remove_if([&](const Expected& e) { return &e == expected; });
    return Status::kOk;
  }
  const bool fine = accepted == Status::kOk || accepted == Status::kAgain;
  return fine ? Status::kAgain : accepted;
}

std::vector<Visit> Acceptor::visits() const {
  std::vector<Visit> all;
  for (const Unmatched& unmatched : unmatched_) all.push_back({unmatched.peer, unmatched.since_ns});
  return all;
}

void Acceptor::drop_visit(size_t index) {
  const auto dropped = unmatched_.begin() + static_cast<ptrdiff_t>(index);
  drop(*dropped, "too many connections wait without a hello", clock_.now_ns());
  abort_connection(std::move(dropped->fd));
  unmatched_.erase(dropped);
}

Status Acceptor::admit(Accepted accepted, Error* /*error*/) {
  const uint64_t now_ns = clock_.now_ns();
  unmatched_.push_back({std::move(accepted.fd), accepted.peer, now_ns, {}});
  if (settle(unmatched_.back(), now_ns)) unmatched_.pop_back();
  return Status::kOk;
}

bool Acceptor::settle(Unmatched& unmatched, uint64_t now_ns) {
  Error error;
  const Status status = unmatched.hello.receive(unmatched.fd, &error);
  const char* why = nullptr;
  if (status == Status::kOk) {
    why = match(unmatched);
  } else if (!begins_like_a_hello(unmatched.hello)) {
    why = "it does not speak our protocol";
  } else if (status != Status::kAgain) {
    why = error.what.c_str();
  } else if (now_ns >= unmatched.since_ns + handshake_ns_) {
    why = "no whole hello in time";
  } else {
    return false;
  }
  if (why) drop(unmatched, why, now_ns);
  return true;
}

const char* Acceptor::match(Unmatched& unmatched) {
  Hello hello;
  std::memcpy(&hello, unmatched.hello.bytes.data(), kHelloBytes);
  if (hello.magic != kHelloMagic) return "it does not speak our protocol";
  if (hello.version != kVersion) {
    return "it speaks another version of our protocol; use the same libnet-slime on all hosts";
  }
  if (hello.flags & ~kWantsAcks) return "its hello asks for something that this version has not";
  Expected* expected = find(hello.nonce);
  if (!expected || expected->arrival) return "its nonce is of no channel that waits here";
  expected->arrival = Arrival{std::move(unmatched.fd), unmatched.peer, hello};
  return nullptr;
}

Acceptor::Expected* Acceptor::find(const Nonce& nonce) {
  for (Expected& expected : expected_) {
    if (same_nonce(expected.nonce, nonce)) return &expected;
  }
  return nullptr;
}

void Acceptor::drop(const Unmatched& unmatched, const char* why, uint64_t now_ns) {
  const auto end = strangers_.turned_away(now_ns);
  if (!end) return;
  const auto sent = std::span(unmatched.hello.bytes).first(unmatched.hello.done);
  SLIME_INFO("rail %s: dropped a connection from %s to %s: %s; it sent %zu bytes: \"%s\"%s",
             rail_name_.c_str(), unmatched.peer.to_string().c_str(), listening_.to_string().c_str(),
             why, sent.size(), printable(sent).c_str(), end->c_str());
}

}  // namespace slime::tcp
