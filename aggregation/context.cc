// The public calls.
#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "aggregation/context_impl.h"
#include "aggregation/path.h"
#include "base/log.h"

namespace slime::aggregation {
namespace {

std::atomic<LogSink> g_sink{nullptr};
std::atomic<bool> g_chosen{false};

static_assert(static_cast<int>(LogLevel::kWarning) == static_cast<int>(log::Level::kWarn) &&
              static_cast<int>(LogLevel::kInfo) == static_cast<int>(log::Level::kInfo) &&
              static_cast<int>(LogLevel::kTrace) == static_cast<int>(log::Level::kTrace));
void pass_on(log::Level level, const char* /*file*/, int /*line*/, const char* text) {
  if (const LogSink sink = g_sink.load()) sink(static_cast<LogLevel>(level), text);
}

void to_stderr(LogLevel level, const char* line) {
  if (level == LogLevel::kWarning) std::fprintf(stderr, "slime: %s\n", line);
}

// Warnings go to stderr unless set_log() was called.
void ensure_log() {
  if (g_chosen.exchange(true)) return;
  g_sink.store(to_stderr);
  log::set_sink(pass_on);
}

// A counter that the public struct lacks does not compile.
Statistics statistics_of(const WorkerReport& report) {
  Statistics statistics;
#define SLIME_FIELD(name, help) statistics.name = report.worker.name;
  SLIME_WORKER_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
#define SLIME_FIELD(name, help) statistics.name = report.port.name;
  SLIME_UDP_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  statistics.round_trip_ns = report.round_trip_ns;
  statistics.without_switch = report.without_switch();
  statistics.switches = report.switches;
  statistics.lost_switches = report.lost_switches;
  return statistics;
}

// An interface's name need not be UTF-8; a replacement character beats no statistics.
std::string json_text_of(const WorkerReport& report) {
  return json_of(report).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void set_log(LogSink sink) {
  g_chosen.store(true);
  g_sink.store(sink);
  log::set_sink(sink == nullptr ? nullptr : pass_on);
}

Outcome Context::open(const Options& options, std::unique_ptr<Context>* context) {
  if (context == nullptr) return {Code::kInvalid, "Context::open: context is NULL"};
  context->reset();
  ensure_log();
  auto opened = open_path(options);
  if (!opened) return outcome_of(opened.error());
  context->reset(new Context(std::make_unique<Impl>(options, std::move(*opened))));
  return {};
}

Context::Context(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Context::~Context() = default;

Outcome Context::all_reduce(const Reduction& reduction, double timeout_s) {
  return impl_->run(reduction, timeout_s);
}
Outcome Context::all_reduce_async(const Reduction& reduction, Request* request) {
  return impl_->start(reduction, request);
}
Outcome Context::test(const Request& request, bool* done) { return impl_->test(request, done); }
Outcome Context::wait(const Request& request, double timeout_s) {
  return impl_->wait(request, timeout_s);
}
Statistics Context::statistics() const { return statistics_of(impl_->report()); }
std::string Context::statistics_json() const { return json_text_of(impl_->report()); }
uint32_t Context::rank() const { return impl_->rank(); }
uint32_t Context::ranks() const { return impl_->ranks(); }

}  // namespace slime::aggregation
