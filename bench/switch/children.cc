#include "bench/switch/children.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "switch/softswitch/udp_socket.h"

namespace slime::bench {
namespace {

constexpr uint32_t kBatch = 64;
constexpr int kPatienceMs = 2000;
constexpr int kSpins = 200;  // of looking everywhere in vain, before sleeping

bool complain(const char* what) {
  std::fprintf(stderr, "bench-switch: %s: %s\n", what, std::strerror(errno));
  return false;
}

}  // namespace

struct Children::Child {
  Fd socket;
  uint32_t open_slots = 0;  // whose last round is not over
  std::vector<uint32_t> epochs;
  std::vector<std::array<std::byte, sap::kHeaderBytes>> headers;  // by slot
  std::vector<std::array<iovec, 2>> parts;
  std::vector<uint32_t> due;  // slots to be sent
  std::vector<mmsghdr> outgoing;
  std::vector<std::byte> memory;
  std::array<iovec, kBatch> places{};
  std::array<mmsghdr, kBatch> incoming{};
};

Children::Children() = default;
Children::~Children() = default;

std::unique_ptr<Children> Children::open(const Load& load, const SocketAddress& local,
                                         uint64_t buffer_bytes) {
  auto children = std::make_unique<Children>();
  children->load_ = load;
  children->burst_ = load.slots / 2;
  children->payload_.resize(4 * size_t{load.lanes}, std::byte{1});
  const size_t stride = sap::kHeaderBytes + children->payload_.size();
  for (uint32_t index = 0; index < load.children; ++index) {
    auto sockets = net::bind_udp_block(local, 1, buffer_bytes, 0);
    if (!sockets) {
      std::fprintf(stderr, "bench-switch: %s\n", sockets.error().what.c_str());
      return nullptr;
    }
    auto child = std::make_unique<Child>();
    child->socket = std::move(sockets->front());
    const auto address = local_address(child->socket);
    if (!address) return nullptr;
    children->addresses_.push_back(*address);
    child->epochs.resize(load.slots, 0);
    child->headers.resize(load.slots);
    child->parts.resize(load.slots);
    child->memory.resize(kBatch * stride);
    for (uint32_t slot = 0; slot < load.slots; ++slot) {
      sap::Header header;
      header.job = load.job;
      header.generation = load.generation;
      header.token = load.token;
      header.child = static_cast<uint8_t>(index);
      header.slot = static_cast<uint16_t>(slot);
      header.lanes = static_cast<uint16_t>(load.lanes);
      sap::encode(header, child->headers[slot].data());
      child->parts[slot] = {{{child->headers[slot].data(), sap::kHeaderBytes},
                             {children->payload_.data(), children->payload_.size()}}};
    }
    for (uint32_t i = 0; i < kBatch; ++i) {
      child->places[i] = {&child->memory[i * stride], stride};
      child->incoming[i].msg_hdr.msg_iov = &child->places[i];
      child->incoming[i].msg_hdr.msg_iovlen = 1;
    }
    children->children_.push_back(std::move(child));
  }
  return children;
}

bool Children::connect_to(const SocketAddress& server) {
  for (const auto& child : children_) {
    if (connect(child->socket.get(), server.data(), server.size()) != 0) return complain("connect");
  }
  return true;
}

bool Children::run(uint32_t rounds) {
  last_epoch_ += rounds;
  for (const auto& child : children_) {
    child->open_slots = load_.slots;
    for (uint32_t slot = 0; slot < load_.slots; ++slot) child->due.push_back(slot);
    if (!send(*child)) return false;
  }
  for (int futile = 0;;) {
    uint32_t open = 0;
    bool idle = true;
    for (const auto& child : children_) {
      const size_t due = child->due.size();
      const uint32_t open_before = child->open_slots;
      if (!receive(*child)) return false;
      idle &= child->due.size() == due && child->open_slots == open_before;
      open += child->open_slots;
    }
    if (open == 0) return true;
    for (const auto& child : children_) {
      if ((idle || child->due.size() >= burst_) && !child->due.empty()) {
        futile = 0;
        if (!send(*child)) return false;
      }
    }
    if (!idle) futile = 0;
    if (++futile > kSpins && !wait()) return false;
  }
}

bool Children::receive(Child& child) {
  const int count =
      recvmmsg(child.socket.get(), child.incoming.data(), kBatch, MSG_DONTWAIT, nullptr);
  if (count < 0) return errno == EAGAIN || complain("recvmmsg");
  for (int i = 0; i < count; ++i) {
    if (!take(child, static_cast<uint32_t>(i), child.incoming[i].msg_len)) return false;
  }
  return true;
}

bool Children::take(Child& child, uint32_t index, uint32_t bytes) {
  sap::Header header;
  const auto* data = static_cast<const std::byte*>(child.places[index].iov_base);
  if (sap::decode({data, bytes}, &header) != sap::Fault::kNone || header.slot >= load_.slots ||
      header.lanes != load_.lanes || header.epoch != child.epochs[header.slot]) {
    std::fprintf(stderr, "bench-switch: an answer of %u bytes that nobody waits for (type %u)\n",
                 bytes, static_cast<unsigned>(header.type));
    return false;
  }
  if (header.epoch == last_epoch_)
    --child.open_slots;
  else
    child.due.push_back(header.slot);
  return true;
}

bool Children::send(Child& child) {
  child.outgoing.resize(child.due.size());
  for (size_t i = 0; i < child.due.size(); ++i) {
    const uint32_t slot = child.due[i];
    sap::wire::put32(child.headers[slot].data() + sap::at::kEpoch, ++child.epochs[slot]);
    child.outgoing[i] = {};
    child.outgoing[i].msg_hdr.msg_iov = child.parts[slot].data();
    child.outgoing[i].msg_hdr.msg_iovlen = 2;
  }
  for (size_t done = 0; done < child.outgoing.size();) {
    const int sent = sendmmsg(child.socket.get(), &child.outgoing[done],
                              static_cast<unsigned>(child.outgoing.size() - done), 0);
    if (sent <= 0) return complain("sendmmsg");
    done += static_cast<size_t>(sent);
  }
  child.due.clear();
  return true;
}

bool Children::wait() {
  std::vector<pollfd> sockets;
  for (const auto& child : children_) sockets.push_back({child->socket.get(), POLLIN, 0});
  if (poll(sockets.data(), sockets.size(), kPatienceMs) > 0) return true;
  std::fprintf(stderr, "bench-switch: no answer for %d ms: were packets lost?\n", kPatienceMs);
  return false;
}

}  // namespace slime::bench
