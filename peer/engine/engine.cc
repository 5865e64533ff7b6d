#include "peer/engine/engine.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/log.h"
#include "link/setup/handshake.h"

namespace slime {
namespace {

constexpr timespec kPause{0, 20'000};  // between looks at peers that are told of the end

}  // namespace

// Of the links that peers dial.
class Engine::Owner final : public EngineOwner {
 public:
  explicit Owner(Engine& engine)
      : EngineOwner(engine.id_, {}, engine.options_.terms, engine.poller_lists_, std::nullopt),
        engine_(engine) {}

  // An engine that dials while there is a link has given that one up.
  Result<OwnerWords> answer(const OwnerWords& offer) const override {
    auto answered = EngineOwner::answer(offer);
    if (!answered) return answered;
    EngineWords words = EngineWords::unpack(*answered);
    switch (admit(&words)) {
      case Peer::Admission::kCrossing:
        return fail(make_error(Status::kRemote, 0, "%s", kCrossing));
      case Peer::Admission::kNotTheOne:
        return fail(make_error(Status::kRemote, 0, "it is not the engine whose name it takes"));
      case Peer::Admission::kCome:
        break;
    }
    return words.pack();
  }
  bool has_link(const LinkId& id) const override {
    const auto peer = engine_.peer_with_tag(tag_of(id, false));
    return peer != nullptr && peer->has_link(id);
  }
  void resume(const LinkId& id, std::unique_ptr<LifelineStream> stream) override {
    if (const auto peer = engine_.peer_with_tag(tag_of(id, false)))
      peer->resume(id, std::move(stream));
  }

 private:
  // Names the era of the peer that it becomes.
  Peer::Admission admit(EngineWords* words) const {
    uint64_t handle = 0;
    if (words->from != self_) {
      const auto peer = engine_.peer_with_id(words->from, &handle);
      words->to_era = peer->era();
      return peer->admit(words->proof);
    }
    if (!same_nonce(words->proof, engine_.world_->proof)) return Peer::Admission::kNotTheOne;
    words->to_era = engine_.itself()->era();
    return Peer::Admission::kCome;
  }

