// What both ends of a link tell each other first: where their engines listen, and their names, so a
// program can use, and dial again, a peer that has come by itself; and what they have taken of each
// other's messages.
#include <algorithm>
#include <utility>

#include "peer/peer.h"

namespace slime {

void Peer::introduce() {
  Records& records = connection_->records;
  records.send(RecordKind::kAddress, world_.address);
  records.send(RecordKind::kName, std::as_bytes(std::span(world_.own_name)));
  records.send(RecordKind::kTaken, bytes_of(messages_.taken()));
}

// What came over links before.
Status Peer::on_taken(std::span<const std::byte> payload) {
  const auto numbers = words_of<Messages::Numbers>(payload);
  if (!numbers) return connection_->link.context().fail_protocol("numbers of messages cut short");
  messages_.settle(*numbers);
  return Status::kOk;
}

// What the program knows counts more. The nonce is that which the peer has named when it came.
Status Peer::on_address(std::span<const std::byte> payload) {
  const auto address = unpack_engine(payload);
  const bool right = address && address->engine == id_ &&
                     (!proof_ || same_nonce(*proof_, nonce_of(address->listener)));
  if (!right) {
    return connection_->link.context().fail_protocol("the address of another engine");
  }
  if (!address_) address_ = address->listener;
  return Status::kOk;
}

Status Peer::on_name(std::span<const std::byte> payload) {
  const bool right =
      payload.size() <= kMostNameBytes && std::ranges::find(payload, std::byte{0}) == payload.end();
  if (!right)
    return connection_->link.context().fail_protocol("a name that is too long, or has a byte of 0");
  name_.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
  if (!std::exchange(known_, true) && id_ != world_.self) world_.came(handle_);
  return Status::kOk;
}

}  // namespace slime
