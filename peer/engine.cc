#include "peer/engine.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace slime {

// Of the links that peers dial.
class Engine::Owner final : public EngineOwner {
 public:
  explicit Owner(Engine& engine)
      : EngineOwner(engine.id_, {}, engine.options_.terms, engine.poller_list_, std::nullopt),
        engine_(engine) {}

  // An engine that dials while there is a link has given that one up.
  Result<OwnerWords> answer(const OwnerWords& offer) const override {
    auto answered = EngineOwner::answer(offer);
    if (!answered) return answered;
    const EngineWords words = EngineWords::unpack(offer);
    switch (admit(words.from, words.proof)) {
      case Peer::Admission::kCrossing:
        return fail(make_error(Status::kRemote, 0, "%s", kCrossing));
      case Peer::Admission::kNotTheOne:
        return fail(make_error(Status::kRemote, 0, "it is not the engine whose name it takes"));
      case Peer::Admission::kCome:
        break;
    }
    return answered;
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
  Peer::Admission admit(const EngineId& from, const Nonce& proof) const {
    if (from != self_) {
      uint64_t handle = 0;
      return engine_.peer_with_id(from, &handle)->admit(proof);
    }
    const bool is_itself = same_nonce(proof, engine_.world_->proof);
    return is_itself ? Peer::Admission::kCome : Peer::Admission::kNotTheOne;
  }

  Engine& engine_;
};

Engine::Engine(const EngineOptions& options) : options_(options) {}

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
  if (auto opened = open_pollers(); !opened) return opened;
  owner_ = std::make_unique<Owner>(*this);
  auto listener = LinkListener::open(*devices_, device_index_, *owner_, kNoTrafficClass);
  if (!listener) return fail(std::move(listener.error()));
  listener_ = std::move(*listener);
  const auto name = [this](uint64_t tag, Peer* peer) {
    const std::lock_guard lock(mutex_);
    if (peer == nullptr) {
      by_tag_.erase(tag);
    } else {
      by_tag_[tag] = peer->weak_from_this();
    }
  };
  const auto attend = [this](std::shared_ptr<Peer> peer) {
    if (service_ != nullptr) service_->attend(std::move(peer));
  };
  const MakeRegion letter = [this](std::span<std::byte> memory, uint8_t rights,
                                   std::shared_ptr<void> keeps) {
    MemoryRange range;
    range.address = memory.data();
    range.bytes = memory.size();
    range.rights = rights;
    range.alone = true;
    return make_region(range, std::move(keeps));
  };
  const Nonce proof = nonce_of(listener_->address());
  world_ =
      std::make_unique<PeerWorld>(PeerWorld{*devices_,
                                            device_index_,
                                            id_,
                                            proof,
                                            options_.terms,
                                            {regions_, expectations_, notices_, tagged_, letter},
                                            poller_list_,
                                            name,
                                            attend});
  auto service = Service::open(*this, listener_->descriptor(), poller_list_);
  if (!service) return fail(std::move(service.error()));
  service_ = std::move(*service);
  return service_->start();
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
Result<void> Engine::open_pollers() {
  for (Rail* rail : device_->rails()) {
    auto poller = rail->open_poller();
    if (!poller) return fail(std::move(poller.error()));
    if (*poller == nullptr) continue;
    poller_list_.push_back(poller->get());
    pollers_.push_back(std::move(*poller));
  }
  return {};
}

Engine::~Engine() {
  if (service_ != nullptr) service_->stop();
  service_.reset();
  listener_.reset();
  for (const auto& peer : handles_.all()) {
    peer->leave(make_error(Status::kRemote, 0, "the engine was closed"));
  }
}

std::vector<std::byte> Engine::address() const { return pack({id_, listener_->address()}); }

// The peer with this id, which is made if it is not known.
std::shared_ptr<Peer> Engine::peer_with_id(const EngineId& id, uint64_t* handle) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(by_id_, id, [](const auto& entry) { return entry.first; });
  if (found != by_id_.end()) {
    *handle = found->second;
    return handles_.find(*handle);
  }
  auto peer = std::make_shared<Peer>(*world_, id);
  *handle = add_peer(peer);
  by_id_.emplace_back(id, *handle);
  return peer;
}

uint64_t Engine::add_peer(const std::shared_ptr<Peer>& peer) {
  const uint64_t handle = handles_.add(peer);
  peer->set_handle(handle);
  return handle;
}

std::shared_ptr<Peer> Engine::peer_with_tag(uint64_t tag) {
  const std::lock_guard lock(mutex_);
  const auto found = by_tag_.find(tag);
  return found != by_tag_.end() ? found->second.lock() : nullptr;
}

bool Engine::accept(std::vector<std::shared_ptr<Peer>>* came) {
  for (;;) {
    auto parts = listener_->accept();
    if (!parts) {
      const bool ordinary = parts.error().what.find(kCrossing) != std::string::npos;
      log::write(ordinary ? log::Level::kInfo : log::Level::kWarn, __FILE__, __LINE__, "%s",
                 parts.error().what.c_str());
      return listener_->busy();
    }
    if (*parts == nullptr) return listener_->busy();
    uint64_t handle = 0;
    const EngineId from = EngineWords::unpack((*parts)->words).from;
    const auto peer = from == id_ ? itself() : peer_with_id(from, &handle);
    peer->attach(std::move(*parts));
    came->push_back(peer);
  }
}

std::shared_ptr<Peer> Engine::itself() {
  uint64_t handle = 0;
  (void)peer_with_id(id_, &handle);
  const std::lock_guard lock(mutex_);
  if (itself_ == nullptr) {
    itself_ = std::make_shared<Peer>(*world_, id_);
    (void)add_peer(itself_);
    // What comes from this engine comes from the peer that the program knows.
    itself_->set_handle(handle);
  }
  return itself_;
}

std::shared_ptr<Peer> Engine::listening_end_of(uint64_t handle) {
  const auto peer = handles_.find(handle);
  const std::lock_guard lock(mutex_);
  return peer != nullptr && peer->id() == id_ ? itself_ : nullptr;
}

Result<uint64_t> Engine::add_peer(std::span<const std::byte> blob) {
  auto address = unpack_engine(blob);
  if (!address) return fail(std::move(address.error()));
  uint64_t handle = 0;
  peer_with_id(address->engine, &handle)->learn_address(address->listener);
  return handle;
}

Result<uint64_t> Engine::register_memory(void* address, size_t bytes, uint8_t rights) {
  MemoryRange range;
  range.address = address;
  range.bytes = bytes;
  range.rights = rights;
  auto region = make_region(range, nullptr);
  if (!region) return fail(std::move(region.error()));
  return regions_.add(std::move(*region));
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
  const auto base = reinterpret_cast<uint64_t>(region->memory.address);
  return pack(
      RegionAddress{id_, handle, region->nonce, base, region->memory.bytes, region->rights});
}

Result<uint64_t> Engine::import(uint64_t peer, std::span<const std::byte> blob) {
  auto address = unpack_region(blob);
  if (!address) return fail(std::move(address.error()));
  const auto owner = known_peer(peer);
  if (!owner) return fail(owner.error());
  if ((*owner)->id() != address->engine) {
    return fail(Status::kInvalid, "this region is of another engine than that peer");
  }
  return remotes_.add(
      std::make_shared<Imported>(Imported{peer, std::make_shared<Remote>(*address)}));
}

}  // namespace slime
