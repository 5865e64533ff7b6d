// Two levels: four workers below two leaves below a root, three switches and so three captures.
#include <algorithm>

#include "test/vectors/recorder.h"

namespace slime::vectors {
namespace {

const SocketAddress& root_address() {
  static const SocketAddress address = *SocketAddress::parse("127.77.0.1:48880");
  return address;
}
SocketAddress leaf_address(uint32_t leaf) {
  return *SocketAddress::parse("127.77.0." + std::to_string(leaf + 2) + ":48880");
}

Vector leaf_world(uint8_t leaf) {
  Vector vector = world("tree-leaf" + std::to_string(leaf), 0);
  vector.address = leaf_address(leaf);
  for (uint32_t child = 0; child < 2; ++child) {
    vector.job.children.push_back(
        *SocketAddress::parse("127.77.1." + std::to_string(2 * leaf + child + 1) + ":4000"));
  }
  vector.job.parent = net::Parent{root_address(), leaf};
  return vector;
}

Vector root_world() {
  Vector vector = world("tree-root", 0);
  vector.address = root_address();
  vector.job.children = {leaf_address(0), leaf_address(1)};
  vector.job.children_are_switches = true;
  return vector;
}

class Tree {
 public:
  Tree() {
    for (Recorder* recorder : {&root_, &leaves_[0], &leaves_[1]}) recorder->set_clock(&time_us_);
  }

  // Of the packets between switches that follow, `pass` arrive and then `lose` do not.
  void lose(int pass, int lose) {
    passes_ = pass;
    losses_ = lose;
  }
  // What worker `worker` sends, and all that follows.
  void contribute(uint32_t worker, uint16_t slot, uint32_t epoch) {
    Recorder& leaf = leaves_[worker / 2];
    const auto child = static_cast<uint8_t>(worker % 2);
    // Its seed makes the workers of the two leaves differ.
    auto bytes = contribution(leaf.job(), child, slot, epoch,
                              {.seed = worker / 2 + 1, .first_rank = worker - child});
    spread(leaf.deliver_for_slot(leaf.job().children[child], std::move(bytes), slot));
  }
  void ask(uint32_t worker, uint16_t slot, uint32_t epoch) {
    Recorder& leaf = leaves_[worker / 2];
    const auto child = static_cast<uint8_t>(worker % 2);
    spread(leaf.deliver_for_slot(leaf.job().children[child],
                                 question(leaf.job(), child, slot, epoch), slot));
  }
  // The same packet that a switch has sent, once more: a network may do that.
  void replay_last(const std::string& to, sap::Type type) {
    Recorder& recorder = to == "root" ? root_ : leaves_[to == "leaf1"];
    const auto& packets = recorder.vector().packets;
    const auto last = std::find_if(packets.rbegin(), packets.rend(), [&](const auto& packet) {
      return recorder.vector().is_input(packet) &&
             std::to_integer<int>(packet.payload[sap::at::kType]) == int(type);
    });
    const auto from = last->from;  // what is delivered joins the packets
    const auto payload = last->payload;
    spread(recorder.deliver(from, payload));
  }
  std::vector<Vector> done() const {
    return {root_.vector(), leaves_[0].vector(), leaves_[1].vector()};
  }

 private:
  void spread(const std::vector<test::CapturedPacket>& sent) {
    for (const test::CapturedPacket& packet : sent) {
      for (Recorder* recorder : {&root_, &leaves_[0], &leaves_[1]}) {
        if (!recorder->vector().is_input(packet)) continue;
        if (passes_ > 0) {
          --passes_;
        } else if (losses_ > 0) {
          --losses_;
          continue;
        }
        spread(recorder->deliver(packet.from, packet.payload));
      }
    }
  }

  uint64_t time_us_ = 1'000'000;
  int passes_ = 0, losses_ = 0;
  Recorder root_{root_world()};
  Recorder leaves_[2] = {Recorder(leaf_world(0)), Recorder(leaf_world(1))};
};

}  // namespace

std::vector<Vector> generate_tree() {
  Tree tree;
  for (uint32_t worker = 0; worker < 4; ++worker) tree.contribute(worker, 0, 1);
  // The partial sum of leaf 0 is lost: a worker that sends again makes the leaf send it again.
  tree.contribute(0, 0, 2);
  tree.lose(0, 1);
  tree.contribute(1, 0, 2);
  tree.contribute(2, 0, 2);
  tree.ask(2, 0, 2);
  tree.contribute(3, 0, 2);
  tree.contribute(1, 0, 2);
  // Both results of the root are lost: either leaf asks again for itself.
  for (uint32_t worker = 0; worker < 3; ++worker) tree.contribute(worker, 0, 3);
  tree.lose(1, 2);
  tree.contribute(3, 0, 3);
  tree.contribute(0, 0, 3);
  tree.ask(2, 0, 3);
  // A worker's result is lost; its leaf has it.
  for (uint32_t worker = 0; worker < 4; ++worker) tree.contribute(worker, 0, 4);
  tree.contribute(2, 0, 4);
  tree.ask(0, 0, 4);
  // Late copies between the switches change nothing.
  tree.replay_last("root", sap::Type::kPartial);
  tree.replay_last("leaf0", sap::Type::kParentResult);
  tree.replay_last("leaf1", sap::Type::kParentResult);
  for (uint32_t worker : {3u, 1u, 0u, 2u}) tree.contribute(worker, 0, 5);
  return tree.done();
}

}  // namespace slime::vectors
