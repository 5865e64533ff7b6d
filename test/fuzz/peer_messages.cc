// What a hostile engine may put into the rings of a link, while a program sends, receives, fetches
// and expects: the link works on or fails, nothing lies outside what the program gave, and what is
// kept has its bounds.
#include <cstring>
#include <list>
#include <string>

#include "peer/directory.h"
#include "test/fuzz/support/target.h"
#include "test/support/messages_end.h"
#include "test/support/ring_life.h"

namespace slime {
namespace {

constexpr uint64_t kPeer = 1;
constexpr EngineId kPeerId = {std::byte{7}};

class Victim {
 public:
  Victim(test::RingLife& life, fuzz::Input& input)
      : life_(life), input_(input), end_(life.host(0).device().memory()) {
    (void)named_.add(1, {"mine", pack(RegionAddress{kPeerId, 1, 1, 4096, 4096, 3})});
  }

  void act() {
    switch (input_.below(7)) {
      case 6:
        return list();
      case 0:
        return send();
      case 1:
        return receive();
      case 2: {
        std::vector<uint64_t> peers;
        return void(end_.notices.fetch(input_.below(4), &peers));
      }
      case 3:
        return end_.expectations.expect(kPeer, input_.below(4), 1 + input_.below(3),
                                        std::make_shared<PeerRequest>());
      case 4:
        return end_.messages.expire(UINT64_MAX - 1);
      default:
        return end_reads();
    }
  }

  // False: the link has failed.
  bool move() {
    Link& link = life_.end(0).link;
    Rings& rings = life_.end(0).rings;
    if (link.progress() != Status::kOk || !take_records()) return false;
    const auto submit = [this](const auto& request) { read(request); };
    if (end_.messages.receive(rings, kPeer, submit) != Status::kOk) return false;
    end_.messages.move(rings, 0);
    rings.move();
    link.post_more();
    return true;
  }

  // Of the letter that it sent last.
  uint64_t nonce() const { return nonce_; }
  void end_all() {
    while (!reading_.empty()) end_reads();
    end_.messages.end(kPeer, make_error(Status::kRemote, 0, "the end"), 0);
    FUZZ_CHECK(end_.messages.idle());
    for (const auto& request : sent_) FUZZ_CHECK(request->done());
    for (const auto& request : listings_) {
      FUZZ_CHECK(request->listing->size() <= NamedRegions::kMost);
      for (const NamedRegion& one : *request->listing) {
        FUZZ_CHECK(!one.name.empty() && one.name.size() <= NamedRegions::kMostNameBytes);
        FUZZ_CHECK(unpack_region(one.blob)->engine == kPeerId);
      }
    }
  }

 private:
  void list() {
    const auto request = std::make_shared<PeerRequest>();
    request->listing = std::make_shared<std::vector<NamedRegion>>();
    listings_.push_back(request);
    directory_.ask(request);
    if (input_.below(4) == 0) directory_.move(UINT64_MAX);
  }
  bool take_records() {
    while (!records_.congested()) {
      const auto record = records_.next();
      if (!record) return false;
      if (!*record) break;
      const bool listed = (*record)->kind == static_cast<uint16_t>(RecordKind::kWantRegions) ||
                          (*record)->kind == static_cast<uint16_t>(RecordKind::kRegion);
      if (listed && directory_.on_record(**record) != Status::kOk) return false;
    }
    directory_.move(0);
    records_.move();
    return true;
  }
  void send() {
    const auto request = std::make_shared<PeerRequest>();
    if (input_.below(2) == 0) {
      request->messages.push_back(Message::of(MessageKind::kTagged, uint64_t{1}));
    } else {
      const TaggedLetter letter{1, {1, ++nonce_, 4096, 1000}};
      request->messages.push_back(Message::of(MessageKind::kTaggedLetter, letter));
      request->messages.back().nonce = nonce_;
    }
    request->set_due(UINT64_MAX - input_.below(2));
    end_.messages.after(request, 0);
    sent_.push_back(request);
  }

  void receive() {
    std::string& room = rooms_.emplace_back(input_.below(100), '?');
    const TaggedReceive receive{kPeer, input_.below(3), input_.below(4),
                                std::as_writable_bytes(std::span(room)),
                                std::make_shared<PeerRequest>()};
    std::vector<uint64_t> peers;
    const auto message = end_.tagged.post(receive, &peers);
    if (message && deliver(*message, receive, end_.to.make_region)) read(receive.request);
  }

  // What it would read lies in a room of the program, or in that of a notification.
  void read(const std::shared_ptr<PeerRequest>& request) {
    for (const Piece& piece : request->pieces) {
      FUZZ_CHECK(piece.memory->contains(piece.local, piece.bytes));
      FUZZ_CHECK(piece.bytes <= kMostNoticeBytes);
    }
    if (request->fetches && !request->given_up()) {
      FUZZ_CHECK(std::ranges::any_of(rooms_, [&](const std::string& room) {
        const auto* const begin = reinterpret_cast<const std::byte*>(room.data());
        const Piece& piece = request->pieces.at(0);
        return piece.local == begin && piece.bytes <= room.size();
      }));
    }
    reading_.push_back(request);
  }
  void end_reads() {
    if (reading_.empty()) return;
    const auto request = std::exchange(reading_.front(), reading_.back());
    reading_.pop_back();
    if (input_.below(2) == 0) request->give_up(make_error(Status::kRemote, 0, "refused"));
    end_.messages.after(request, 0);
  }

