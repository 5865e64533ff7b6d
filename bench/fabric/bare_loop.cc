#include "bench/fabric/bare_loop.h"

#include <array>

#include "test/support/load/engine_pair.h"

namespace slime::bench {
namespace {

constexpr size_t kPlaces = 4096;
constexpr size_t kPolledAtOnce = 32;

}  // namespace

BareLoop::BareLoop(const fabric::Symbols& symbols, const fabric::Nic& nic, size_t bytes)
    : symbols_(symbols),
      domain_(test::value_of(
          fabric::Domain::open(symbols, fabric::duplicate(symbols, nic.info.get()), nic.traits))) {
  prepare(from_, bytes);
  prepare(to_, bytes);
  from_.peer = test::value_of(from_.endpoint.add_peer(*domain_, to_.endpoint.name()));
  to_.peer = test::value_of(to_.endpoint.add_peer(*domain_, from_.endpoint.name()));
}

void BareLoop::prepare(End& end, size_t bytes) {
  static uint64_t key = uint64_t{1} << 20;  // not one of the rail's: those have random bits above
  end.endpoint = test::value_of(fabric::Endpoint::open(*domain_, {.completions = kPlaces}));
  end.memory = std::make_unique<std::byte[]>(bytes);
  end.region = test::value_of(
      domain_->register_memory({end.memory.get(), bytes}, ++key, domain_->access_of(kRemoteWrite)));
}

bool BareLoop::post(End& end, const End& target, uint32_t bytes) {
  if (end.posted - end.done == kDepth) return false;
  iovec piece = {end.memory.get(), bytes};
  void* description = ::fi_mr_desc(end.region.get());
  const bool by_address = domain_->has(FI_MR_VIRT_ADDR);
  fi_rma_iov place = {by_address ? reinterpret_cast<uint64_t>(target.memory.get()) : 0, bytes,
                      ::fi_mr_key(target.region.get())};
  void* const context = &end.contexts[end.posted % kDepth];
  fi_msg_rma message = fabric::message_of(piece, &description, place, end.peer, context);
  message.data = 1;
  const uint64_t complete =
      domain_->traits().delivery_complete ? FI_DELIVERY_COMPLETE : FI_TRANSMIT_COMPLETE;
  const ssize_t code =
      ::fi_writemsg(end.endpoint.get(), &message, FI_REMOTE_CQ_DATA | FI_COMPLETION | complete);
  if (code != 0 && code != -FI_EAGAIN) {
    test::give_up(fabric::fabric_error(symbols_, code, "fi_writemsg failed"));
  }
  end.posted += code == 0;
  return code == 0;
}

void BareLoop::poll(End& end) {
  std::array<fi_cq_data_entry, kPolledAtOnce> entries;
  const ssize_t count = ::fi_cq_read(end.endpoint.completions(), entries.data(), entries.size());
  if (count < 0 && count != -FI_EAGAIN) {
    test::give_up(fabric::fabric_error(symbols_, count, "fi_cq_read failed"));
  }
  for (ssize_t i = 0; i < count; ++i) {
    const bool arrival = (entries[static_cast<size_t>(i)].flags & FI_REMOTE_CQ_DATA) != 0;
    ++(arrival ? end.arrived : end.done);
  }
}

void BareLoop::stream(uint32_t bytes, uint64_t writes) {
  const uint64_t end = to_.arrived + writes;
  for (uint64_t posted = 0; to_.arrived < end || from_.done < from_.posted;) {
    while (posted < writes && post(from_, to_, bytes)) ++posted;
    poll(from_);
    poll(to_);
  }
}

void BareLoop::ping_pong(uint32_t bytes, uint64_t rounds) {
  for (uint64_t round = 0; round < rounds; ++round) {
    for (const bool there : {true, false}) {
      End& sender = there ? from_ : to_;
      End& receiver = there ? to_ : from_;
      const uint64_t before = receiver.arrived;
      while (!post(sender, receiver, bytes)) poll(sender), poll(receiver);
      while (receiver.arrived == before) poll(receiver), poll(sender);
    }
  }
}

}  // namespace slime::bench
