// Set-up of a verbs channel with a stranger: the address that it wrote, and what its queue pair
// says first. Only a hello with both nonces may become a channel.
#include <array>

#include "test/fuzz/support/target.h"
#include "test/support/verbs/fake_verbs.h"
#include "transports/verbs/rail.h"
#include "transports/verbs/wire.h"

namespace slime::verbs {

static Settings settings_for(uint32_t lanes) {
  Settings settings;
  settings.ifname = "lo";
  settings.qps_per_rail = static_cast<int>(lanes);
  settings.ib_timeout = 1;  // nobody is waited for
  settings.ib_retry_count = 0;
  return settings;
}

// A queue pair that its owner does with what he likes.
class Stranger {
 public:
  Stranger(VerbsRail& rail, const ChannelAddress& of_victim)
      : nic_(rail.nic()), victim_(*unpack_endpoint(of_victim)) {
    const auto port = rail.port();
    FUZZ_CHECK(port);
    queue_ = nic_.verbs().create_cq(nic_.context(), 64, nullptr, nullptr, 0);
    memory_ = nic_.verbs().reg_mr(nic_.pd(), bytes_.data(), bytes_.size(), IBV_ACCESS_LOCAL_WRITE);
    auto pair = QueuePair::create(*port, nic_.pd(), queue_, {16, 16, 0});
    FUZZ_CHECK(pair && memory_ != nullptr);
    pair_ = std::move(*pair);
    FUZZ_CHECK(pair_.initialize(0, IBV_ACCESS_REMOTE_WRITE));
    own_.mtu = static_cast<uint8_t>((*port)->mtu);
    own_.gid = (*port)->gid.gid;
    own_.link_layer = IBV_LINK_LAYER_ETHERNET;
    own_.nonce.fill(std::byte{0x5a});
    own_.names[0] = {pair_.number(), 0};
    Path path = Path::from(**port, rail.settings(), kNoTrafficClass);
    path.gid = victim_.gid;
    FUZZ_CHECK(pair_.receive_from(path, victim_.names[0]));
    FUZZ_CHECK(pair_.send_to(path, 0));
  }
  ~Stranger() {
    pair_ = QueuePair();
    (void)nic_.verbs().dereg_mr(memory_);
    (void)nic_.verbs().destroy_cq(queue_);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  const Endpoint& own() const { return own_; }
  void receive() {
    ibv_sge piece = {reinterpret_cast<uint64_t>(bytes_.data()), sizeof(Hello), memory_->lkey};
    ibv_recv_wr request = {};
    request.sg_list = &piece;
    request.num_sge = 1;
    ibv_recv_wr* refused = nullptr;
    (void)ibv_post_recv(pair_.get(), &request, &refused);
  }
  void say(std::span<const std::byte> message, ibv_wr_opcode opcode, fuzz::Input& input) {
    ibv_wc completion;
    while (ibv_poll_cq(queue_, 1, &completion) == 1) continue;
    std::copy(message.begin(), message.end(), bytes_.begin());
    ibv_sge piece = {reinterpret_cast<uint64_t>(bytes_.data()),
                     static_cast<uint32_t>(message.size()), memory_->lkey};
    ibv_send_wr request = {};
    request.sg_list = &piece;
    request.num_sge = message.empty() ? 0 : 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    if (opcode != IBV_WR_SEND) {
      request.imm_data = input.take<uint32_t>();
      request.wr.rdma.rkey = input.take<uint16_t>();
      request.wr.rdma.remote_addr = input.take<uint64_t>();
    }
    ibv_send_wr* refused = nullptr;
    (void)ibv_post_send(pair_.get(), &request, &refused);
  }
  // The hello that makes a channel, unless the fuzzer spoils it.
  bool say_hello(const Nonce& from, fuzz::Input& input) {
    Hello hello{.from = from, .to = victim_.nonce};
    std::array<std::byte, sizeof hello> message;
    std::memcpy(message.data(), &hello, sizeof hello);
    const std::byte spoiling{input.take<uint8_t>()};
    message[input.below(sizeof hello)] ^= spoiling;
    std::memcpy(&hello, message.data(), sizeof hello);
    say(message, IBV_WR_SEND, input);
    return hello.magic == kMagic && hello.version == kVersion && hello.from == from &&
           hello.to == victim_.nonce;
  }

 private:
  Nic& nic_;
  const Endpoint victim_;
  std::array<std::byte, 64> bytes_{};
  ibv_cq* queue_ = nullptr;
  ibv_mr* memory_ = nullptr;
  QueuePair pair_;
  Endpoint own_;
};

static ChannelAddress address_of(const Stranger& stranger, fuzz::Input& input) {
  ChannelAddress address = pack_endpoint(stranger.own());
  if (input.below(4) == 3) {
    const auto bytes = input.bytes(address.size());
    std::copy(bytes.begin(), bytes.end(), address.begin());
    return address;
  }
  for (uint32_t edits = input.below(4); edits > 0; --edits) {
    const uint32_t at = input.below(128);
    address[at] = std::byte{input.take<uint8_t>()};
  }
  return address;
}

static void check_endpoint(const ChannelAddress& address) {
  const auto endpoint = unpack_endpoint(address);
  if (!endpoint) return;
  FUZZ_CHECK(endpoint->queue_pairs >= 1 && endpoint->queue_pairs <= kMaxQueuePairs);
  FUZZ_CHECK(endpoint->mtu >= IBV_MTU_256 && endpoint->mtu <= IBV_MTU_4096);
  FUZZ_CHECK(endpoint->reads >= 1 && endpoint->reads <= kMostReads);
  FUZZ_CHECK(endpoint->reads_of_peer >= 1 && endpoint->reads_of_peer <= kMostReads);
  const ChannelAddress again = pack_endpoint(*endpoint);
  FUZZ_CHECK(std::memcmp(again.data(), address.data(), sizeof *endpoint) == 0);
}

static void check_sentence(const Error& error) {
  for (const char c : error.what) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20);
}

static void meet(test::FakeVerbs& nics, Rail& rail, VerbsRail& of_stranger, fuzz::Input& input) {
  const bool first = input.below(2) == 1;
  auto channel = rail.open_channel({.active = first, .first = first});
  FUZZ_CHECK(channel);
  Stranger stranger(of_stranger, (*channel)->address());
  const ChannelAddress address = address_of(stranger, input);
  check_endpoint(address);
  const auto endpoint = unpack_endpoint(address);
  const Nonce nonce = endpoint ? endpoint->nonce : stranger.own().nonce;
  bool knows = false;
  Status status = Status::kAgain;
  for (int i = 0; i < 16 && !input.empty(); ++i) {
    switch (input.below(8)) {
      case 0:
        knows |= stranger.say_hello(nonce, input);
        break;
      case 1:
        stranger.say(input.bytes(input.below(65)), IBV_WR_SEND, input);
        break;
      case 2:
        stranger.say(input.bytes(input.below(65)), IBV_WR_RDMA_WRITE_WITH_IMM, input);
        break;
      case 3:
        stranger.say(input.bytes(input.below(65)),
                     input.below(2) == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, input);
        break;
      case 4:
        stranger.receive();
        break;
      case 5:
        (*channel)->fence();
        return;
      case 6: {
        std::array<Done, 8> done;
        size_t count = 0;
        (void)(*channel)->poll(done, &count);
        FUZZ_CHECK(count <= done.size() && (count == 0 || knows));
        break;
      }
      default:
        status = (*channel)->connect(address);
    }
    while (nics.step()) continue;
    FUZZ_CHECK(status != Status::kOk || (knows && endpoint));  // 128 bits are not guessed
    if (status != Status::kOk && status != Status::kAgain) check_sentence((*channel)->failure());
  }
}

SLIME_FUZZ_TARGET(verbs_address, input) {
  test::FakeVerbs nics;
  const Settings settings = settings_for(input.below(kMaxQueuePairs) + 1);
  auto rails = open_verbs_rails(nics.symbols(), nics.sysfs_root(), settings, nullptr);
  FUZZ_CHECK(rails && rails->size() == 2);
  meet(nics, *rails->front(), static_cast<VerbsRail&>(*rails->back()), input);
  while (nics.step()) continue;
  rails->clear();
  FUZZ_CHECK(nics.violations().empty());
  FUZZ_CHECK(nics.objects() == 0);
}

}  // namespace slime::verbs