  Engine& engine_;
};

Engine::Engine(const EngineOptions& options)
    : options_(options),
      completions_(
          ready_, &memory_, [this] { wake(); },
          [this](uint64_t handle) { return requests_.find(handle) != nullptr; }),
      expectations_(options.on_immediate == nullptr ? Expectations::Unexpected()
                                                    : [this](uint64_t peer, uint32_t immediate) {
                                                        if (!unexpected_.put({peer, immediate}))
                                                          return false;
                                                        wake();
                                                        return true;
                                                      }) {}

Result<std::unique_ptr<Engine>> Engine::open(const EngineOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(options));
  if (auto done = engine->set_up(); !done) return fail(std::move(done.error()));
  return engine;
}

Result<void> Engine::set_up() {
  auto id = random_nonce();
  if (!id) return fail(std::move(id.error()));
  id_ = *id;
  auto devices = Devices::open(options_.settings, SteadyClock::instance());
  if (!devices) return fail(std::move(devices.error()));
  devices_ = std::move(*devices);
  if (auto found = find_device(); !found) return found;
  poller_lists_.resize(options_.threads);
  for (auto& list : poller_lists_) {
    if (auto opened = open_pollers(&list); !opened) return opened;
  }
  if (auto listens = listen(); !listens) return listens;
  make_world();
  return start_services();
}

// A thread finds all of them there when it begins. The first one begins last: it takes peers and
// calls the program's functions.
Result<void> Engine::start_services() {
  std::vector<int> listeners = {listener_->descriptor()};
  if (discovery_ != nullptr) listeners.push_back(discovery_->descriptor());
  if (status_port_ != nullptr) listeners.push_back(status_port_->descriptor());
  for (uint32_t thread = 0; thread < options_.threads; ++thread) {
    auto service = Service::open(*this, thread, listeners, poller_lists_[thread],
                                 devices_->settings().peer_timeout);
    if (!service) return fail(std::move(service.error()));
    services_.push_back(std::move(*service));
    listeners.clear();
  }
  for (uint32_t thread = options_.threads; thread-- > 0;) {
    if (auto started = services_[thread]->start(); !started) return started;
  }
  return {};
}

Result<void> Engine::listen() {
  owner_ = std::make_unique<Owner>(*this);
  auto listener = LinkListener::open(*devices_, device_index_, *owner_, kNoTrafficClass);
  if (!listener) return fail(std::move(listener.error()));
  listener_ = std::move(*listener);
  auto status_port = StatusPort::open([this] { return status(); });
  if (status_port) {
    status_port_ = std::move(*status_port);
  } else {
    SLIME_INFO("slime-info cannot ask this engine: %s", status_port.error().what.c_str());
  }
  if (options_.discoverable.empty()) return {};
  auto discovery = DiscoveryPort::open(options_.discoverable, address());
  if (!discovery) return fail(std::move(discovery.error()));
  discovery_ = std::move(*discovery);
  return {};
}

bool Engine::answer_callers() {
  const bool found = discovery_ != nullptr && discovery_->answer();
  const bool asked = status_port_ != nullptr && status_port_->answer();
  return found || asked;
}

void Engine::make_world() {
  const auto name = [this](uint64_t tag, Peer* peer) {
    const std::lock_guard lock(mutex_);
    if (peer == nullptr) {
      by_tag_.erase(tag);
    } else {
      by_tag_[tag] = peer->weak_from_this();
    }
  };
  const auto attend = [this](std::shared_ptr<Peer> peer) { this->attend(std::move(peer)); };
  const MakeRegion letter = [this](std::span<std::byte> memory, uint8_t rights,
                                   std::shared_ptr<void> keeps) {
    MemoryRange range;
    range.address = memory.data();
    range.bytes = memory.size();
    range.rights = rights;
    range.alone = true;
    return make_region(range, std::move(keeps));
  };
  const auto came = [this](uint64_t peer) { arrivals_.put(peer); };
  const Messages::To messages = {regions_, expectations_, notices_, tagged_, letter};
  const std::string own = options_.name.empty() ? own_name().data() : options_.name;
  world_ = std::make_unique<PeerWorld>(PeerWorld{
      *devices_, device_index_, id_, nonce_of(listener_->address()), options_.terms, messages,
      &memory_, poller_lists_, name, attend, came, named_regions_, own, address()});
}

// All NICs are one device.
Result<void> Engine::find_device() {
  const size_t count = devices_->device_count();
  if (count == 0) {
    std::string why;
    for (const std::string& note : devices_->notes()) why += (why.empty() ? "" : "; ") + note;
    return fail(Status::kConfig, "no NIC can be used: %s", why.c_str());
  }
  if (count > 1) {
    std::vector<int> all;
    for (size_t i = 0; i < count; ++i) all.push_back(static_cast<int>(i));
    auto merged = devices_->merge(all);
    if (!merged) return fail(std::move(merged.error()));
    device_index_ = *merged;
  }
  device_ = devices_->device(device_index_);
  return check_rails();
}

Result<void> Engine::check_rails() const {
  const uint32_t needed = opcode_bit(Opcode::kRead) | opcode_bit(Opcode::kWrite);
  for (const Rail* rail : device_->rails()) {
    const RailCaps& caps = rail->caps();
    if ((caps.opcodes & needed) == needed) continue;
    return fail(Status::kUnsupported,
                "rail %s (%s) cannot read and write memory of its peer; leave it out with "
                "NCCL_SLIME_IFNAME or NCCL_SLIME_HCA",
                caps.name.c_str(), caps.transport.c_str());
  }
  return {};
}

// A rail that has none is polled peer by peer.
Result<void> Engine::open_pollers(std::vector<Poller*>* of_thread) {
  for (Rail* rail : device_->rails()) {
    auto poller = rail->open_poller();
    if (!poller) return fail(std::move(poller.error()));
    if (*poller == nullptr) continue;
    of_thread->push_back(poller->get());
    pollers_.push_back(std::move(*poller));
  }
  return {};
}

Engine::~Engine() { close(); }

void Engine::close() {
  if (closing_.exchange(true)) return;
  const Error closed = make_error(Status::kRemote, 0, "the engine was closed");
  for (const auto& service : services_) service->stop();
  listener_.reset();
  auto peers = handles_.all();
  for (const auto& peer : peers) peer->leave(closed);
  peers.insert(peers.end(), leaving_.begin(), leaving_.end());
  const auto has_left = [](const std::shared_ptr<Peer>& peer) {
    (void)peer->try_move();
    return peer->has_left();
  };
  while (static_cast<size_t>(std::ranges::count_if(peers, has_left)) < peers.size()) {
    ::nanosleep(&kPause, nullptr);
  }
  end_all_posted(closed);
  (void)call_back(SIZE_MAX);
  (void)std::exchange(services_, {});  // what ends with them may look for them
}

std::vector<std::byte> Engine::address() const {
  return world_ != nullptr ? world_->address : pack({id_, listener_->address()});
}

Result<uint64_t> Engine::register_memory(const MemoryRange& range, const std::string& name) {
  auto region = make_region(range, nullptr);
  if (!region) return fail(std::move(region.error()));
  const uint64_t handle = regions_.add(std::move(*region));
  if (handle == 0) return fail(Status::kNoMemory, "too many regions");
  if (name.empty()) return handle;
  auto named = named_regions_.add(handle, {name, *advertise(handle)});
  if (named) return handle;
  (void)regions_.remove(handle);
  return fail(std::move(named.error()));
}

Result<std::shared_ptr<Region>> Engine::make_region(const MemoryRange& range,
                                                    std::shared_ptr<void> keeps) {
  auto nonce = random_number<uint64_t>();
  if (!nonce) return fail(std::move(nonce.error()));
  auto memory = device_->memory().acquire(range);
  if (!memory) return fail(std::move(memory.error()));
  return std::make_shared<Region>(device_->memory(), *memory, range.rights, *nonce,
                                  std::move(keeps));
}

Result<bool> Engine::deregister(uint64_t handle) {
  auto region = regions_.remove(handle);
  if (region != nullptr) {
    named_regions_.remove(handle);
    const std::lock_guard lock(mutex_);
    draining_[handle] = region->released();
  }
  region.reset();  // may take long: rails unpin the memory
  const std::lock_guard lock(mutex_);
  const auto found = draining_.find(handle);
  if (found == draining_.end()) return fail(Status::kInvalid, "no such region (any more)");
  if (!found->second->load(std::memory_order_acquire)) return false;
  draining_.erase(found);
  return true;
}

Result<RegionBlob> Engine::advertise(uint64_t handle) const {
  const auto region = regions_.find(handle);
  if (region == nullptr) return fail(Status::kInvalid, "no such region (any more)");
  return pack(address_of(id_, handle, *region));
}

}  // namespace slime
