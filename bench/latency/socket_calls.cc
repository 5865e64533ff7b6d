// The system calls of NCCL's own socket transport, behind the plugin's interface, so that both can
// be driven by one loop. The facts are those of NCCL 2.28.9, src/transport/net_socket.cc and
// src/misc/socket.cc, at its defaults: without helper threads (only NICs of two clouds get some) a
// connection is one socket, and nothing is done but by test().
// * A message is its size as an int, with up to 128 bytes of data behind it; then the rest.
// * Each call of send() or recv() is one that does not wait, for all that is left; the rest of a
//   message takes one call for each test().
// * The receiver reads the size by itself, then what came with it, then the rest.
// * TCP_NODELAY; the kernel chooses the buffers.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/interfaces/interfaces.h"
#include "bench/common/two_processes.h"
#include "bench/latency/modes.h"

namespace slime::bench {
namespace {

constexpr int kInlineBytes = 128;  // NCCL_SOCKET_INLINE
constexpr int kRequests = 32;      // NCCL_NET_MAX_REQUESTS

struct Comm;

enum class Stage { kFree, kSize, kInline, kRest };

struct Request {
  Comm* comm;
  Stage stage = Stage::kFree;
  bool send;
  char* data;
  int size;
  int done;  // bytes of this stage; in kRest, of the message
  char head[sizeof(int) + kInlineBytes];
};

struct Comm {
  explicit Comm(int socket) : fd(socket) {}
  int fd;
  Request requests[kRequests];
};

nccl::ResultCode failed(const char* call) {
  std::fprintf(stderr, "bench-latency: %s: %s\n", call, std::strerror(errno));
  return nccl::kSystemError;
}

// One call. False: the connection is gone.
bool move(const Request& request, char* data, int size, int* done) {
  const auto left = static_cast<size_t>(size - *done);
  const ssize_t moved =
      request.send ? send(request.comm->fd, data + *done, left, MSG_DONTWAIT | MSG_NOSIGNAL)
                   : recv(request.comm->fd, data + *done, left, MSG_DONTWAIT);
  if (moved > 0) *done += static_cast<int>(moved);
  return moved > 0 || (moved < 0 && (errno == EAGAIN || errno == EINTR));
}

// Calls until all is there; nothing of it yet: no more calls.
bool advance_all(const Request& request, char* data, int size, int* done) {
  while (*done < size) {
    if (!move(request, data, size, done)) return false;
    if (*done == 0) return true;
  }
  return true;
}

int inline_part(int size) { return size <= kInlineBytes ? size : 0; }

bool send_head(Request* request) {
  const int head = static_cast<int>(sizeof(int)) + inline_part(request->size);
  std::memcpy(request->head, &request->size, sizeof(int));
  std::memcpy(request->head + sizeof(int), request->data,
              static_cast<size_t>(inline_part(request->size)));
  if (!advance_all(*request, request->head, head, &request->done)) return false;
  if (request->done == head) request->stage = Stage::kRest;
  return true;
}

bool receive_head(Request* request) {
  if (request->stage == Stage::kSize) {
    if (!advance_all(*request, request->head, sizeof(int), &request->done)) return false;
    if (request->done == 0) return true;
    int size = 0;
    std::memcpy(&size, request->head, sizeof size);
    if (size < 0 || size > request->size) return false;
    request->size = size;
    request->stage = Stage::kInline;
    request->done = 0;
  }
  const int part = inline_part(request->size);
  if (!advance_all(*request, request->data, part, &request->done)) return false;
  if (request->done == part) request->stage = Stage::kRest;
  return true;
}

nccl::ResultCode test(void* handle, int* done, int* sizes) {
  auto* request = static_cast<Request*>(handle);
  *done = 0;
  if (request->stage != Stage::kRest) {
    if (!(request->send ? send_head(request) : receive_head(request))) return failed("a head");
    if (request->stage != Stage::kRest) return nccl::kSuccess;
    request->done = inline_part(request->size);
  }
  if (request->done < request->size &&
      !move(*request, request->data, request->size, &request->done)) {
    return failed(request->send ? "send" : "recv");
  }
  if (request->done == request->size) {
    *done = 1;
    if (sizes != nullptr) *sizes = request->size;
    request->stage = Stage::kFree;
  }
  return nccl::kSuccess;
}

nccl::ResultCode begin(Comm* comm, bool send, void* data, int size, void** request) {
  auto* const free = std::find_if(std::begin(comm->requests), std::end(comm->requests),
                                  [](const Request& r) { return r.stage == Stage::kFree; });
  if (free == std::end(comm->requests)) return nccl::kInternalError;
  free->comm = comm;
  free->stage = Stage::kSize;
  free->send = send;
  free->data = static_cast<char*>(data);
  free->size = size;
  free->done = 0;
  *request = free;
  return nccl::kSuccess;
}
nccl::ResultCode isend(void* comm, void* data, int size, int, void*, void** request) {
  return begin(static_cast<Comm*>(comm), true, data, size, request);
}
nccl::ResultCode irecv(void* comm, int, void** data, int* sizes, int*, void**, void** request) {
  return begin(static_cast<Comm*>(comm), false, data[0], sizes[0], request);
}

// Set-up: NCCL's has more steps, but none of them comes between messages.

nccl::ResultCode init(nccl::Logger) { return nccl::kSuccess; }
nccl::ResultCode devices(int* count) {
  *count = 1;
  return nccl::kSuccess;
}

nccl::ResultCode listen_here(int, void* handle, void** listen_comm) {
  const char* pattern = std::getenv("NCCL_SLIME_IFNAME");
  const auto list = list_interfaces(pattern == nullptr ? "" : pattern);
  if (!list || list->interfaces.empty()) return failed("no interface");
  const SocketAddress address = list->interfaces.front().address;
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  const int fd = socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, address.data(), address.size()) != 0 || listen(fd, 4) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return failed("listen");
  }
  std::memcpy(handle, &bound, length);
  *listen_comm = new Comm(fd);
  return nccl::kSuccess;
}

