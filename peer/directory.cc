#include "peer/directory.h"

#include <algorithm>
#include <utility>

#include "peer/messages/message.h"

namespace slime {

void Directory::ask(std::shared_ptr<PeerRequest> request) {
  request->listing->clear();
  asked_.push_back(std::move(request));
  ++open_;
  records_.send(RecordKind::kWantRegions, {});
}

Status Directory::on_record(const Record& record) {
  if (record.kind == static_cast<uint16_t>(RecordKind::kWantRegions)) {
    answer();
    return Status::kOk;
  }
  const auto entry = words_of<Entry>(record.payload);
  return entry ? take(*entry) : link_.context().fail_protocol("the name of a region cut short");
}

void Directory::answer() {
  const auto all = regions_.all();
  for (size_t i = 0; i < all.size(); ++i) {
    Entry entry{static_cast<uint32_t>(all.size() - 1 - i), 1, {}, all[i].blob};
    std::ranges::copy(all[i].name, entry.name.begin());
    records_.send(RecordKind::kRegion, bytes_of(entry));
  }
  if (all.empty()) records_.send(RecordKind::kRegion, bytes_of(Entry{}));
}

Status Directory::take(const Entry& entry) {
  if (asked_.empty()) return link_.context().fail_protocol("a region that nobody asked for");
  PeerRequest* const request = asked_.front().get();
  if (entry.is_region != 0) {
    const auto address = unpack_region(entry.blob);
    if (!address || address->engine != peer_ || entry.name.back() != 0 || entry.name.front() == 0) {
      return link_.context().fail_protocol("a named region that is none");
    }
    if (request != nullptr) {
      if (request->listing->size() == NamedRegions::kMost) {
        return link_.context().fail_protocol("too many named regions");
      }
      request->listing->push_back({entry.name.data(), entry.blob});
    }
  }
  if (entry.left > 0) return Status::kOk;
  if (request != nullptr) {
    --open_;
    request->end(link_.rails().clock().now_ns);
  }
  asked_.pop_front();
  return Status::kOk;
}

void Directory::expire(uint64_t now_ns) {
  if (idle()) return;
  for (auto& request : asked_) {
    if (request == nullptr || now_ns < request->due_ns()) continue;
    request->give_up(request->overdue(", and the peer has not said which regions it has"));
    request->end(now_ns);
    request.reset();
    --open_;
  }
}

Requests Directory::take_all() {
  Requests all;
  for (auto& request : asked_) {
    if (request != nullptr) all.push_back(std::move(request));
  }
  asked_.clear();
  open_ = 0;
  return all;
}

}  // namespace slime
