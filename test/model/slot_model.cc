#include "test/model/slot_model.h"

#include <algorithm>
#include <cstring>

#include "test/model/network.h"

namespace slime::model {

// All steps from one state. Each method works on a copy of it and hands that out.
class Walk {
 public:
  Walk(const SlotModel& model, const NetworkState& from, const Model::Reach& reach)
      : model_(model), rules_(model.rules_), bounds_(model.bounds_), from_(from), reach_(reach) {}

  static Shape shape(const SlotModel& model) {
    const size_t leaves = model.tree_ ? model.bounds_.leaves.size() : 0;
    return {model.workers_, static_cast<uint32_t>(leaves + 1)};
  }

  void all() {
    for (uint32_t worker = 0; worker < model_.workers_; ++worker) {
      resend(worker);
      for_each(&NetworkState::up, worker, [&](const Packet& packet) {
        contribute(switch_above(worker), model_.child_of_[worker], packet);
      });
      for_each(&NetworkState::down, worker, [&](const Packet& packet) {
        if (bounds_.damage) accept_damaged(worker, packet);
        accept(worker, packet);
      });
    }
    for (uint32_t leaf = 0; leaf < leaves(); ++leaf) {
      const uint32_t link = model_.workers_ + leaf;
      for_each(&NetworkState::up, link,
               [&](const Packet& packet) { contribute(root(), leaf, packet); });
      for_each(&NetworkState::down, link,
               [&](const Packet& packet) { take_parent_result(leaf, packet); });
    }
    if (bounds_.fence && from_.generation == 0) fence();
    if (bounds_.forger) forge();
  }

 private:
  using Links = std::array<Packets, kMaxLinks>;
  static constexpr uint32_t kToken = 0x70c3;

  uint32_t leaves() const { return model_.tree_ ? bounds_.leaves.size() : 0; }
  uint32_t root() const { return leaves(); }
  uint32_t switch_above(uint32_t worker) const {
    return model_.tree_ ? model_.leaf_of_[worker] : root();
  }
  sap::Role role(uint32_t at) const {
    const bool is_root = at == root();
    const uint32_t children =
        is_root ? (model_.tree_ ? leaves() : model_.workers_) : bounds_.leaves[at];
    return {.all = (1u << children) - 1, .root = is_root};
  }
  uint8_t epoch_of(uint32_t round) const {
    const uint32_t epoch = sap::kFirstEpoch + round - now_.base;
    return static_cast<uint8_t>(epoch & ((1u << rules_.epoch_bits()) - 1));
  }

  void hand_out(const char* what, uint32_t who, uint32_t round) {
    forget_old_packets();
    reach_(pack(now_, shape(model_)),
           {what, static_cast<uint8_t>(who), static_cast<uint8_t>(round)});
  }

  void forget_old_packets() {
    uint32_t newest = 0;
    for (uint32_t i = 0; i < model_.workers_; ++i) {
      newest = std::max<uint32_t>(newest, now_.workers[i].round);
    }
    for (Links* links : {&now_.up, &now_.down}) {
      for (Packets& packets : *links) {
        std::erase_if(packets,
                      [&](const Packet& packet) { return packet.round + bounds_.life < newest; });
      }
    }
  }

  // Loses, duplicates and delivers each packet of a link.
  template <typename Deliver>
  void for_each(Links NetworkState::*links, uint32_t link, Deliver deliver) {
    const Packets& packets = (from_.*links)[link];
    for (size_t i = 0; i < packets.size(); ++i) {
      if (!bounds_.ordered && i > 0 && packets[i] == packets[i - 1]) continue;
      const Packet packet = packets[i];
      now_ = from_;
      if (bounds_.duplicates) deliver(packet);
      now_ = from_;
      Packets& left = (now_.*links)[link];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      const NetworkState without = now_;
      hand_out("lost on the way from or to", link, packet.round);
      now_ = without;
      deliver(packet);
    }
  }

  // A full queue loses its oldest packet, a full bag the new one.
  void put(Packets& packets, uint32_t capacity, const Packet& packet) {
    if (bounds_.ordered) {
      packets.push_back(packet);
      if (packets.size() > capacity) packets.erase(packets.begin());
    } else if (packets.size() < capacity) {
      packets.insert(std::upper_bound(packets.begin(), packets.end(), packet), packet);
    }
  }

  void put_up(uint32_t link, const Packet& packet) { put(now_.up[link], bounds_.capacity, packet); }
  void put_down(uint32_t link, const Packet& packet) {
    put(now_.down[link], bounds_.capacity_down ? bounds_.capacity_down : bounds_.capacity, packet);
  }

