#include "bench/common/two_processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace slime::bench {
namespace {

[[noreturn]] void stop(const char* call) {
  std::fprintf(stderr, "benchmark: %s: %s (errno %d)\n", call, std::strerror(errno), errno);
  std::exit(1);
}

int check(int result, const char* call) {
  if (result < 0) stop(call);
  return result;
}

bool wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

// Spins, for the processes come together within microseconds and sleep would disturb what follows.
void Barrier::wait() {
  const uint32_t meeting = arrived_.fetch_add(1) / 2;
  while (arrived_.load() / 2 == meeting) sched_yield();
}

bool run_two_processes(unsigned limit_s, const std::function<bool(int)>& body) {
  const pid_t parent = getpid();
  std::fflush(nullptr);
  const pid_t child = check(fork(), "fork");
  if (child == 0) {
    check(prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
    if (getppid() != parent) _exit(1);
    alarm(limit_s);
    _exit(body(1) ? 0 : 1);
  }
  alarm(limit_s);  // its default action ends the program, and with it the child
  const bool ok = body(0);
  if (!ok) kill(child, SIGKILL);
  const bool child_ok = wait_for(child);
  alarm(0);
  if (!ok || !child_ok) std::fprintf(stderr, "benchmark: one of the two processes failed\n");
  return ok && child_ok;
}

SocketPair make_loopback_pair() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const int listener = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  check(bind(listener, any, length), "bind to 127.0.0.1");
  check(listen(listener, 1), "listen");
  check(getsockname(listener, any, &length), "getsockname");
  SocketPair pair{};
  pair.ends[0] = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  check(connect(pair.ends[0], any, length), "connect to 127.0.0.1");
  pair.ends[1] = check(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), "accept");
  close(listener);
  for (const int end : pair.ends) {
    const int on = 1;
    check(setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    // As the plugin does within a host: bbr would pace, and be no limit.
    check(setsockopt(end, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), "TCP_CONGESTION");
  }
  return pair;
}

void set_blocking(int fd, bool blocking) {
  const int flags = check(fcntl(fd, F_GETFL), "fcntl");
  check(fcntl(fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK), "fcntl");
}

}  // namespace slime::bench
