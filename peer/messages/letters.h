// Messages that are too long for a record: their sender registers them and says where they lie, and
// the receiver reads them, as any memory of a peer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "peer/handle_table.h"
#include "peer/messages/message.h"
#include "peer/messages/notices.h"
#include "peer/messages/receiver.h"
#include "peer/moving/peer_request.h"

namespace slime {

// The message at its sender; the peer may read it while this lives.
class Letter {
 public:
  Letter(HandleTable<Region>& regions, std::shared_ptr<Region> region)
      : regions_(regions),
        region_(region),
        address_{.nonce = region->nonce,
                 .base = reinterpret_cast<uint64_t>(region->memory.address),
                 .bytes = region->memory.bytes} {
    address_.region = regions_.add(std::move(region));
  }
  ~Letter() { (void)regions_.remove(address_.region); }
  Letter(const Letter&) = delete;
  Letter& operator=(const Letter&) = delete;

  const LetterAddress& address() const { return address_; }
  const MemoryRegion& memory() const { return region_->memory; }
  // The message that says where it is.
  template <typename Words>
  static Message message(MessageKind kind, const Words& words,
                         std::shared_ptr<const Letter> letter) {
    const MemoryRegion* const memory = &letter->memory();
    Message message = Message::of(kind, words, std::move(letter));
    message.memory = memory;
    return message;
  }

 private:
  HandleTable<Region>& regions_;
  const std::shared_ptr<const Region> region_;
  LetterAddress address_;
};

// A letter of a peer that can be read.
struct OfferedLetter {
  LetterAddress address;
  uint64_t link = 0;           // over which it came
  std::vector<uint64_t> keys;  // for each rail of that link, or none

  // `rest` follows the address in the payload of a message, which came over this link with so many
  // rails. nullopt: no correct peer sends that.
  static std::optional<OfferedLetter> from(const LetterAddress& address,
                                           std::span<const std::byte> rest, uint64_t link,
                                           size_t rails);
};

// Registers memory for one message. `keeps` lives as long as that.
using MakeRegion = std::function<Result<std::shared_ptr<Region>>(
    std::span<std::byte> memory, uint8_t rights, std::shared_ptr<void> keeps)>;

// What the request does: it reads the letter into the beginning of this region.
void set_letter(const OfferedLetter& letter, std::shared_ptr<Region> into, PeerRequest* request);

// Reads the notifications of one peer that are letters, one after the other.
//
// States: idle; reading, until the request of that has ended, also over another link. It has no
// deadline: it ends with the peer, or is refused when the sender has given the letter up. Memory:
// that of one letter. Thread: that of the peer's link.
class LetterReader {
 public:
  // Begins to read the letter that is the message of this number, or says what became of that.
  // kTaken: *bytes are here. `submit` moves a request.
  template <typename Submit>
  Verdict read(uint64_t number, const OfferedLetter& letter, const MakeRegion& make_region,
               Submit submit, std::shared_ptr<NoticeBytes>* bytes) {
    const uint64_t size = letter.address.bytes;
    if (size == 0 || size > kMostNoticeBytes) return Verdict::kWrong;
    drop_before(number);
    if (request_ != nullptr && number_ != number) return Verdict::kLater;
    if (request_ == nullptr) {
      if (!begin(letter, make_region)) return Verdict::kRefused;
      number_ = number;
      submit(request_);
    }
    if (!request_->done()) return Verdict::kLater;
    const bool read = request_->outcome().error.status == Status::kOk;
    request_.reset();
    *bytes = std::exchange(bytes_, nullptr);
    return read ? Verdict::kTaken : Verdict::kRefused;
  }
  // Messages before this one are of no interest any more.
  void drop_before(uint64_t number);
  // One that could not be read over the last one is read again.
  void on_new_link() {
    if (request_ != nullptr && request_->done() && request_->given_up()) request_.reset();
  }
  bool reads() const { return request_ != nullptr; }

 private:
  bool begin(const OfferedLetter& letter, const MakeRegion& make_region);

  uint64_t number_ = 0;
  std::shared_ptr<NoticeBytes> bytes_;
  std::shared_ptr<PeerRequest> request_;
};

}  // namespace slime
