#include "tools/switchd/metrics_http.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <slime/clock.h>
#include <slime_version.h>

#include "switch/controller/report.h"

namespace slime::switchd {
namespace {

constexpr unsigned kMaxConnections = 16;
constexpr unsigned kTimeoutSeconds = 5;
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
  const uint64_t up_ns = SteadyClock::instance().now_ns() - started_ns;
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
  server->daemon_ =
      MHD_start_daemon(MHD_USE_EPOLL, 0, nullptr, nullptr, &MetricsHttp::answer, server.get(),
                       MHD_OPTION_LISTEN_SOCKET, listener->get(), MHD_OPTION_CONNECTION_LIMIT,
                       kMaxConnections, MHD_OPTION_CONNECTION_TIMEOUT, kTimeoutSeconds,
                       MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_END);
  const MHD_DaemonInfo* info = server->daemon_ == nullptr
                                   ? nullptr
                                   : MHD_get_daemon_info(server->daemon_, MHD_DAEMON_INFO_EPOLL_FD);
  if (info == nullptr) {
    return fail(make_error(Status::kSystem, errno,
                           "libmicrohttpd does not start on %s; configure no metrics.listen to go "
                           "on without metrics",
                           address.to_string().c_str()));
  }
  (void)listener->release();  // MHD_stop_daemon closes it
  server->descriptor_ = info->epoll_fd;
  return server;
}

MetricsHttp::~MetricsHttp() {
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

int MetricsHttp::timeout_ms(int most) const {
  MHD_UNSIGNED_LONG_LONG timeout = 0;
  if (MHD_get_timeout(daemon_, &timeout) != MHD_YES) return most;
  return static_cast<int>(std::min<uint64_t>(timeout, static_cast<uint64_t>(most)));
}

void MetricsHttp::run() { (void)MHD_run(daemon_); }

MHD_Result MetricsHttp::answer(void* self, MHD_Connection* connection, const char* url,
                               const char* method, const char* /*version*/, const char* /*upload*/,
                               size_t* upload_bytes, void** /*state*/) {
  constexpr const char* kPlain = "text/plain; charset=utf-8";
  if (*upload_bytes != 0) return MHD_NO;  // nobody sends us anything
  if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
    return send(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                "GET /metrics and GET /healthz are all there is\n", kPlain);
  }
  const auto* server = static_cast<const MetricsHttp*>(self);
  if (strcmp(url, "/healthz") == 0) {  // that it answers is the news: one loop serves everybody
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
