#include "transports/flush_reads.h"

#include <utility>

#include "base/check.h"
#include "transports/channel_common.h"

namespace slime {

bool FlushReads::is_registered(const Read& read) const {
  const RegionTable::Pin pin(regions_, read.keys.local, reinterpret_cast<uint64_t>(read.address),
                             1);
  return pin.access() == RegionTable::Access::kGranted;
}

Result<void> FlushReads::begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys) {
  const Read begun = {Read::State::kWaiting, address, offset, keys};
  if (!is_registered(begun)) {
    return fail(make_error(Status::kInvalid, 0,
                           "a read at %p, which is not registered with that key",
                           static_cast<const void*>(address)));
  }
  SLIME_CHECK(open() < kMost);
  read(begun_++) = begun;
  return {};
}

void FlushReads::complete(uint64_t number) {
  read(number).state = Read::State::kDone;
  count_completed();
}

bool FlushReads::wait_again(uint64_t number) {
  Read& failed = read(number);
  failed.state = is_registered(failed) ? Read::State::kWaiting : Read::State::kDone;
  count_completed();
  return failed.state == Read::State::kWaiting;
}

void FlushReads::all_wait_again() {
  for (Read& each : reads_) {
    if (each.state == Read::State::kPosted) each.state = Read::State::kWaiting;
  }
}

void FlushReads::count_completed() {
  while (open() > 0 && read(completed_).state == Read::State::kDone) ++completed_;
}

Status ReadFlusher::begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys) {
  if (failed_) return failure_.status;
  if (reads_.open() == room_) return Status::kAgain;
  if (auto added = reads_.begin(address, offset, keys); !added) {
    fail_with(prefixed(std::move(added.error())));
  } else {
    begun(reads_.open() == 1);
  }
  return failed_ ? failure_.status : Status::kOk;
}

Status ReadFlusher::poll(uint64_t* completed) {
  if (!failed_) progress();
  *completed = reads_.completed();
  return failed_ ? failure_.status : Status::kOk;
}

void ReadFlusher::fail_with(Error error) {
  failed_ = true;
  failure_ = std::move(error);
}

Error ReadFlusher::prefixed(Error error) const {
  return slime::prefixed("rail " + rail_caps_.name + ", for flushes", std::move(error));
}

}  // namespace slime