  void send_contribution(uint32_t worker, uint32_t round) {
    put_up(worker, {.epoch = epoch_of(round),
                    .generation = now_.generation,
                    .round = static_cast<uint8_t>(round),
                    .value = contribution(worker, round)});
  }

  void resend(uint32_t worker) {
    const WorkerState& state = from_.workers[worker];
    for (uint32_t ahead = 0; ahead < rules_.window(); ++ahead) {
      const uint32_t round = state.round + ahead;
      if (round >= bounds_.rounds || (ahead == 1 && state.next)) continue;
      if (state.retries == 0 && bounds_.retries >= 0) continue;
      if (bounds_.ordered && from_.up[worker].size() >= bounds_.capacity) continue;
      now_ = from_;
      if (bounds_.retries >= 0) --now_.workers[worker].retries;
      send_contribution(worker, round);
      hand_out("sent by worker", worker, round);
    }
  }

  void contribute(uint32_t at, uint32_t child, const Packet& packet, uint32_t token = kToken) {
    SwitchState& target = now_.switches[at];
    if (!rules_.same_generation(packet.generation, now_.generation) ||
        !rules_.same_token(token, kToken)) {
      return hand_out("rejected by switch", at, packet.round);
    }
    const uint32_t h = packet.epoch & 1;
    const sap::Verdict verdict =
        rules_.on_contribution(target.halves, packet.epoch, child, role(at));
    if (verdict.event == sap::Event::kOpened) {
      target.values[h] = packet.value;
      target.rounds[h] = packet.round;
    } else if (verdict.event == sap::Event::kFolded) {
      target.values[h] = fold(target.values[h], packet.value);
    }
    const Packet answer{.epoch = packet.epoch,
                        .generation = now_.generation,
                        .round = target.rounds[h],
                        .value = target.values[h]};
    if (verdict.send == sap::Send::kResult) send_to_all_below(at, answer);
    if (verdict.send == sap::Send::kResultAgain) put_down(link_to(at, child), answer);
    if (verdict.send == sap::Send::kPartial) put_up(model_.workers_ + at, answer);
    hand_out("taken by switch", at, packet.round);
  }

  uint32_t link_to(uint32_t at, uint32_t child) const {
    if (at == root()) return model_.tree_ ? model_.workers_ + child : child;
    uint32_t worker = 0;
    while (model_.leaf_of_[worker] != at || model_.child_of_[worker] != child) ++worker;
    return worker;
  }

  void send_to_all_below(uint32_t at, const Packet& packet) {
    for (uint32_t child = 0; role(at).all >> child; ++child) {
      put_down(link_to(at, child), packet);
    }
  }

  void take_parent_result(uint32_t leaf, const Packet& packet, uint32_t token = kToken) {
    SwitchState& target = now_.switches[leaf];
    const uint32_t h = packet.epoch & 1;
    if (rules_.same_generation(packet.generation, now_.generation) &&
        rules_.same_token(token, kToken) &&
        rules_.on_parent_result(target.halves, packet.epoch, role(leaf))) {
      target.values[h] = packet.value;
      send_to_all_below(leaf, {.epoch = static_cast<uint8_t>(target.halves[h].epoch),
                               .generation = now_.generation,
                               .round = target.rounds[h],
                               .value = packet.value});
    }
    hand_out("parent's result at leaf", leaf, packet.round);
  }

  // Contributions to the round that a worker is in, and to one far ahead; and results.
  void forge() {
    for (uint32_t worker = 0; worker < model_.workers_; ++worker) {
      for (const uint32_t ahead : {0u, 20u}) {
        const uint32_t round = from_.workers[worker].round;
        const Packet packet{.epoch = static_cast<uint8_t>(epoch_of(round) + ahead),
                            .generation = from_.generation,
                            .round = static_cast<uint8_t>(round),
                            .value = contribution(kMaxWorkers, round)};
        now_ = from_;
        contribute(switch_above(worker), model_.child_of_[worker], packet, kToken + 1);
        now_ = from_;
        accept(worker, packet, kToken + 1);
        if (!model_.tree_) continue;
        const uint32_t leaf = model_.leaf_of_[worker];
        now_ = from_;
        contribute(root(), leaf, packet, kToken + 1);
        now_ = from_;
        take_parent_result(leaf, packet, kToken + 1);
      }
    }
  }

