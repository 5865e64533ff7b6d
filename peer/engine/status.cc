// What an engine says of itself and its peers, for slime-info --peers: one JSON object.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "peer/engine/engine.h"

namespace slime {
namespace {

using nlohmann::json;

// So that the text fits StatusPort::kMostBytes, with long names and errors.
constexpr size_t kMostPeers = 64, kMostText = 256;

std::string hex_of(const EngineId& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : id) {
    text += kDigits[std::to_integer<size_t>(byte) >> 4];
    text += kDigits[std::to_integer<size_t>(byte) & 15];
  }
  return text;
}

const char* name_of(Peer::State state) {
  switch (state) {
    case Peer::State::kNew:
      return "new";
    case Peer::State::kConnecting:
      return "connecting";
    case Peer::State::kUp:
      return "up";
    case Peer::State::kGone:
      return "gone";
  }
  return "";
}

json report_of(Peer& peer) {
  const Peer::Report report = peer.report();
  return {{"engine", hex_of(peer.id())},    {"name", displayed(report.name, kMostText)},
          {"state", name_of(report.state)}, {"why", displayed(report.gone_because, kMostText)},
          {"rails", report.rails},          {"rails_up", report.rails_up},
          {"requests", report.requests},    {"round_trip_ns", report.round_trip_ns}};
}

}  // namespace

std::string Engine::status() {
  json peers = json::array();
  const auto all = handles_.all();
  for (size_t i = 0; i < std::min(all.size(), kMostPeers); ++i) peers.push_back(report_of(*all[i]));
  const json whole = {{"engine", hex_of(id_)},
                      {"name", displayed(world_->own_name, kMostText)},
                      {"process", ::getpid()},
                      {"nics", device_->rails().size()},
                      {"regions", regions_.size()},
                      {"requests", requests_.size()},
                      {"peers", std::move(peers)},
                      {"peers_left_out", all.size() - std::min(all.size(), kMostPeers)}};
  return whole.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace slime
