#include "tools/switchd/daemon.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/log.h"
#include "switch/controller/server.h"
#include "switch/controller/uplink.h"
#include "tools/switchd/metrics_http.h"

namespace slime::switchd {
namespace {

// Each part uses those before it, so they are destroyed in the opposite order.
struct Parts {
  Fd signals;
  std::unique_ptr<net::SwitchDriver> driver;
  std::unique_ptr<net::Controller> controller;
  std::unique_ptr<net::ControlServer> control;
  std::unique_ptr<MetricsHttp> metrics;  // may be absent
  std::unique_ptr<net::Uplink> uplink;   // may be absent
};

// Blocks the signals before any thread starts, so that no thread takes them from the loop.
Result<Fd> take_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  const int code = pthread_sigmask(SIG_BLOCK, &set, nullptr);
  if (code != 0) return fail(system_error(code, "block SIGTERM, SIGINT and SIGHUP"));
  (void)signal(SIGPIPE, SIG_IGN);  // a closed pipe or connection is an error code to us
  Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail(system_error(errno, "signalfd for SIGTERM, SIGINT and SIGHUP"));
  return fd;
}

net::ServerOptions server_options(const Config& config, const net::KeyRing& keys) {
  net::ServerOptions options = config.control;
  options.keys = keys;
  // Workers send several heartbeats in a lease. One that is silent for two leases has no job.
  options.idle_ns = std::max(options.idle_ns, 2 * config.controller.lease_ns);
  return options;
}

Result<void> open_metrics(const Config& config, Parts* parts) {
  if (!config.metrics_listen) return {};
  auto metrics = MetricsHttp::open(*config.metrics_listen, *parts->controller);
  if (!metrics) return fail(std::move(metrics.error()));
  parts->metrics = std::move(*metrics);
  return {};
}

Result<void> open_uplink(const Config& config, Parts* parts) {
  const auto& parent = parts->controller->options().parent;
  if (!parent) return {};
  auto key = load_parent_key(config);
  if (!key) return fail(std::move(key.error()));
  parts->uplink = std::make_unique<net::Uplink>(parts->controller->leaf(),
                                                net::UplinkOptions{.parent = *parent, .key = *key},
                                                SteadyClock::instance());
  return {};
}

// Keys are read first, and signals are blocked before the first thread starts. Listeners are opened
// last, so that a daemon that fails to start has accepted nobody.
Result<Parts> open_parts(const Config& config) {
  Parts parts;
  const auto keys = load_keys(config);
  if (!keys) return fail(keys.error());
  auto signals = take_signals();
  if (!signals) return fail(std::move(signals.error()));
  parts.signals = std::move(*signals);
  auto driver = make_driver(config);
  if (!driver) return fail(std::move(driver.error()));
  parts.driver = std::move(*driver);
  net::ControllerOptions options = config.controller;
  auto seed = random_number<uint64_t>();
  if (!seed) return fail(std::move(seed.error()));
  options.seed = *seed;
  parts.controller =
      std::make_unique<net::Controller>(*parts.driver, options, SteadyClock::instance());
  auto control = net::ControlServer::open(*parts.controller, server_options(config, *keys));
  if (!control) return fail(std::move(control.error()));
  parts.control = std::move(*control);
  if (auto opened = open_metrics(config, &parts); !opened) return fail(opened.error());
  if (auto opened = open_uplink(config, &parts); !opened) return fail(opened.error());
  return parts;
}

// Prints the line that scripts wait for.
void say_ready(const Config& config, const Parts& parts) {
  const net::SwitchShape shape = parts.driver->shape();
  const SocketAddress control = parts.control->address();
  if (config.key_file.empty() && !control.is_loopback()) {
    SLIME_WARN("no key (control.key_file): %s can create and end jobs",
               config.control.allow_unauthenticated ? "everybody who reaches the control channel"
                                                    : "everybody on this host");
  }
  printf("slime-switchd: ready: data %s, control %s, %s",
         control::shard_range(shape.address, shape.shards).c_str(), control.to_string().c_str(),
         config.key_file.empty()      ? "no key"
         : config.tenant_keys.empty() ? "key"
                                      : "a key per tenant");
  if (parts.metrics) printf(", metrics %s", parts.metrics->address().to_string().c_str());
  if (parts.uplink) printf(", parent %s", config.controller.parent->to_string().c_str());
  printf("\n");
  (void)fflush(stdout);  // a closed standard output is no reason to end
}

// Everything is read before anything is changed, so a mistake changes nothing.
Result<void> read_again(const std::string& path, Parts* parts) {
  Values values;
  auto config = path.empty() ? make_config(values) : read_config(path, &values);
  if (!config) return fail(std::move(config.error()));
  auto keys = load_keys(*config);
  if (!keys) return fail(std::move(keys.error()));
  auto parent_key = load_parent_key(*config);
  if (!parent_key) return fail(std::move(parent_key.error()));
  if (keys->wanted() != parts->control->keys().wanted()) {
    return fail(Status::kConfig,
                "control.key_file came or went: start the daemon again to use a switch with a key, "
                "or without one");
  }
  parts->control->set_keys(std::move(*keys));
  if (parts->uplink) parts->uplink->set_key(*parent_key);
  parts->controller->set_quotas(config->controller.default_quota, config->controller.tenants);
  return {};
}

// False: the daemon is to end.
bool take_signal(int number, const std::string& path, Parts* parts) {
  if (number != SIGHUP) {
    SLIME_INFO("%s: ending, with %zu jobs", strsignal(number), parts->controller->jobs().size());
    return false;
  }
  if (auto read = read_again(path, parts); !read) {
    SLIME_WARN("SIGHUP: nothing is changed: %s", read.error().what.c_str());
  } else {
    SLIME_INFO(
        "SIGHUP: keys and quotas were read again; other keys of the configuration take "
        "effect when the daemon is started again");
  }
  return true;
}

// Sleeps until a socket, a deadline or a signal, then lets each part do what it can do now, and so
// on. No part blocks, so none delays another for long.
Result<void> loop(const std::string& path, Parts& parts) {
  pollfd fds[4] = {{parts.signals.get(), POLLIN, 0},
                   {parts.control->descriptor(), POLLIN, 0},
                   {parts.metrics ? parts.metrics->descriptor() : -1, POLLIN, 0},
                   {-1, 0, 0}};
  for (;;) {
    int timeout = parts.control->timeout_ms();
    if (parts.metrics) timeout = parts.metrics->timeout_ms(timeout);
    if (parts.uplink) {
      fds[3] = {parts.uplink->descriptor(), parts.uplink->events(), 0};
      timeout = parts.uplink->timeout_ms(timeout);
    }
    if (poll(fds, 4, timeout) < 0 && errno != EINTR) {
      return fail(system_error(errno, "poll in the daemon's loop"));
    }
    parts.control->run();
    if (parts.uplink) parts.uplink->run();
    if (parts.metrics) parts.metrics->run();
    signalfd_siginfo signal{};
    if (read(parts.signals.get(), &signal, sizeof signal) == sizeof signal &&
        !take_signal(static_cast<int>(signal.ssi_signo), path, &parts)) {
      return {};
    }
  }
}

}  // namespace

Result<void> serve(const Config& config, const std::string& path) {
  auto parts = open_parts(config);
  if (!parts) return fail(std::move(parts.error()));
  say_ready(config, *parts);
  return loop(path, *parts);
}

}  // namespace slime::switchd
