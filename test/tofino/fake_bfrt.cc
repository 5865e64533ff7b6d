#include "test/tofino/fake_bfrt.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "test/tofino/device_json.h"
#include "test/tofino/fake_device.h"
#include "tofino/bfruntime.grpc.pb.h"

namespace slime::tofino {

using grpc::ServerContext;
using grpc::StatusCode;

class FakeBfrt::Service final : public bfrt_proto::BfRuntime::Service {
 public:
  using Stream =
      grpc::ServerReaderWriter<bfrt_proto::StreamMessageResponse, bfrt_proto::StreamMessageRequest>;

  Service(std::mutex& mutex, FakeState& state, const std::string& listen)
      : mutex_(mutex), state_(state) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port_);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (!server_) throw std::runtime_error("no server");
  }
  ~Service() override {
    {
      std::lock_guard lock(mutex_);
      state_.hang = false;
    }
    end_streams();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  int port() const { return port_; }

  void end_streams() {
    std::lock_guard lock(mutex_);
    for (const auto& [context, stream] : streams_) context->TryCancel();
    state_.subscriber.reset();
    state_.binder.reset();
  }
  void tell_of_reload() {
    std::lock_guard lock(mutex_);
    bfrt_proto::StreamMessageResponse message;
    message.mutable_set_forwarding_pipeline_config_response();
    for (const auto& [context, stream] : streams_) stream->Write(message);
  }

 private:
  grpc::Status StreamChannel(ServerContext* context, Stream* stream) override {
    bfrt_proto::StreamMessageRequest request;
    std::optional<uint32_t> subscribed;
    while (stream->Read(&request)) {
      if (subscribed || !request.has_subscribe()) continue;
      wait(*context);
      std::lock_guard lock(mutex_);
      if (state_.subscriber == request.client_id()) {
        return {StatusCode::INVALID_ARGUMENT, "Can't have two clients with the same client id"};
      }
      subscribed = state_.subscriber = request.client_id();
      ++state_.subscriptions;
      streams_[context] = stream;
      bfrt_proto::StreamMessageResponse answer;
      answer.mutable_subscribe()->mutable_status()->set_code(0);
      if (state_.spoils_text) answer.mutable_subscribe()->mutable_status()->set_message("\xff");
      stream->Write(answer);
    }
    std::lock_guard lock(mutex_);
    streams_.erase(context);
    if (streams_.empty()) {
      state_.subscriber.reset();
      state_.binder.reset();
    }
    return grpc::Status::OK;
  }

  grpc::Status GetForwardingPipelineConfig(
      ServerContext* context, const bfrt_proto::GetForwardingPipelineConfigRequest* request,
      bfrt_proto::GetForwardingPipelineConfigResponse* answer) override {
    wait(*context);
    std::lock_guard lock(mutex_);
    state_.device = request->device_id();
    bfrt_proto::ForwardingPipelineConfig* config = answer->add_config();
    config->set_p4_name(state_.program);
    config->set_bfruntime_info(state_.program_json);
    answer->mutable_non_p4_config()->set_bfruntime_info(state_.chip_json);
    return grpc::Status::OK;
  }

  grpc::Status SetForwardingPipelineConfig(
      ServerContext* context, const bfrt_proto::SetForwardingPipelineConfigRequest* request,
      bfrt_proto::SetForwardingPipelineConfigResponse*) override {
    wait(*context);
    std::lock_guard lock(mutex_);
    if (state_.subscriber != request->client_id()) {
      return {StatusCode::UNAVAILABLE, "Unknown client"};
    }
    if (request->config_size() != 1 || request->config(0).p4_name() != state_.program) {
      return {StatusCode::NOT_FOUND, "Failed to find BfRtInfo for program"};
    }
    if (state_.is_owned || state_.binder) {
      return {StatusCode::ALREADY_EXISTS, "another client already owns this P4"};
    }
    state_.binder = request->client_id();
    return grpc::Status::OK;
  }

  grpc::Status Write(ServerContext* context, const bfrt_proto::WriteRequest* request,
                     bfrt_proto::WriteResponse*) override {
    wait(*context);
    std::lock_guard lock(mutex_);
    if (state_.binder != request->client_id()) return {StatusCode::UNAVAILABLE, "Unknown client"};
    const auto& metadata = context->client_metadata();
    const bool absent_is_fine =
        metadata.contains("error_in_resp") && metadata.contains("ignore_not_found");
    state_.pipe = request->target().pipe_id();
    state_.writes.push_back(request->updates_size());
    std::vector<Verdict> verdicts;
    for (const bfrt_proto::Update& update : request->updates()) {
      verdicts.push_back(apply(update, &state_));
      const bool is_absent = verdicts.back().code == StatusCode::NOT_FOUND;
      if (is_absent && absent_is_fine && update.type() == bfrt_proto::Update::DELETE) {
        verdicts.back() = {};
      }
    }
    return status_of(verdicts, "Write Error Status");
  }

  grpc::Status Read(ServerContext* context, const bfrt_proto::ReadRequest* request,
                    grpc::ServerWriter<bfrt_proto::ReadResponse>* writer) override {
    wait(*context);
    std::lock_guard lock(mutex_);
    if (state_.binder != request->client_id()) return {StatusCode::UNAVAILABLE, "Unknown client"};
    bfrt_proto::ReadResponse found;
    std::vector<Verdict> verdicts;
    for (const bfrt_proto::Entity& entity : request->entities()) {
      verdicts.push_back(answer(entity, &state_, &found));
    }
    writer->Write(found);
    if (state_.answers_twice) writer->Write(found);
    return status_of(verdicts, "Read Error Status");
  }

  // As BfRtServerErrorReporter does (bf_rt_server_impl.hpp).
  grpc::Status status_of(const std::vector<Verdict>& verdicts, const char* title) const {
    bfrt_proto::RpcStatus details;
    details.set_code(StatusCode::UNKNOWN);
    details.set_message(title);
    bool failed = false;
    for (const Verdict& verdict : verdicts) {
      bfrt_proto::Error error;
      error.set_canonical_code(verdict.code);
      error.set_message(verdict.message);
      bfrt_proto::RpcDetail* detail = details.add_details();
      detail->set_type_url("type.googleapis.com/bfrt_proto.Error");
      detail->set_value(error.SerializeAsString());
      failed |= verdict.code != 0;
    }
    if (!failed) return grpc::Status::OK;
    if (state_.fail_whole) return {StatusCode::UNKNOWN, "Stream removed"};
    return {StatusCode::UNKNOWN, title, details.SerializeAsString()};
  }

  // While the server hangs, until nobody waits for the answer.
  void wait(const ServerContext& context) {
    std::this_thread::sleep_for(std::chrono::milliseconds(delay()));
    for (;;) {
      {
        std::lock_guard lock(mutex_);
        if (!state_.hang || context.IsCancelled()) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  int delay() const {
    std::lock_guard lock(mutex_);
    return state_.delay_ms;
  }

  std::mutex& mutex_;
  FakeState& state_;
  std::map<ServerContext*, Stream*> streams_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

FakeBfrt::FakeBfrt(uint16_t port, const std::string& host) {
  const std::string begin = host + ":";
  state_.program_json = kProgramJson;
  state_.chip_json = kChipJson;
  service_ = std::make_unique<Service>(mutex_, state_, begin + std::to_string(port));
  address_ = *SocketAddress::parse(begin + std::to_string(service_->port()));
}

FakeBfrt::~FakeBfrt() = default;

void FakeBfrt::drop_streams() { service_->end_streams(); }

void FakeBfrt::tell_of_reload() { service_->tell_of_reload(); }

FakeState FakeBfrt::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace slime::tofino
