#include "tools/switchd/metrics_http.h"

#include <fcntl.h>
#include <slime_version.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "settings/times.h"

namespace slime::switchd {
namespace {

// More than there are places: a connection that has lost its place may not be closed yet.
constexpr unsigned kMaxConnections = 2 * VisitorPort::kPlaces;
constexpr int kPauseMs = 10;
constexpr auto kTimeoutSeconds = static_cast<unsigned>(times::kMetricsSilence / times::kSecond);
constexpr size_t kConnectionBytes = 16 << 10;

MHD_Result send(MHD_Connection* connection, unsigned status, const std::string& text,
                const char* type) {
  MHD_Response* response = MHD_create_response_from_buffer(
      text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued;
}

std::string process_metrics(uint64_t started_ns) {
  const uint64_t up_ns = steady_now_ns() - started_ns;
  return "# HELP slime_switch_build_info Version and commit of slime-switchd; the value is 1\n"
         "# TYPE slime_switch_build_info gauge\n"
         "slime_switch_build_info{version=\"" SLIME_VERSION "\",commit=\"" SLIME_COMMIT
         "\"} 1\n"
         "# HELP slime_switch_uptime_seconds Time since the daemon was ready\n"
         "# TYPE slime_switch_uptime_seconds gauge\n"
         "slime_switch_uptime_seconds " +
         std::to_string(up_ns / 1'000'000'000) + "\n";
}

}  // namespace

Result<std::unique_ptr<MetricsHttp>> MetricsHttp::open(const SocketAddress& address,
                                                       const net::Controller& controller) {
  auto listener = listen_on(address);
  if (!listener) return fail(std::move(listener.error()));
  auto local = local_address(*listener);
  if (!local) return fail(std::move(local.error()));
  std::unique_ptr<MetricsHttp> server(new MetricsHttp(controller));
  server->address_ = *local;
  server->listener_ = std::move(*listener);
  if (auto started = server->start(); !started) return fail(std::move(started.error()));
  return server;
}

// libmicrohttpd has an epoll descriptor of its own, which ours watches beside the listener: so the
// daemon polls one descriptor for all of this.
Result<void> MetricsHttp::start() {
  daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, nullptr, nullptr, &MetricsHttp::answer, this,
      MHD_OPTION_CONNECTION_LIMIT, kMaxConnections, MHD_OPTION_CONNECTION_TIMEOUT, kTimeoutSeconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_NOTIFY_CONNECTION,
      &MetricsHttp::ended, this, MHD_OPTION_END);
  const MHD_DaemonInfo* info =
      daemon_ == nullptr ? nullptr : MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
  poller_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (info != nullptr && poller_ && watch(info->epoll_fd, EPOLL_CTL_ADD) &&
      watch(listener_.get(), EPOLL_CTL_ADD)) {
    return {};
  }
  return fail(make_error(Status::kSystem, errno,
                         "libmicrohttpd does not start on %s; configure no metrics.listen to go "
                         "on without metrics",
                         address_.to_string().c_str()));
}

MetricsHttp::~MetricsHttp() {
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

bool MetricsHttp::watch(int fd, int operation) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(poller_.get(), operation, fd, &event) == 0;
}

// Deadlines of connections are libmicrohttpd's.
int MetricsHttp::timeout_ms(int most) const {
  if (paused_until_ns_ != 0) most = std::min(most, kPauseMs);
  MHD_UNSIGNED_LONG_LONG timeout = 0;
  if (MHD_get_timeout(daemon_, &timeout) != MHD_YES) return most;
  return static_cast<int>(std::min<uint64_t>(timeout, static_cast<uint64_t>(most)));
}

void MetricsHttp::run() {
  (void)MHD_run(daemon_);
  if (steady_now_ns() >= paused_until_ns_) accept_all();
}

// A connection that cannot be accepted stays in the backlog, and poll would report it again at
// once. So the listener is not watched for a while.
void MetricsHttp::accept_all() {
  if (paused_until_ns_ != 0 && !watch(listener_.get(), EPOLL_CTL_ADD)) return;
  paused_until_ns_ = 0;
  Error error;
  if (accept_visitors(listener_, steady_now_ns(), &error) == Status::kOk) return;
  (void)watch(listener_.get(), EPOLL_CTL_DEL);
  paused_until_ns_ = steady_now_ns() + kPauseMs * 1'000'000ULL;
}

std::vector<Visit> MetricsHttp::visits() const {
  std::vector<Visit> all;
  for (const Visitor& visitor : visitors_) all.push_back({visitor.from, visitor.since_ns});
  return all;
}

// libmicrohttpd finds the end of the connection, and closes it.
void MetricsHttp::drop_visit(size_t index) {
  const auto dropped = visitors_.begin() + static_cast<ptrdiff_t>(index);
  (void)shutdown(dropped->fd.get(), SHUT_RDWR);
  visitors_.erase(dropped);
  (void)MHD_run(daemon_);
}

// The connection is libmicrohttpd's from here on. We keep a second descriptor, to shut it down.
Status MetricsHttp::admit(Accepted accepted, Error* /*error*/) {
  Fd own(fcntl(accepted.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!own) return Status::kOk;  // out of descriptors: the connection is closed
  const int number = accepted.fd.get();
  forget(number);
  visitors_.push_back({number, std::move(own), accepted.peer, steady_now_ns()});
  if (MHD_add_connection(daemon_, accepted.fd.release(), accepted.peer.data(),
                         accepted.peer.size()) != MHD_YES) {
    forget(number);
  }
  (void)MHD_run(daemon_);  // answers a request that has arrived with the connection
  return Status::kOk;
}

void MetricsHttp::forget(int number) {
  std::erase_if(visitors_, [number](const Visitor& one) { return one.number == number; });
}

// libmicrohttpd is about to close the connection.
void MetricsHttp::ended(void* self, MHD_Connection* connection, void** /*state*/,
                        MHD_ConnectionNotificationCode what) {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (what != MHD_CONNECTION_NOTIFY_CLOSED || info == nullptr) return;
  static_cast<MetricsHttp*>(self)->forget(info->connect_fd);
}

MHD_Result MetricsHttp::answer(void* self, MHD_Connection* connection, const char* url,
                               const char* method, const char* /*version*/, const char* /*upload*/,
                               size_t* upload_bytes, void** /*state*/) {
  constexpr const char* kPlain = "text/plain; charset=utf-8";
  if (*upload_bytes != 0) return MHD_NO;  // a request with a body is refused
  if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
    return send(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                "GET /metrics and GET /healthz are all there is\n", kPlain);
  }
  const auto* server = static_cast<const MetricsHttp*>(self);
  if (strcmp(url, "/healthz") == 0) {  // any answer shows that the daemon's loop runs
    const bool draining = server->controller_.draining();
    return send(connection, MHD_HTTP_OK, draining ? "ok, draining: takes no new jobs\n" : "ok\n",
                kPlain);
  }
  if (strcmp(url, "/metrics") != 0) {
    return send(connection, MHD_HTTP_NOT_FOUND, "there are only /metrics and /healthz\n", kPlain);
  }
  return send(connection, MHD_HTTP_OK,
              process_metrics(server->started_ns_) + net::metrics_text(server->controller_),
              net::kMetricsType);
}

}  // namespace slime::switchd
