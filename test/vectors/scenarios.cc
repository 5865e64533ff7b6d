// What the vectors hold; README.md has a line for each.

#include <algorithm>

#include "switch/protocol/slot_machine.h"
#include "test/vectors/recorder.h"

namespace slime::vectors {
namespace {

constexpr sap::Format kFormats[] = {sap::Format::kI32, sap::Format::kU32, sap::Format::kI16,
                                    sap::Format::kI8,  sap::Format::kI64, sap::Format::kU8,
                                    sap::Format::kU64};

struct Play {
  Recorder recorder;

  explicit Play(Vector world) : recorder(std::move(world)) {}
  uint8_t children() const { return static_cast<uint8_t>(recorder.job().children.size()); }
  std::vector<std::byte> packet(uint8_t child, uint16_t slot, uint32_t epoch,
                                const Contribution& what = {}) const {
    return contribution(recorder.job(), child, slot, epoch, what);
  }
  void say(uint8_t child, uint16_t slot, std::vector<std::byte> bytes) {
    recorder.deliver_for_slot(recorder.job().children[child], std::move(bytes), slot);
  }
  void contribute(uint8_t child, uint16_t slot, uint32_t epoch, const Contribution& what = {}) {
    say(child, slot, packet(child, slot, epoch, what));
  }
  void ask(uint8_t child, uint16_t slot, uint32_t epoch) {
    say(child, slot, question(recorder.job(), child, slot, epoch));
  }
  void round(uint16_t slot, uint32_t epoch, const Contribution& what = {}) {
    for (uint8_t child = 0; child < children(); ++child) contribute(child, slot, epoch, what);
  }
  Vector done() const { return recorder.vector(); }
};

Vector lossless(const std::string& name, uint32_t children) {
  Play play(world(name, children, 2));
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) {
    for (uint16_t slot = 0; slot < 4; ++slot) play.round(slot, epoch);
  }
  return play.done();
}

// Child 1's contribution is lost on its way, then child 0's result, then both results.
Vector loss() {
  Play play(world("loss", 2));
  play.contribute(0, 0, 1);
  play.contribute(0, 0, 1);
  play.contribute(1, 0, 1);
  play.contribute(0, 0, 1);
  play.round(0, 2);
  play.contribute(1, 0, 2);
  play.contribute(0, 0, 2);
  play.round(0, 3);
  return play.done();
}

Vector duplicates() {
  Play play(world("duplicates", 3));
  for (uint32_t epoch = 1; epoch <= 2; ++epoch) {
    play.contribute(2, 1, epoch);
    play.contribute(2, 1, epoch);
    play.contribute(0, 1, epoch);
    play.contribute(2, 1, epoch);
    play.contribute(0, 1, epoch);
    play.contribute(1, 1, epoch);
    play.contribute(1, 1, epoch);
  }
  return play.done();
}

// Packets that come when their round is over must change nothing, not even much later.
Vector stale() {
  Play play(world("stale", 2));
  for (uint32_t epoch = 1; epoch <= 4; ++epoch) play.round(2, epoch);
  for (uint32_t epoch : {1u, 2u}) play.contribute(0, 2, epoch);
  play.contribute(0, 2, 5);
  play.contribute(1, 2, 3);
  play.ask(1, 2, 2);
  play.contribute(0, 2, 4);
  play.contribute(1, 2, 5);
  return play.done();
}

// Rounds of one slot overlap: child 0 is one round ahead of child 1, and copies come late.
Vector reordering() {
  Play play(world("reordering", 2));
  play.round(0, 1);
  play.contribute(0, 0, 2);
  play.contribute(1, 0, 1);
  play.contribute(0, 0, 2);
  play.contribute(1, 0, 2);
  play.contribute(1, 0, 3);
  play.contribute(0, 0, 2);
  play.contribute(1, 0, 1);
  play.contribute(0, 0, 3);
  return play.done();
}

Vector queries() {
  Play play(world("queries", 3));
  play.ask(0, 3, 1);
  play.contribute(1, 3, 1);
  play.ask(1, 3, 1);
  play.contribute(0, 3, 1);
  play.ask(0, 3, 1);
  play.contribute(2, 3, 1);
  play.ask(2, 3, 1);
  play.ask(0, 3, 3);  // the same half, later: nobody yet
  play.round(3, 3);
  play.ask(0, 3, 1);  // over: no answer
  return play.done();
}

Vector rejects() {
  Play play(world("rejects", 2, 2));
  Recorder& recorder = play.recorder;
  const SocketAddress child = recorder.job().children[0];
  const SocketAddress stranger = *SocketAddress::parse("127.77.2.1:4000");
  const auto sound = play.packet(0, 0, 1);
  const auto turned = [&](auto change) { return changed(sound, change); };
  recorder.deliver(child, turned([](sap::Header& h) { h.job = 8; }));
  recorder.deliver(child, turned([](sap::Header& h) { h.generation = 4; }));
  recorder.deliver(child, turned([](sap::Header& h) { h.generation = 2; }));
  recorder.deliver(stranger, sound);
  recorder.deliver(child, turned([](sap::Header& h) { h.child = 1; }));
  recorder.deliver(child, turned([](sap::Header& h) { h.child = 2; }));
  recorder.deliver(child, turned([](sap::Header& h) { h.slot = 4; }));
  recorder.deliver(child, turned([](sap::Header& h) { h.slot = 65534; }));
  recorder.deliver(child, sound, 1);  // slot 0 is of shard 0
  recorder.deliver(child, play.packet(0, 0, 1, {.lanes = 9}));
  recorder.deliver(child, play.packet(0, 0, 1, {.format = sap::Format::kI64, .lanes = 3}));
  recorder.deliver(child, turned([](sap::Header& h) { h.type = sap::Type::kPartial; }));
  recorder.deliver(child, turned([](sap::Header& h) { h.type = sap::Type::kParentResult; }));
  recorder.deliver(child, turned([](sap::Header& h) { h.type = sap::Type::kResult; }));
  play.say(0, 0, sound);
  play.contribute(1, 0, 1, {.op = sap::Op::kMax});
  play.contribute(1, 0, 1, {.format = sap::Format::kU32});
  play.contribute(1, 0, 1, {.lanes = 4});
  play.contribute(1, 0, 1, {.flags = sap::flag::kExponentsOnly});
  play.contribute(1, 0, 1);
  return play.done();
}

// Who names job, generation, child, slot and source rightly, and the token wrongly, changes nothing
// and hears nothing: not before a round, not in it, not when it is over.
Vector tokens() {
  Play play(world("tokens", 2));
  const auto forge = [&](uint32_t epoch) {
    for (const uint32_t token : {0u, 0x5eed70c2u, 0xffffffffu}) {
      for (const auto& sound :
           {play.packet(0, 0, epoch), question(play.recorder.job(), 0, 0, epoch)}) {
        play.say(0, 0, changed(sound, [&](sap::Header& h) { h.token = token; }));
      }
    }
  };
  forge(1);
  forge(0x7fffffff);  // one that was accepted would make all rounds that follow stale
  play.contribute(1, 0, 1);
  forge(1);
  play.ask(0, 0, 1);
  play.contribute(0, 0, 1);
  forge(1);
  play.round(0, 2);
  return play.done();
}

// What is no packet of SAP/2 gets no answer.
Vector malformed() {
  Play play(world("malformed", 2));
  const auto sound = play.packet(0, 0, 1);
  const auto damaged = [&](size_t at, uint8_t value) {
    auto bytes = sound;
    bytes[at] = std::byte{value};
    play.say(0, 0, std::move(bytes));
  };
  play.say(0, 0, {});
  play.say(0, 0, {sound.begin(), sound.begin() + sap::kHeaderBytes - 1});
  play.say(0, 0, {sound.begin(), sound.end() - 1});
  play.say(0, 0, {sound.begin(), sound.begin() + sap::kHeaderBytes});
  damaged(0, 0xa1);  // version
  damaged(0, 0xa3);
  damaged(0, 0xb1);  // magic
  damaged(1, 0);
  damaged(1, 9);
  damaged(2, 0x50);  // raw floats: no switch adds them yet
  damaged(2, 0x04);
  damaged(3, 0x80);
  damaged(7, 32);
  damaged(sap::at::kLanes + 1, 9);
  damaged(sap::at::kLevel, 1);
  play.round(0, 1);
  return play.done();
}

Vector exponents() {
  Play play(world("exponents-only", 3));
  for (uint32_t epoch = 1; epoch <= 4; ++epoch) {
    play.round(0, epoch, {.flags = epoch % 2 ? sap::flag::kExponentsOnly : uint8_t{0}});
  }
  play.contribute(1, 0, 3, {.flags = sap::flag::kExponentsOnly});
  return play.done();
}

// Rounds for NaN and infinities (by OR) and for exponents of single elements (by maximum).
Vector specials() {
  Play play(world("specials", 3));
  play.round(1, 1, {.flags = sap::flag::kExponentsOnly});
  play.round(1, 2, {.op = sap::Op::kOr, .lanes = 2});
  play.round(1, 3);
  play.round(1, 4, {.format = sap::Format::kU8, .op = sap::Op::kMax, .lanes = 4});
  play.round(1, 5);
  return play.done();
}

Vector formats() {
  Play play(world("formats", 3));
  uint32_t epoch = 1;
  for (const sap::Format format : kFormats) {
    for (uint8_t op = 0; op < sap::kOps; ++op, ++epoch) {
      play.round(0, epoch, {.format = format, .op = static_cast<sap::Op>(op), .seed = epoch});
    }
  }
  return play.done();
}

// Epochs are counted on a circle: the round after 2^32 - 1 is 0. Nobody may jump further than half.
Vector wrap() {
  Play play(world("wrap", 2));
  for (const uint32_t epoch :
       {1u, 0x40000000u, 0x40000001u, 0x80000000u, 0x80000001u, 0xc0000000u, 0xffffffffu, 0u, 1u}) {
    play.round(0, epoch);
  }
  play.contribute(0, 0, 0xffffffffu);
  play.contribute(0, 0, 0x80000001u);
  return play.done();
}

// A network that loses, doubles and delays, and workers that keep the protocol.
Vector random_network() {
  Play play(world("random", 3, 2));
  std::mt19937 random(20260101);  // its numbers are the standard's
  struct Waits {
    uint32_t epoch = 1;
    bool answered[3] = {};
  } slots[4];
  for (int step = 0; step < 400; ++step) {
    const auto slot = static_cast<uint16_t>(random() % 4);
    const auto child = static_cast<uint8_t>(random() % 3);
    Waits& waits = slots[slot];
    if (random() % 10 == 0 && waits.epoch > 1) play.contribute(child, slot, waits.epoch - 1);
    if (random() % 10 == 0) play.ask(child, slot, waits.epoch);
    if (waits.answered[child] || random() % 5 == 0) continue;
    const auto out = play.recorder.deliver_for_slot(play.recorder.job().children[child],
                                                    play.packet(child, slot, waits.epoch), slot);
    for (const test::CapturedPacket& packet : out) {
      const auto& all = play.recorder.job().children;
      const auto who = std::ranges::find(all, packet.to) - all.begin();
      if (random() % 5 != 0) waits.answered[who] = true;  // else it is lost
    }
    if (std::ranges::all_of(waits.answered, [](bool b) { return b; }))
      waits = {waits.epoch + 1, {}};
  }
  return play.done();
}

}  // namespace

std::vector<Vector> generate() {
  std::vector<Vector> all = {lossless("lossless-2", 2),
                             lossless("lossless-3", 3),
                             loss(),
                             duplicates(),
                             stale(),
                             reordering(),
                             queries(),
                             rejects(),
                             tokens(),
                             malformed(),
                             exponents(),
                             specials(),
                             formats(),
                             wrap(),
                             random_network()};
  for (Vector& vector : generate_tree()) all.push_back(std::move(vector));
  return all;
}

}  // namespace slime::vectors
