#include "tools/info/peers.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json_text.h"
#include "base/text.h"
#include "peer/engine/status_port.h"
#include "tools/info/columns.h"

namespace slime::info {
namespace {

using nlohmann::json;

constexpr char kSockets[] = "/proc/net/unix";
constexpr uint64_t kPatienceNs = 5'000'000'000;  // of one engine
constexpr JsonLimits kLimits = {256 << 10, 8};

// Of this user; root sees all. Names of listening sockets, without the '@' that stands for a name
// without a file.
Result<std::vector<std::string>> names_of_engines() {
  std::ifstream table(kSockets);
  if (!table) return fail(system_error(errno, "cannot read %s", kSockets));
  const std::string user = ::geteuid() == 0 ? "" : std::to_string(::geteuid()) + "-";
  const std::string prefix = std::string("@") + StatusPort::kPrefix + user;
  std::vector<std::string> names;
  for (std::string line; std::getline(table, line);) {
    const size_t at = line.find(prefix);
    if (at != std::string::npos) names.push_back(line.substr(at + 1));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<Fd> connect_to(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path) return fail(Status::kRemote, "its name is long");
  std::ranges::copy(name, address.sun_path + 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return fail(descriptor_error(errno, "socket"));
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    return fail(system_error(errno, "connect"));
  }
  ucred engine = {};
  socklen_t size = sizeof engine;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &engine, &size) != 0) {
    return fail(system_error(errno, "getsockopt"));
  }
  if (engine.uid == ::geteuid() || ::geteuid() == 0) return socket;
  return fail(Status::kRemote, "its socket belongs to user %u", engine.uid);
}

Result<json> ask(const std::string& name) {
  auto socket = connect_to(name);
  if (!socket) return fail(std::move(socket.error()));
  const uint64_t end_ns = steady_now_ns() + kPatienceNs;
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t got = ::recv(socket->get(), part, sizeof part, 0);
    if (got == 0) break;
    if (got > 0) text.append(part, static_cast<size_t>(got));
    if (got < 0 && errno != EAGAIN && errno != EINTR) return fail(system_error(errno, "recv"));
    if (text.size() > kLimits.bytes)
      return fail(Status::kRemote, "its answer is longer than 256 KiB");
    const uint64_t now_ns = steady_now_ns();
    if (now_ns >= end_ns) return fail(Status::kTimeout, "it does not answer: is it stopped?");
    pollfd readable = {socket->get(), POLLIN, 0};
    (void)::poll(&readable, 1, static_cast<int>((end_ns - now_ns) / 1'000'000) + 1);
  }
  auto told = parse_json<json>(text, name, kLimits);
  if (!told) return told;
  const bool right = told->is_object() && told->contains("peers") && (*told)["peers"].is_array();
  if (!right) return fail(Status::kRemote, "it is no engine of this version");
  return told;
}

// Of any type, for people.
std::string text_of(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) return "?";
  return displayed(found->is_string() ? found->get<std::string>() : found->dump());
}

}  // namespace

Result<std::vector<json>> ask_engines() {
  auto names = names_of_engines();
  if (!names) return fail(std::move(names.error()));
  std::vector<json> engines;
  for (const std::string& name : *names) {
    auto told = ask(name);
    if (told) {
      engines.push_back(std::move(*told));
    } else {
      fprintf(stderr, "slime-info: %s: %s\n", displayed(name).c_str(), told.error().what.c_str());
    }
  }
  return engines;
}

void print_engines(const std::vector<json>& engines, FILE* out) {
  if (engines.empty()) {
    fprintf(out, "no engine of libslime is open in this network namespace by this user\n");
  }
  for (const json& engine : engines) {
    fprintf(out, "%s: process %s, %s NICs, %s regions, %s requests\n",
            text_of(engine, "name").c_str(), text_of(engine, "process").c_str(),
            text_of(engine, "nics").c_str(), text_of(engine, "regions").c_str(),
            text_of(engine, "requests").c_str());
    Columns rows;
    for (const json& peer : engine["peers"]) {
      const std::string name = text_of(peer, "name"), why = text_of(peer, "why");
      rows.add({name.empty() ? "engine " + text_of(peer, "engine").substr(0, 8) : name,
                text_of(peer, "state"),
                text_of(peer, "rails_up") + "/" + text_of(peer, "rails") + " rails",
                text_of(peer, "requests") + " requests", text_of(peer, "round_trip_ns") + " ns",
                why});
    }
    rows.print("  ", out);
    const std::string left_out = text_of(engine, "peers_left_out");
    if (left_out != "0") fprintf(out, "  and %s more\n", left_out.c_str());
  }
}

}  // namespace slime::info
