// The life of links between two hosts that have the rings of engines and nothing else, in virtual
// time: rails die and return, and links are replaced, at random.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "peer/rings.h"
#include "test/support/rail_fates.h"

namespace slime::test {

class RingsEnd final : private LinkEnd {
 public:
  RingsEnd(SimHost& host, LinkParts parts)
      : link(*host.devices, host.device(), std::move(parts)), rings(link) {
    link.serve(*this);
  }

  Link link;
  Rings rings;

 private:
  Status on_arrived(size_t, uint32_t immediate, uint64_t) override {
    return rings.on_arrived(immediate);
  }
  OutboxPiece fence_record(const RailLife& life) override { return rings.report(life); }
  Status on_both_fenced(const RailLife& life) override {
    if (!rings.peer_report(life)) return link.status();
    link.rails().hand_back_works(life.rail);
    rings.count_again();
    return Status::kOk;
  }
};

class RingLife : public RailFates {
 public:
  RingsEnd& end(size_t side) { return *ends_[side]; }
  SimHost& host(size_t side) { return hosts[side]; }
  // What is in the rings of the link before is forgotten, as in a peer that got another link.
  void make_link() {
    drop_link();
    SimEnds ends = RailFates::make_link(Rings::kMemory, {}, [this](auto stream) {
      ends_[1]->link.take_lifeline(std::move(stream));
    });
    ends_[0] = std::make_unique<RingsEnd>(hosts[0], std::move(ends.active));
    ends_[1] = std::make_unique<RingsEnd>(hosts[1], std::move(ends.passive));
  }
  void drop_link() {
    for (auto& end : ends_) end.reset();
  }
  bool pass() {
    const auto dark = [](const auto& end) { return end->link.rails().up_count() == 0; };
    return RailFates::pass([&] { return std::ranges::any_of(ends_, dark); });
  }

 private:
  std::array<std::unique_ptr<RingsEnd>, 2> ends_;
};

}  // namespace slime::test
