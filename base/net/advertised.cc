#include "base/net/advertised.h"

#include "base/text.h"

namespace slime {
namespace {

std::optional<SocketAddress> address_in(std::string_view text) {
  const auto address = SocketAddress::parse(trimmed(text));
  if (!address || address->port() != 0 || address->is_any()) return std::nullopt;
  return *address;
}

}  // namespace

std::optional<AdvertisedAddresses> AdvertisedAddresses::parse(std::string_view text) {
  AdvertisedAddresses all;
  if (text.find('=') == std::string_view::npos) {
    all.for_all_ = address_in(text);
    return all.for_all_ ? std::optional(all) : std::nullopt;
  }
  for (;;) {
    const std::string_view pair = text.substr(0, text.find(','));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const auto own = address_in(pair.substr(0, equals)),
               other = address_in(pair.substr(equals + 1));
    if (!own || !other || own->family() != other->family()) return std::nullopt;
    all.for_each_.emplace_back(*own, *other);
    if (pair.size() == text.size()) return all;
    text.remove_prefix(pair.size() + 1);
  }
}

SocketAddress AdvertisedAddresses::of(const SocketAddress& own) const {
  SocketAddress known = own;
  known.set_port(0);
  SocketAddress told = own;
  if (for_all_ && for_all_->family() == own.family()) told = *for_all_;
  for (const auto& [one, other] : for_each_) {
    if (one == known) told = other;
  }
  told.set_port(own.port());
  return told;
}

}  // namespace slime
