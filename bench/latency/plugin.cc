// The ping-pong through a network of NCCL's, called as NCCL's proxy does: the plugin's library, or
// the system calls of NCCL's own.
#include <dlfcn.h>
#include <sys/socket.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "bench/latency/modes.h"
#include "plugin/abi/net_tables.h"

namespace slime::bench {
namespace {

constexpr uint64_t kConnectLimitNs = 20'000'000'000;
constexpr uint32_t kAhead = 8;  // receives posted ahead: NCCL_STEPS (NCCL, src/include/device.h)
constexpr size_t kLargeBytes = 1 << 20;  // fewer are posted ahead, for want of memory
constexpr int kTag = 1;
constexpr size_t kPage = 4096;
constexpr size_t kHandleSize = 128;  // NCCL_NET_HANDLE_MAXSIZE

struct FreeBuffer {
  void operator()(char* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<char, FreeBuffer>;

// Written once, so that no page is taken while time is measured.
Buffer make_buffer(size_t bytes) {
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  Buffer buffer(static_cast<char*>(std::aligned_alloc(kPage, rounded)));
  if (buffer != nullptr) std::memset(buffer.get(), 0, rounded);
  return buffer;
}

void log_warnings(nccl::LogLevel level, unsigned long, const char*, int, const char* format, ...) {
  if (level > nccl::kLogWarn) return;
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
}

class TablePingPong final : public PingPong {
 public:
  TablePingPong(int rank, const nccl::NetV8& net, size_t bytes)
      : rank_(rank),
        net_(net),
        bytes_(bytes),
        ahead_(bytes > kLargeBytes ? 2 : kAhead),
        out_(make_buffer(bytes)),
        in_(make_buffer(bytes * ahead_)) {}
  ~TablePingPong() override {
    if (send_handle_ != nullptr) (void)net_.dereg_mr(send_comm_, send_handle_);
    if (recv_handle_ != nullptr) (void)net_.dereg_mr(recv_comm_, recv_handle_);
    if (send_comm_ != nullptr) (void)net_.close_send(send_comm_);
    if (recv_comm_ != nullptr) (void)net_.close_recv(recv_comm_);
    if (listen_comm_ != nullptr) (void)net_.close_listen(listen_comm_);
  }

  bool connect(int handle_fd) {
    if (out_ == nullptr || in_ == nullptr) return complain("out of memory");
    std::array<char, kHandleSize> own{}, peer{};
    int devices = 0;
    if (!ok(net_.init(log_warnings), "init") || !ok(net_.devices(&devices), "devices"))
      return false;
    if (devices == 0) return complain("no network device was found");
    if (!ok(net_.listen(0, own.data(), &listen_comm_), "listen")) return false;
    if (send(handle_fd, own.data(), own.size(), MSG_NOSIGNAL) != kHandleSize ||
        recv(handle_fd, peer.data(), peer.size(), MSG_WAITALL) != kHandleSize) {
      return complain("the other process is gone");
    }
    const uint64_t end = SteadyClock::instance().now_ns() + kConnectLimitNs;
    while (send_comm_ == nullptr || recv_comm_ == nullptr) {
      nccl::NetDeviceHandle* offload = nullptr;
      if (send_comm_ == nullptr &&
          !ok(net_.connect(0, peer.data(), &send_comm_, &offload), "connect")) {
        return false;
      }
      if (recv_comm_ == nullptr &&
          !ok(net_.accept(listen_comm_, &recv_comm_, &offload), "accept")) {
        return false;
      }
      if (SteadyClock::instance().now_ns() > end) return complain("the ends do not connect");
    }
    return ok(net_.reg_mr(send_comm_, out_.get(), bytes_, nccl::kPointerHost, &send_handle_),
              "regMr") &&
           ok(net_.reg_mr(recv_comm_, in_.get(), bytes_ * ahead_, nccl::kPointerHost,
                          &recv_handle_),
              "regMr");
  }

  bool run(unsigned round_trips, std::vector<uint64_t>* ns) override {
    to_post_ = round_trips;
    while (posted_ - received_ < ahead_ && to_post_ > 0) {
      if (!post_receive()) return false;
    }
    for (unsigned i = 0; i < round_trips; ++i) {
      const uint64_t started = SteadyClock::instance().now_ns();
      if (rank_ == 0 && !send_message()) return false;
      if (!receive_message()) return false;
      if (rank_ == 0) ns->push_back(SteadyClock::instance().now_ns() - started);
      if (rank_ == 1 && !send_message()) return false;
      if (to_post_ > 0 && !post_receive()) return false;
    }
    return finish_send();
  }

 private:
  bool complain(const char* what) {
    std::fprintf(stderr, "bench-latency: %s\n", what);
    return false;
  }
  bool ok(nccl::ResultCode code, const char* call) {
    if (code == nccl::kSuccess) return true;
    std::fprintf(stderr, "bench-latency: %s returned %d\n", call, static_cast<int>(code));
    return false;
  }

  bool post_receive() {
    void* data = place(posted_);
    int size = static_cast<int>(bytes_), tag = kTag;
    void* request = nullptr;
    while (request == nullptr) {
      if (!ok(net_.irecv(recv_comm_, 1, &data, &size, &tag, &recv_handle_, &request), "irecv")) {
        return false;
      }
    }
    receives_[posted_++ % ahead_] = request;
    --to_post_;
    return true;
  }
  // The proxy visits every connection in turn: what is under way there moves too.
  bool visit_send() {
    if (send_request_ == nullptr) return true;
    int done = 0;
    if (!ok(net_.test(send_request_, &done, nullptr), "test of a send")) return false;
    if (done != 0) send_request_ = nullptr;
    return true;
  }
  bool finish_send() {
    while (send_request_ != nullptr) {
      if (!visit_send()) return false;
    }
    return true;
  }
  bool send_message() {
    if (!finish_send()) return false;
    stamp(out_.get(), sent_++);
    while (send_request_ == nullptr) {
      if (!ok(net_.isend(send_comm_, out_.get(), static_cast<int>(bytes_), kTag, send_handle_,
                         &send_request_),
              "isend")) {
        return false;
      }
    }
    return visit_send();
  }
  bool receive_message() {
    for (int done = 0; done == 0;) {
      if (!visit_send()) return false;
      if (!ok(net_.test(receives_[received_ % ahead_], &done, nullptr), "test of a receive")) {
        return false;
      }
    }
    const uint32_t n = received_++;
    return has_stamp(place(n), n) || complain("a message is wrong");
  }

  char* place(uint32_t n) { return in_.get() + bytes_ * (n % ahead_); }
  // Each message says at both ends which one it is.
  void stamp(char* message, uint64_t n) const {
    std::memcpy(message, &n, sizeof n);
    std::memcpy(message + bytes_ - sizeof n, &n, sizeof n);
  }
  bool has_stamp(const char* message, uint64_t n) const {
    return std::memcmp(message, &n, sizeof n) == 0 &&
           std::memcmp(message + bytes_ - sizeof n, &n, sizeof n) == 0;
  }

  const int rank_;
  const nccl::NetV8& net_;
  const size_t bytes_;
  const uint32_t ahead_;
  const Buffer out_, in_;
  void* listen_comm_ = nullptr;
  void* send_comm_ = nullptr;
  void* recv_comm_ = nullptr;
  void* send_handle_ = nullptr;
  void* recv_handle_ = nullptr;
  void* send_request_ = nullptr;
  std::array<void*, kAhead> receives_{};
  uint32_t posted_ = 0, received_ = 0, sent_ = 0;
  unsigned to_post_ = 0;
};

}  // namespace

const nccl::NetV8* load_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "bench-latency: %s\n", dlerror());
    return nullptr;
  }
  const auto* net = static_cast<const nccl::NetV8*>(dlsym(library, "ncclNetPlugin_v8"));
  if (net == nullptr) {
    std::fprintf(stderr, "bench-latency: %s has no ncclNetPlugin_v8\n", path.c_str());
  }
  return net;
}

std::unique_ptr<PingPong> make_network(int rank, int handle_fd, const nccl::NetV8* net,
                                       size_t bytes) {
  if (net == nullptr) return nullptr;
  auto ping_pong = std::make_unique<TablePingPong>(rank, *net, bytes);
  if (!ping_pong->connect(handle_fd)) return nullptr;
  return ping_pong;
}

}  // namespace slime::bench
