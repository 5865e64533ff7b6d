#include "transports/flush_reads.h"

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

Error flush_error(const RailCaps& rail, Error error) {
  error.what = "rail " + rail.name + ", for iflush: " + error.what;
  return error;
}

}  // namespace slime
