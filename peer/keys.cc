#include "peer/keys.h"

#include "peer/messages/message.h"

namespace slime {

bool Keys::want(const std::shared_ptr<Remote>& remote) {
  if (remote->state != Remote::Keys::kUnknown) return true;
  if (asked_.size() == kMostAsked) return false;
  const Question question{remote->address.region, remote->address.nonce};
  remote->state = Remote::Keys::kAsked;
  asked_.push_back(remote);
  records_.send(RecordKind::kWantKeys, bytes_of(question));
  return true;
}

Status Keys::on_record(const Record& record) {
  if (record.kind == static_cast<uint16_t>(RecordKind::kWantKeys)) {
    const auto question = words_of<Question>(record.payload);
    return question ? answer(*question) : link_.context().fail_protocol("a question cut short");
  }
  const auto given = words_of<Answer>(record.payload);
  return given ? take(*given) : link_.context().fail_protocol("an answer cut short");
}

// A peer that does not know the nonce gets the same answer as for a region that does not exist.
Status Keys::answer(const Question& question) {
  Answer given{.region = question.region};
  const auto region = region_of(regions_, question.region, question.nonce);
  if (region != nullptr && region->rights != 0) {
    const LinkRails& rails = link_.rails();
    given.known = 1;
    given.count = static_cast<uint32_t>(rails.count());
    for (size_t i = 0; i < rails.count(); ++i) given.keys[i] = rails[i].remote_key(&region->memory);
  }
  records_.send(RecordKind::kKeys, bytes_of(given));
  return Status::kOk;
}

Status Keys::take(const Answer& given) {
  if (asked_.empty() || asked_.front()->address.region != given.region) {
    return link_.context().fail_protocol("keys that nobody asked for");
  }
  const auto remote = std::move(asked_.front());
  asked_.pop_front();
  if (given.known != 0 && given.count != link_.rails().count()) {
    return link_.context().fail_protocol("keys for other rails than the link has");
  }
  remote->keys = given.keys;
  remote->state = given.known != 0 ? Remote::Keys::kKnown : Remote::Keys::kRefused;
  return Status::kOk;
}

}  // namespace slime