nccl::ResultCode make_comm(int fd, void** comm) {
  const int on = 1;
  if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return failed("a connection");
  }
  set_blocking(fd, false);
  *comm = new Comm(fd);
  return nccl::kSuccess;
}
nccl::ResultCode connect_to(int, void* handle, void** send_comm, nccl::NetDeviceHandle**) {
  const auto* any = static_cast<const sockaddr*>(handle);
  const int fd = socket(any->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const socklen_t length = any->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (fd < 0 || connect(fd, any, length) != 0) return failed("connect");
  return make_comm(fd, send_comm);
}
nccl::ResultCode accept_one(void* listen_comm, void** recv_comm, nccl::NetDeviceHandle**) {
  return make_comm(accept4(static_cast<Comm*>(listen_comm)->fd, nullptr, nullptr, SOCK_CLOEXEC),
                   recv_comm);
}
nccl::ResultCode reg_mr(void*, void*, size_t, int, void** mhandle) {
  *mhandle = nullptr;
  return nccl::kSuccess;
}
nccl::ResultCode close_comm(void* comm) {
  close(static_cast<Comm*>(comm)->fd);
  delete static_cast<Comm*>(comm);
  return nccl::kSuccess;
}

}  // namespace

const nccl::NetV8* socket_calls() {
  static const nccl::NetV8 table = [] {
    nccl::NetV8 net{};
    net.name = "system calls of NCCL's Socket";
    net.init = init;
    net.devices = devices;
    net.listen = listen_here;
    net.connect = connect_to;
    net.accept = accept_one;
    net.reg_mr = reg_mr;
    net.isend = isend;
    net.irecv = irecv;
    net.test = test;
    net.close_send = net.close_recv = net.close_listen = close_comm;
    return net;
  }();
  return &table;
}

}  // namespace slime::bench
