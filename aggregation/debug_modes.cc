#include "aggregation/debug_modes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "switch/protocol/check.h"

namespace slime::aggregation {

namespace {

struct ModeTexts {
  const char* name;
  const char* warning;
};
constexpr ModeTexts kModes[] = {  // by Mode
    {"normal", ""},
    {"dummy",
     "there is no network: a switch in this process sums up this rank's own data as if it came "
     "from all ranks"},
    {"bypass", "numbers are not converted: sums of floats mean nothing"},
    {"instant",
     "nothing is computed: operations are complete at once and outputs are not written"}};
static_assert(std::size(kModes) == static_cast<size_t>(Mode::kInstant) + 1);

constexpr uint32_t kSlots = 64;
constexpr uint32_t kLanes = 360;       // what an MTU of 1500 takes
constexpr uint16_t kFirstPort = 1000;  // addresses that nothing is ever sent to
constexpr int kBatch = 32;             // packets per test, as from a socket

}  // namespace

const char* name_of(Mode mode) {
  return mode <= Mode::kInstant ? kModes[static_cast<size_t>(mode)].name : "unknown";
}

const char* warning_of(Mode mode) { return kModes[static_cast<size_t>(mode)].warning; }

Mode mode_of(const std::string& name) {
  const auto* const mode = std::ranges::find(kModes, name, &ModeTexts::name);
  return mode == std::end(kModes) ? Mode::kNormal : static_cast<Mode>(mode - kModes);
}

Result<std::unique_ptr<Path>> DummyPath::open(const Settings& settings, uint32_t rank,
                                              uint32_t ranks) {
  std::unique_ptr<DummyPath> path(new DummyPath);
  path->name_ = "dummy, rank " + std::to_string(rank) + " of " + std::to_string(ranks);
  WorkerOptions options;
  options.child = static_cast<uint8_t>(rank);
  options.rank = rank;
  options.contributors = ranks;
  options.slots = settings.switch_slots > 0 ? static_cast<uint32_t>(settings.switch_slots) : kSlots;
  options.lanes = settings.switch_lanes > 0 ? static_cast<uint32_t>(settings.switch_lanes) : kLanes;
  net::JobSpec spec;
  spec.slots = options.slots;
  spec.max_lanes = options.lanes;
  SocketAddress child = SocketAddress::parse("127.0.0.1").value();
  for (uint32_t i = 0; i < ranks; ++i) {
    child.set_port(static_cast<uint16_t>(kFirstPort + i));
    spec.children.push_back(child);
  }
  path->children_ = spec.children;
  path->shard_ = std::make_unique<net::Shard>(0, 1);
  auto added = path->shard_->add_job(spec);
  if (!added) return fail(std::move(added.error()));
  // The worker waits for at most one answer per slot; one more place is being read.
  path->places_ = size_t{options.slots} + 1;
  path->waiting_.resize(path->places_ * sap::kMaxPacketBytes);
  path->sizes_.resize(path->places_);
  auto worker = Worker::open(options, *path);
  if (!worker) return fail(std::move(worker.error()));
  path->worker_ = std::move(*worker);
  return path;
}

DummyPath::~DummyPath() {
  if (worker_) log_report(report());
}

Status DummyPath::start(const Operation& operation, uint64_t* ticket) {
  now_ns_ = steady_now_ns();
  return worker_->start(operation, now_ns_, ticket);
}

Status DummyPath::test(uint64_t ticket, bool* done) {
  now_ns_ = steady_now_ns();
  for (int i = 0; i < kBatch && first_ != last_; ++i) {
    deliver(*worker_, place(first_).first(sizes_[first_ % places_]), now_ns_);
    ++first_;
  }
  worker_->poll(now_ns_);
  *done = worker_->done(ticket);
  return *done ? Status::kOk : worker_->status();
}

// What the worker sends: a contribution comes from every rank, with the check of that rank.
void DummyPath::send(const Destination& /*to*/, std::span<const std::byte> datagram) {
  std::array<std::byte, sap::kMaxPacketBytes> bytes;
  std::copy(datagram.begin(), datagram.end(), bytes.begin());
  sap::Header header;
  if (sap::decode(datagram, &header) != sap::Fault::kNone) return;
  if (header.type != sap::Type::kContribution) {
    return shard_->handle(datagram, children_[header.child], now_ns_, *this);
  }
  const uint32_t salt = sap::salt(header);
  const uint32_t image = header.check - sap::factor(header.child) * salt;
  for (uint32_t child = 0; child < children_.size(); ++child) {
    header.child = static_cast<uint8_t>(child);
    header.check = image + sap::factor(child) * salt;
    sap::encode(header, bytes.data());
    shard_->handle(std::span(bytes).first(datagram.size()), children_[child], now_ns_, *this);
  }
}

// What the switch sends. Where there is no place it is lost, as in a network.
void DummyPath::send(const net::Outgoing& packet, std::span<const SocketAddress> /*to*/) {
  if (last_ - first_ == places_) return;
  const std::span<std::byte> bytes = place(last_);
  std::copy(packet.header.begin(), packet.header.end(), bytes.begin());
  std::copy(packet.payload.begin(), packet.payload.end(), bytes.begin() + sap::kHeaderBytes);
  sizes_[last_ % places_] = sap::kHeaderBytes + packet.payload.size();
  ++last_;
}

WorkerReport DummyPath::report() {
  return {.name = name_,
          .worker = worker_->counters(),
          .port = {},
          .round_trip_ns = worker_->round_trip_ns()};
}

}  // namespace slime::aggregation
