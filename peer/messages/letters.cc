#include "peer/messages/letters.h"

#include <cstring>

#include "base/clock.h"
#include "base/log.h"

namespace slime {

std::optional<OfferedLetter> OfferedLetter::from(const LetterAddress& address,
                                                 std::span<const std::byte> rest, uint64_t link,
                                                 size_t rails) {
  if (!rest.empty() && rest.size() != rails * sizeof(uint64_t)) return std::nullopt;
  OfferedLetter letter{address, link, std::vector<uint64_t>(rest.size() / sizeof(uint64_t))};
  if (!rest.empty()) std::memcpy(letter.keys.data(), rest.data(), rest.size());
  return letter;
}

void set_letter(const OfferedLetter& letter, std::shared_ptr<Region> into, PeerRequest* request) {
  const auto remote = std::make_shared<Remote>(RegionAddress{.region = letter.address.region,
                                                             .nonce = letter.address.nonce,
                                                             .base = letter.address.base,
                                                             .bytes = letter.address.bytes,
                                                             .rights = kRemoteRead});
  if (!letter.keys.empty()) remote->know(letter.link, letter.keys);
  request->append({into->memory.address, &into->memory, remote.get(), 0, letter.address.bytes});
  request->regions.push_back(std::move(into));
  request->remotes.push_back(remote);
}

bool LetterReader::begin(const OfferedLetter& letter, const MakeRegion& make_region) {
  bytes_ = std::make_shared<NoticeBytes>(letter.address.bytes);
  auto region = make_region(*bytes_, 0, bytes_);
  if (!region) {
    SLIME_WARN("a notification of %zu bytes cannot be read: %s", bytes_->size(),
               region.error().what.c_str());
    return false;
  }
  request_ = std::make_shared<PeerRequest>();
  request_->of_engine = true;
  request_->submitted_ns = steady_now_ns();
  set_letter(letter, std::move(*region), request_.get());
  return true;
}

void LetterReader::drop_before(uint64_t number) {
  if (request_ == nullptr || number_ >= number) return;
  if (!request_->given_up()) {
    request_->give_up(make_error(Status::kRemote, 0, "its sender has given the letter up"));
  }
  if (!request_->done()) return;
  request_.reset();
  bytes_.reset();
}

}  // namespace slime