  test::RingLife& life_;
  fuzz::Input& input_;
  std::list<std::string> rooms_;
  test::MessagesEnd end_;
  NamedRegions named_;
  Records records_{life_.end(0).rings.engine};
  Directory directory_{life_.end(0).link, records_, named_, kPeerId};
  Requests reading_, sent_, listings_;
  uint64_t nonce_ = 0;
};

class Attacker {
 public:
  Attacker(test::RingLife& life, fuzz::Input& input) : life_(life), input_(input) {}

  void put(uint64_t nonce) {
    const uint32_t which = input_.below(4);
    Ring& to = ring(which);
    const auto kind = static_cast<uint16_t>(1 + input_.below(13));
    uint64_t number = numbers_[which];
    if (input_.below(8) == 0) number = input_.take<uint64_t>();
    numbers_[which] = number + 1;
    std::vector<std::byte> payload;
    const auto add = [&](auto value) {
      const auto bytes = bytes_of(value);
      payload.insert(payload.end(), bytes.begin(), bytes.end());
    };
    const auto add_keys = [&] {
      const size_t rails = life_.end(1).link.rails().count();
      for (size_t i = input_.below(2) * rails; i > 0; --i) add(uint64_t{input_.below(4)});
    };
    if (which != 0) add(number);
    switch (input_.below(7)) {
      case 6:  // as Directory::Entry
        add(std::array<uint32_t, 2>{input_.below(3), input_.below(2)});
        add(std::array<char, 64>{static_cast<char>(input_.below(2))});
        add(pack(RegionAddress{input_.below(4) == 0 ? EngineId{} : kPeerId, 1, 1, 0, 1, 3}));
        break;
      case 0:
        add(uint32_t{input_.below(4)});
        break;
      case 1:
        add(FetchedWords{nonce - input_.below(3), input_.below(2)});
        break;
      case 2:
        add(LetterAddress{1, 2, input_.take<uint64_t>(), any_length()});
        add_keys();
        break;
      case 3:
        add(TaggedLetter{input_.below(4),
                         {1, input_.below(3), input_.take<uint64_t>(), any_length()}});
        add_keys();
        break;
      case 4:
        add(uint64_t{input_.below(3)});
        break;
      default:
        break;
    }
    if (which == 0 && input_.below(4) != 0) return put_whole(to, kind, payload);
    const auto more = input_.bytes(input_.below(2) == 0 ? 0 : input_.below(256));
    payload.insert(payload.end(), more.begin(), more.end());
    if (input_.below(2) == 0) payload.resize(payload.size() + input_.take<uint16_t>() % 8192);
    payload.resize(std::min(payload.size(), which == 0 ? Ring::kOneSlotBytes : Ring::kMostBytes));
    if (to.has_room(payload.size())) to.put(kind, {payload});
  }
  static void put_whole(Ring& to, uint16_t kind, std::span<const std::byte> payload) {
    if (to.has_room(payload.size())) to.put(kind, {payload});
  }
  // A peer may write into its rings at any time, and not only what a ring would.
  void write() {
    const size_t at = input_.take<uint16_t>() % (Rings::kMemory.inbox - sizeof(uint64_t));
    const uint64_t word = input_.take<uint64_t>();
    std::memcpy(life_.end(0).link.memory().inbox() + at, &word, sizeof word);
  }

  void move() {
    Link& link = life_.end(1).link;
    if (link.progress() != Status::kOk) return;
    for (uint32_t which = 0; which < 4; ++which) {
      const auto record = ring(which).look();
      if (record && *record && input_.below(4) != 0) ring(which).take();
    }
    life_.end(1).rings.move();
    link.post_more();
  }

 private:
  Ring& ring(uint32_t which) {
    Rings& rings = life_.end(1).rings;
    Ring* const all[] = {&rings.engine, &rings.events, &rings.notices, &rings.tagged};
    return *all[which];
  }
  uint64_t any_length() {
    return input_.below(2) == 0 ? input_.below(120) : input_.take<uint64_t>();
  }

  test::RingLife& life_;
  fuzz::Input& input_;
  std::array<uint64_t, 4> numbers_ = {};
};

}  // namespace

SLIME_FUZZ_TARGET(peer_messages, input) {
  static test::RingLife life;
  life.reset(1);
  life.make_link();
  {
    Victim victim(life, input);
    Attacker attacker(life, input);
    bool works = true;
    while (works && !input.empty()) {
      const uint32_t next = input.below(8);
      if (next < 3) {
        victim.act();
      } else if (next < 7) {
        attacker.put(victim.nonce());
      } else {
        attacker.write();
      }
      attacker.move();
      for (int step = 0; works && step < 4; ++step) {
        (void)life.network.step();
        works = victim.move();
      }
    }
    victim.end_all();
  }
  life.drop_link();
}

}  // namespace slime
