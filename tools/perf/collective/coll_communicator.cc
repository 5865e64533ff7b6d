#include "tools/perf/collective/coll_communicator.h"

#include <cstring>

#include "tools/common/bytes.h"
#include "tools/perf/buffer.h"

namespace slime::perf {

Result<std::unique_ptr<Communicator>> CollCommunicator::create(const CollSetup& coll,
                                                               const CommunicatorSetup& setup) {
  std::unique_ptr<CollCommunicator> made(new CollCommunicator(coll, setup));
  CollCommunicator* communicator = made.get();
  setup.pulse->enter("connecting to the switch");
  auto done = communicator->workers_.start();
  if (!done) return fail(done.error());
  done = communicator->workers_.service.call([communicator] { return communicator->listen(); });
  if (done) done = communicator->exchange_handles();
  if (done) {
    done = communicator->workers_.service.call([communicator]() -> Result<void> {
      auto ready = communicator->connect();
      if (ready) ready = communicator->check_support();
      if (ready) ready = communicator->register_memory();
      return ready;
    });
  }
  if (!done) return fail(done.error());
  if (auto all = setup.member->exchange("connected", true); !all) return fail(all.error());
  return made;
}

CollCommunicator::~CollCommunicator() { (void)close(); }

Result<void> CollCommunicator::listen() {
  const auto code = coll_.api->listen(setup_.devices[0], handle_.data(), &listen_comm_);
  if (code != nccl::kSuccess) return fail(call_error(Status::kRemote, "CollNet listen", code));
  if (listen_comm_ != nullptr) return {};
  return fail(make_error(Status::kInternal, 0, "CollNet listen succeeded without a comm"));
}

Result<void> CollCommunicator::exchange_handles() {
  auto all = setup_.member->exchange("handles", {{"collnet", tools::to_hex(handle_)}});
  if (!all) return fail(all.error());
  handles_.resize(all->size());
  for (size_t rank = 0; rank < all->size(); ++rank) {
    if (!tools::from_hex(text_in((*all)[rank], "collnet"), handles_[rank])) {
      return fail(make_error(Status::kRemote, 0, "rank %zu sent no handle for CollNet", rank));
    }
  }
  return {};
}

Result<void> CollCommunicator::connect() {
  std::vector<void*> handles;
  for (HandleBytes& handle : handles_) handles.push_back(handle.data());
  const auto code =
      coll_.api->connect(handles.data(), setup_.ranks, setup_.rank, listen_comm_, &comm_);
  if (code != nccl::kSuccess || comm_ == nullptr) {
    listen_comm_ = nullptr;  // the plugin's: NCCL does not close it then
    return fail(call_error(Status::kRemote, "CollNet connect", code));
  }
  const auto closed = coll_.api->close_listen(listen_comm_);
  listen_comm_ = nullptr;
  if (closed == nccl::kSuccess) return {};
  return fail(call_error(Status::kRemote, "CollNet closeListen", closed));
}

bool CollCommunicator::supports(DataType type, RedOp op) const {
  int supported = 0;
  // NCCL counts an error as no, too (src/transport/coll_net.cc).
  return coll_.api->reduce_support(type, op, &supported) == nccl::kSuccess && supported == 1;
}

std::string CollCommunicator::supported() const {
  std::string text;
  for (size_t op = 0; op < kRedOps; ++op) {
    if (static_cast<RedOp>(op) == RedOp::kAvg) continue;
    std::string types;
    for (size_t type = 0; type < kDataTypes; ++type) {
      if (!supports(static_cast<DataType>(type), static_cast<RedOp>(op))) continue;
      types += " " + std::string(kDataTypeNames[type]);
    }
    if (types.empty()) continue;
    text += (text.empty() ? "" : "; ") + std::string(kRedOpNames[op]) +
            (static_cast<RedOp>(op) == RedOp::kSum ? " and avg" : "") + " of" + types;
  }
  return text.empty() ? "nothing" : text;
}

Result<void> CollCommunicator::check_support() const {
  for (const DataType type : coll_.types) {
    for (const RedOp op : coll_.ops) {
      if (supports(type, op == RedOp::kAvg ? RedOp::kSum : op)) continue;
      return fail(make_error(
          Status::kConfig, 0,
          "the CollNet of %s does not reduce %s by %s (NCCL would use a ring); it supports %s",
          coll_.api->name, name_of(type).data(), name_of(op).data(), supported().c_str()));
    }
  }
  return {};
}

Result<void> CollCommunicator::add_region(const Buffer& buffer, void** handle) {
  const auto code = coll_.api->reg_mr(comm_, buffer.data(), buffer.size(), handle);
  if (code == nccl::kSuccess && *handle != nullptr) return {};
  return fail(call_error(Status::kRemote,
                         "CollNet regMr of " + std::to_string(buffer.size()) + " bytes", code));
}

Result<void> CollCommunicator::register_memory() {
  const size_t fifo = setup_.sizes.fifo[static_cast<size_t>(Protocol::kSimple)];
  auto buffer = Buffer::allocate(2 * static_cast<size_t>(setup_.channels) * fifo, "the FIFOs");
  if (!buffer) return fail(buffer.error());
  fifos_ = std::move(*buffer);
  auto done = add_region(fifos_, &send_fifo_handle_);
  if (done) done = add_region(fifos_, &receive_fifo_handle_);
  if (done && setup_.send_buffer != nullptr) {
    done = add_region(*setup_.send_buffer, &send_buffer_handle_);
  }
  if (done && setup_.receive_buffer != nullptr) {
    done = add_region(*setup_.receive_buffer, &receive_buffer_handle_);
  }
  return done;
}

CollPath CollCommunicator::path_of(const Job& job) const {
  CollPath path;
  path.api = coll_.api;
  path.comm = comm_;
  // NCCL divides averages in a kernel, so it does not give the user's memory to the network for
  // them (src/register/coll_reg.cc).
  path.direct = job.shape.direct && job.op != RedOp::kAvg;
  path.plan = make_coll_plan({.bytes = job.shape.count * size_of(job.type),
                              .element_bytes = size_of(job.type),
                              .channels = job.shape.channels,
                              .direct = path.direct,
                              .max_call_bytes = coll_.max_call_bytes},
                             setup_.sizes);
  path.send_fifo = fifos_.data();
  path.receive_fifo = fifos_.data() + fifos_.size() / 2;
  path.send_handle = send_fifo_handle_;
  path.receive_handle = receive_fifo_handle_;
  if (path.direct) {
    path.send_handle = job.users.in_place ? receive_buffer_handle_ : send_buffer_handle_;
    path.receive_handle = receive_buffer_handle_;
  }
  return path;
}

// Calls carry whole chunks whose ends hold what earlier operations left. Timed operations find
// zeros there, as in fresh host memory of NCCL's; checked ones values that would disturb a sum
// most.
void CollCommunicator::fill_fifos(const Job& job, const CollPath& path) const {
  const std::span<char> send(path.send_fifo, path.plan.call_bytes * path.plan.depth);
  std::memset(path.receive_fifo, 0x66, send.size());
  if (!job.is_checked) {
    std::memset(send.data(), 0, send.size());
  } else {
    fill_garbage(job.type, setup_.rank, job.wild_tails, send);
  }
}

Result<void> CollCommunicator::run(Job* job) {
  const CollPath path = path_of(*job);
  if (!path.direct) fill_fifos(*job, path);
  return workers_.progress.call([this, job, &path] {
    CollRunner runner(job, path, &setup_.member->stop(), setup_.pulse);
    return runner.run();
  });
}

Result<void> CollCommunicator::close() {
  return workers_.service.call([this] {
    Result<void> first;
    const auto note = [&first](const char* call, Code code) {
      if (code == nccl::kSuccess || !first) return;
      first = fail(call_error(Status::kRemote, call, code));
    };
    for (void** handle : {&send_fifo_handle_, &receive_fifo_handle_, &send_buffer_handle_,
                          &receive_buffer_handle_}) {
      if (*handle != nullptr) note("CollNet deregMr", coll_.api->dereg_mr(comm_, *handle));
      *handle = nullptr;
    }
    if (comm_ != nullptr) note("closeColl", coll_.api->close_coll(comm_));
    if (listen_comm_ != nullptr) note("CollNet closeListen", coll_.api->close_listen(listen_comm_));
    comm_ = listen_comm_ = nullptr;
    return first;
  });
}

}  // namespace slime::perf