  // Both copies say what was reduced; a bit of the one or the other is flipped.
  void accept_damaged(uint32_t worker, const Packet& packet) {
    const NetworkState before = now_;
    for (const size_t byte : {0, 4}) {
      std::array<std::byte, 8> copies;
      std::memcpy(&copies[0], &packet.value, 4);
      std::memcpy(&copies[4], &packet.value, 4);
      copies[byte] ^= std::byte{1};
      if (!rules_.takes(copies)) continue;
      Packet taken = packet;
      std::memcpy(&taken.value, copies.data(), 4);
      accept(worker, taken);
      now_ = before;
    }
  }

  void accept(uint32_t worker, const Packet& packet, uint32_t token = kToken) {
    WorkerState& state = now_.workers[worker];
    const bool ours = rules_.same_generation(packet.generation, now_.generation) &&
                      rules_.same_token(token, kToken);
    for (uint32_t ahead = 0; ours && ahead < rules_.window(); ++ahead) {
      const uint32_t round = state.round + ahead;
      if (round >= bounds_.rounds || (ahead == 1 && state.next)) continue;
      if (!rules_.answers(packet.epoch, epoch_of(round))) continue;
      if (packet.value != right_value(round)) now_.violated = true;
      move_on(worker, ahead);
      break;
    }
    hand_out("result at worker", worker, packet.round);
  }

  Value right_value(uint32_t round) const {
    Value value = 0;
    for (uint32_t i = 0; i < model_.workers_; ++i) value = fold(value, contribution(i, round));
    return value;
  }

  void move_on(uint32_t worker, uint32_t ahead) {
    WorkerState& state = now_.workers[worker];
    if (ahead == 1) {
      state.next = true;
      return;
    }
    state.round = static_cast<uint8_t>(state.round + 1 + state.next);
    state.next = false;
    if (state.round < bounds_.rounds) send_contribution(worker, state.round);
  }

  // The hosts agree how far they are; who holds a result gives it to the others; then all go on in
  // the next generation. Packets of the last one are still on the way.
  void fence() {
    now_ = from_;
    uint8_t furthest = 0;
    for (uint32_t i = 0; i < model_.workers_; ++i) {
      furthest = std::max(furthest, now_.workers[i].round);
    }
    now_.generation = 1;
    if (bounds_.renumber) now_.base = furthest;
    for (uint32_t i = 0; i < model_.workers_; ++i) now_.workers[i].round = furthest;
    for (uint32_t i = 0; i <= root(); ++i) now_.switches[i] = {};
    hand_out("fenced at", 0, furthest);
  }

  const SlotModel& model_;
  const Rules& rules_;
  const Bounds& bounds_;
  const NetworkState& from_;
  const Model::Reach& reach_;
  NetworkState now_;
};

SlotModel::SlotModel(const Rules& rules, Bounds bounds)
    : rules_(rules), bounds_(std::move(bounds)), tree_(bounds_.leaves.size() > 1) {
  for (uint32_t leaf = 0; leaf < bounds_.leaves.size(); ++leaf) {
    for (uint32_t child = 0; child < bounds_.leaves[leaf]; ++child) {
      leaf_of_.push_back(leaf);
      child_of_.push_back(child);
      ++workers_;
    }
  }
}

std::string SlotModel::initial() const {
  NetworkState state;
  const uint8_t mask = static_cast<uint8_t>((1u << rules_.epoch_bits()) - 1);
  for (uint32_t i = 0; i < workers_; ++i) {
    state.workers[i].retries = static_cast<uint8_t>(std::max(bounds_.retries, 0));
    state.up[i] = {{.epoch = static_cast<uint8_t>(sap::kFirstEpoch & mask),
                    .generation = 0,
                    .round = 0,
                    .value = contribution(i, 0)}};
  }
  return pack(state, Walk::shape(*this));
}

void SlotModel::successors(const std::string& state, const Reach& reach) const {
  const NetworkState from = unpack(state, Walk::shape(*this));
  if (!from.violated) Walk(*this, from, reach).all();
}

bool SlotModel::finished(const std::string& state) const {
  const NetworkState at = unpack(state, Walk::shape(*this));
  for (uint32_t i = 0; i < workers_; ++i) {
    if (at.workers[i].round < bounds_.rounds) return false;
  }
  return true;
}

const char* SlotModel::wrong(const std::string& state) const {
  // `violated` is the last byte.
  return state.back() ? "a worker accepted a wrong sum" : nullptr;
}

}  // namespace slime::model
