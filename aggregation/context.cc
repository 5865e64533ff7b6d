// The public calls.
#include <utility>

#include "aggregation/context_impl.h"
#include "aggregation/log.h"
#include "aggregation/outcome.h"
#include "aggregation/statistics.h"

namespace slime::aggregation {

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
