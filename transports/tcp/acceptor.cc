#include "transports/tcp/acceptor.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace slime::tcp {

namespace {

// The beginning of what a stranger sent, so that a person recognises the program: "GET / HTTP".
std::string printable(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes.first(std::min(bytes.size(), kGreetingBytes))) {
    const auto value = std::to_integer<unsigned char>(byte);
    char buffer[8];
    const bool plain = value >= 0x20 && value < 0x7f && value != '\\';
    std::snprintf(buffer, sizeof(buffer), plain ? "%c" : "\\x%02x", value);
    text += buffer;
  }
  return text;
}

}  // namespace

Acceptor::Acceptor(std::string rail_name, const SocketAddress& local, const Settings& settings,
                   const Clock& clock)
    : HelloPort(kHelloBytes, seconds_to_ns(settings.handshake_timeout)),
      rail_name_(std::move(rail_name)),
      local_(local),
      buffer_bytes_(settings.socket_buffer),
      ports_(PortRange::of_setting(settings.ports)),
      advertised_(AdvertisedAddresses::of_setting(settings.advertise)),
      clock_(clock) {}

Result<void> Acceptor::listen() {
  auto listener = listen_within(local_, ports_);
  if (!listener) return fail(std::move(listener.error()));
  // Before the first connection: the window scale is chosen with the handshake (tcp(7)).
  auto granted = set_buffers(*listener, buffer_bytes_);
  if (!granted) return fail(std::move(granted.error()));
  auto listening = local_address(*listener);
  if (!listening) return fail(std::move(listening.error()));
  listener_ = std::move(*listener);
  listening_ = advertised_.of(*listening);
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
  erase(nonce);
}

// Nobody reads callers while no channel waits, and a caller can only be for one that waits.
void Acceptor::erase(const Nonce& nonce) {
  SLIME_CHECK(mutex_.held());
  std::erase_if(expected_, [&](const Expected& e) { return same_nonce(e.nonce, nonce); });
  if (expected_.empty()) drop_callers();
}

uint64_t Acceptor::strangers() const {
  const std::lock_guard lock(mutex_);
  return HelloPort::strangers().count();
}

std::string Acceptor::summary_of_strangers() const {
  const std::lock_guard lock(mutex_);
  return HelloPort::summary();
}

Status Acceptor::take(const Nonce& nonce, Arrival* arrival, Error* error) {
  const std::lock_guard lock(mutex_);
  const Status accepted = read_callers(listener_, clock_, error);
  Expected* expected = find(nonce);
  if (expected && expected->arrival) {
    *arrival = std::move(*expected->arrival);
    erase(nonce);
    return Status::kOk;
  }
  const bool fine = accepted == Status::kOk || accepted == Status::kAgain;
  return fine ? Status::kAgain : accepted;
}

const char* Acceptor::refuse_begun(std::span<const std::byte> said) const {
  const size_t bytes = std::min(said.size(), sizeof(kHelloMagic));
  if (std::memcmp(said.data(), &kHelloMagic, bytes) == 0) return nullptr;
  return "it does not speak our protocol";
}

std::optional<std::string> Acceptor::accept(Caller& caller) {
  Greeting hello;
  std::memcpy(&hello, caller.hello.data(), kGreetingBytes);
  if (hello.version != kVersion) {
    return "it speaks another version of our protocol; use the same libnet-slime on all hosts";
  }
  if (hello.flags != 0) return "its hello asks for something that this version has not";
  Expected* expected = find(hello.nonce);
  if (!expected || expected->arrival) return "its nonce is of no channel that waits here";
  expected->arrival = Arrival{std::move(caller.fd), caller.from, hello};
  return std::nullopt;
}

Acceptor::Expected* Acceptor::find(const Nonce& nonce) {
  SLIME_CHECK(mutex_.held());
  for (Expected& expected : expected_) {
    if (same_nonce(expected.nonce, nonce)) return &expected;
  }
  return nullptr;
}

void Acceptor::log_stranger(const Caller& caller, const std::string& why,
                            const std::string& more) const {
  SLIME_INFO("rail %s: dropped a connection from %s to %s: %s; it sent %zu bytes: \"%s\"%s",
             rail_name_.c_str(), caller.from.to_string().c_str(), listening_.to_string().c_str(),
             why.c_str(), caller.received, printable(caller.said()).c_str(), more.c_str());
}

}  // namespace slime::tcp
