// What a switch and a worker decide: the real slot machine, and mutants of it that a model checker
// worth its name must tell from the real one.
#pragma once

#include <array>

#include "switch/protocol/check.h"
#include "switch/protocol/slot_machine.h"

namespace slime::model {

using Halves = std::array<sap::Half, 2>;

struct Rules {
  virtual ~Rules() = default;
  virtual sap::Verdict on_contribution(Halves& halves, uint32_t epoch, uint32_t child,
                                       const sap::Role& role) const = 0;
  virtual bool on_parent_result(Halves& halves, uint32_t epoch, const sap::Role& role) const = 0;
  virtual bool answers(uint32_t result, uint32_t waiting) const {
    return sap::answers(result, waiting);
  }
  virtual bool same_generation(uint8_t packet, uint8_t own) const { return packet == own; }
  virtual bool same_token(uint32_t packet, uint32_t own) const { return packet == own; }
  // Of a round that is no sum: whether a worker takes the result.
  virtual bool takes(std::span<const std::byte> copies) const { return sap::copies_agree(copies); }
  virtual uint32_t window() const { return 1; }  // rounds that a worker may have open on one slot
  virtual uint32_t epoch_bits() const = 0;
};

template <unsigned kBits>
struct RealRules : Rules {
  sap::Verdict on_contribution(Halves& halves, uint32_t epoch, uint32_t child,
                               const sap::Role& role) const override {
    return sap::on_contribution<kBits>(halves[epoch & 1], epoch, child, role);
  }
  bool on_parent_result(Halves& halves, uint32_t epoch, const sap::Role& role) const override {
    return sap::on_parent_result(halves[epoch & 1], epoch, role);
  }
  uint32_t epoch_bits() const override { return kBits; }
};

// As on a switch chip, whose ALUs compare for equality and not on a circle: a half
// goes from one round to the next but one, and all others are stale.
template <unsigned kBits>
struct NextRoundOnly : RealRules<kBits> {
  sap::Verdict on_contribution(Halves& halves, uint32_t epoch, uint32_t child,
                               const sap::Role& role) const override {
    const sap::Half& half = halves[epoch & 1];
    const bool possible =
        half.arrived == 0 || epoch == half.epoch || sap::wrapped<kBits>(epoch - 2) == half.epoch;
    if (!possible) return {};
    return RealRules<kBits>::on_contribution(halves, epoch, child, role);
  }
};

// A packet of any other round opens its half anew.
struct WithoutStaleGuard : RealRules<8> {
  sap::Verdict on_contribution(Halves& halves, uint32_t epoch, uint32_t child,
                               const sap::Role& role) const override {
    sap::Half& half = halves[epoch & 1];
    if (sap::rounds_ahead<8>(epoch, half.epoch) < 0) half.epoch = (epoch - 2) & 0xff;
    return RealRules::on_contribution(halves, epoch, child, role);
  }
};

// As if a generation began at round 0, and not where the workers are.
struct FreshAtZero : RealRules<3> {
  sap::Verdict on_contribution(Halves& halves, uint32_t epoch, uint32_t child,
                               const sap::Role& role) const override {
    if (halves[epoch & 1].arrived == 0 && sap::rounds_ahead<3>(epoch, 0) < 0) return {};
    return RealRules::on_contribution(halves, epoch, child, role);
  }
};

// A child's contribution is folded as often as it comes.
struct WithoutDedup : RealRules<8> {
  sap::Verdict on_contribution(Halves& halves, uint32_t epoch, uint32_t child,
                               const sap::Role& role) const override {
    sap::Half& half = halves[epoch & 1];
    if (half.epoch == epoch) half.arrived &= ~(1u << child);
    return RealRules::on_contribution(halves, epoch, child, role);
  }
};

// The result of any round counts for the one in the half.
struct WithoutParentEpoch : RealRules<8> {
  bool on_parent_result(Halves& halves, uint32_t epoch, const sap::Role& role) const override {
    sap::Half& half = halves[epoch & 1];
    return sap::on_parent_result(half, half.epoch, role);
  }
};

struct WithoutGeneration : RealRules<8> {
  bool same_generation(uint8_t, uint8_t) const override { return true; }
};

struct WithoutToken : RealRules<8> {
  bool same_token(uint32_t, uint32_t) const override { return true; }
};

// The first copy of the lanes counts, whatever the second one says.
struct OneCopyTrusted : RealRules<8> {
  bool takes(std::span<const std::byte>) const override { return true; }
};

// A window larger than the ring of slots: a round begins before the one before it is accepted.
struct WindowBeyondRing : RealRules<8> {
  uint32_t window() const override { return 2; }
};

// A slot is known by one bit, and who contributes to one half leaves the other: as in SwitchML.
struct ClearBitForEpoch : RealRules<8> {
  sap::Verdict on_contribution(Halves& halves, uint32_t epoch, uint32_t child,
                               const sap::Role& role) const override {
    sap::Half &half = halves[epoch & 1], &other = halves[~epoch & 1];
    const uint32_t bit = 1u << child;
    const bool was_complete = half.done;
    const bool seen = half.arrived & bit;
    if (half.arrived == 0) half.done = false;
    const sap::Event event = half.arrived == 0 ? sap::Event::kOpened : sap::Event::kFolded;
    half.arrived |= bit;
    half.epoch = epoch & 1;
    other.arrived &= ~bit;
    if (seen) {
      return {sap::Event::kDuplicate, was_complete ? sap::Send::kResultAgain : sap::Send::kNothing};
    }
    half.done = half.arrived == role.all;
    return {event, half.done ? sap::Send::kResult : sap::Send::kNothing};
  }
  bool answers(uint32_t result, uint32_t waiting) const override {
    return (result & 1) == (waiting & 1);
  }
};

}  // namespace slime::model
