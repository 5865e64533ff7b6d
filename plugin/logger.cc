#include "plugin/logger.h"

#include <atomic>

#include "base/log.h"

namespace slime::plugin {
namespace {

std::atomic<nccl::Logger> g_logger{nullptr};

nccl::LogLevel level_of(log::Level level) {
  switch (level) {
    case log::Level::kWarn:
      return nccl::kLogWarn;
    case log::Level::kInfo:
      return nccl::kLogInfo;
    case log::Level::kTrace:
      return nccl::kLogTrace;
  }
  return nccl::kLogInfo;
}

void to_nccl(log::Level level, const char* file, int line, const char* text) {
  const nccl::Logger logger = g_logger.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  // The prefix is how NCCL's own transports mark their lines ("NET/IB : ").
  logger(level_of(level), nccl::kSubsystemInit | nccl::kSubsystemNet, file, line, "NET/SLIME : %s",
         text);
}

}  // namespace

void set_logger(nccl::Logger logger) {
  if (logger == nullptr) log::set_sink(nullptr);
  g_logger.store(logger, std::memory_order_release);
  if (logger != nullptr) log::set_sink(to_nccl);
}

}  // namespace slime::plugin
