#include "peer/directory.h"

#include <algorithm>
#include <utility>

#include "peer/messages/message.h"

namespace slime {

void Directory::ask(std::shared_ptr<PeerRequest> request) {
  request->listing->clear();
  waiting_.push_back(std::move(request));
  ++open_;
}

void Directory::move(uint64_t now_ns) {
  if (idle()) return;
  end_those(now_ns, [now_ns](PeerRequest& request) {
    if (now_ns < request.due_ns()) return false;
    request.give_up(request.overdue(", and the peer has not said which regions it has"));
    return true;
  });
  for (; !waiting_.empty() && asked_.size() < kMostAsked; waiting_.pop_front()) {
    asked_.push_back(std::move(waiting_.front()));
    records_.send(RecordKind::kWantRegions, {});
  }
  while (!answers_.empty() && records_.idle()) answer_one();
}

Status Directory::on_record(const Record& record) {
  if (record.kind == static_cast<uint16_t>(RecordKind::kWantRegions)) {
    if (answers_.size() == kMostAsked) {
      return link_.context().fail_protocol("too many questions for named regions");
    }
    const auto all = regions_.all();
    answers_.emplace_back(all.begin(), all.end());
    return Status::kOk;
  }
  const auto entry = words_of<Entry>(record.payload);
  return entry ? take(*entry) : link_.context().fail_protocol("the name of a region cut short");
}

void Directory::answer_one() {
  Answer& answer = answers_.front();
  Entry entry;
  if (!answer.empty()) {
    const NamedRegion& region = answer.front();
    entry = {static_cast<uint32_t>(answer.size() - 1), 1, {}, region.blob};
    std::ranges::copy(region.name, entry.name.begin());
    answer.pop_front();
  }
  records_.send(RecordKind::kRegion, bytes_of(entry));
  if (answer.empty()) answers_.pop_front();
}

Status Directory::take(const Entry& entry) {
  if (asked_.empty()) return link_.context().fail_protocol("a region that nobody asked for");
  PeerRequest* const request = asked_.front().get();
  if (entry.is_region != 0) {
    const auto address = unpack_region(entry.blob);
    if (!address || address->engine != peer_ || entry.name.back() != 0 || entry.name.front() == 0) {
      return link_.context().fail_protocol("a named region without a valid name or address");
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

// The peer answers also those that it was asked.
template <typename Ends>
void Directory::end_those(uint64_t now_ns, Ends ends) {
  for (auto* requests : {&waiting_, &asked_}) {
    for (auto& request : *requests) {
      if (request == nullptr || !ends(*request)) continue;
      request->end(now_ns);
      request.reset();
      --open_;
    }
  }
  std::erase(waiting_, nullptr);
}

void Directory::end_all(const Error& why, uint64_t now_ns) {
  end_those(now_ns, [&why](PeerRequest& request) {
    request.give_up(why);
    return true;
  });
}

Requests Directory::take_all() {
  Requests all;
  for (auto* requests : {&asked_, &waiting_}) {
    for (auto& request : *requests) {
      if (request != nullptr) all.push_back(std::move(request));
    }
    requests->clear();
  }
  open_ = 0;
  return all;
}

}  // namespace slime
