#include "switch/tofino/client.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <thread>

#include "tofino/bfruntime.grpc.pb.h"

namespace slime::net::bfrt {
namespace {

using bfrt_proto::BfRuntime;
using bfrt_proto::StreamMessageRequest;
using bfrt_proto::StreamMessageResponse;

constexpr uint32_t kAllPipes = 0xffff;  // BF_DEV_PIPE_ALL
constexpr uint32_t kAll = 0xff;         // directions, parsers
constexpr int kMostErrorBytes = 1 << 20;
constexpr int kTryEveryMs = 50;

constexpr const char* kCodes[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

// On the monotonic clock.
gpr_timespec in_ms(int ms) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(ms, GPR_TIMESPAN));
}

bool is_past(gpr_timespec time) { return gpr_time_cmp(gpr_now(GPR_CLOCK_MONOTONIC), time) >= 0; }

Error make_call_error(int code, const std::string& message) {
  const bool known = code >= 0 && static_cast<size_t>(code) < std::size(kCodes);
  return make_error(Status::kRemote, code, "%s: %s", known ? kCodes[code] : "an unknown code",
                    message.c_str());
}

// Finds the first failed update in the status details of a Write. False: no update has failed.
bool first_failure(const std::string& details, bfrt_proto::Error* failure) {
  bfrt_proto::RpcStatus status;
  if (!status.ParseFromString(details)) return false;
  for (const bfrt_proto::RpcDetail& detail : status.details()) {
    if (failure->ParseFromString(detail.value()) && failure->canonical_code() != 0) return true;
  }
  return false;
}

// Codes with which the server refuses a call, as opposed to codes for a failed connection. UNKNOWN
// may be either: the caller looks at its details.
bool is_refusal(int code) {
  constexpr int kRefusals[] = {
      grpc::INVALID_ARGUMENT,  grpc::NOT_FOUND,          grpc::ALREADY_EXISTS,
      grpc::PERMISSION_DENIED, grpc::RESOURCE_EXHAUSTED, grpc::FAILED_PRECONDITION,
      grpc::ABORTED,           grpc::OUT_OF_RANGE,       grpc::UNIMPLEMENTED};
  return std::ranges::count(kRefusals, code) > 0;
}

// "ipv4:" and "ipv6:" are addresses, which nothing resolves; a '%' of a scope is part of a URI.
std::string uri_of(const SocketAddress& server) {
  std::string text = server.to_string();
  if (const size_t scope = text.find('%'); scope != std::string::npos) text.insert(scope + 1, "25");
  return (server.is_ipv6() ? "ipv6:" : "ipv4:") + text;
}

// Each connection has a new channel, which shares nothing with the last one, because the pause
// before gRPC reconnects a channel grows to two minutes. The variable http_proxy is not used.
std::shared_ptr<grpc::Channel> make_channel(const SocketAddress& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMostErrorBytes);
  arguments.SetMaxReceiveMessageSize(Client::kMostBytes);
  return grpc::CreateCustomChannel(uri_of(server), grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

// The stream has one operation under way at a time, so the next event of the queue is the end of
// that operation. After subscribe() it is a read, which ends with a message or with the stream. An
// operation may write after the wait for it has timed out, so all that it writes are members.
struct Client::Connection {
  Connection(const SocketAddress& server, gpr_timespec to_open_by)
      : open_by(to_open_by),
        stub(BfRuntime::NewStub(make_channel(server))),
        stream(stub->PrepareAsyncStreamChannel(&context, &queue)) {}

  // The operation under way uses the members. When it is cancelled it ends at once, without the
  // peer.
  ~Connection() {
    context.TryCancel();
    queue.Shutdown();
    void* tag;
    bool done;
    while (queue.Next(&tag, &done)) continue;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Whether the operation under way has succeeded by then.
  bool wait(gpr_timespec deadline) {
    void* tag;
    bool done = false;
    const auto next = queue.AsyncNext(&tag, &done, deadline);
    is_under_way = next == grpc::CompletionQueue::TIMEOUT;
    return next == grpc::CompletionQueue::GOT_EVENT && done;
  }

  // Why the stream has ended, or that nothing came in time.
  Error why(gpr_timespec deadline) {
    if (!is_under_way) {
      stream->Finish(&end, this);
      if (wait(deadline)) return make_call_error(end.error_code(), end.error_message());
    }
    return make_call_error(grpc::DEADLINE_EXCEEDED, "no answer in time");
  }

  const gpr_timespec open_by;  // the deadline of subscribe(), describe() and bind() together
  std::unique_ptr<BfRuntime::Stub> stub;
  grpc::ClientContext context;  // of the stream
  grpc::CompletionQueue queue;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<StreamMessageRequest, StreamMessageResponse>>
      stream;
  StreamMessageResponse message;  // of the last read
  grpc::Status end;               // of the stream
  bool is_under_way = false;
};

// gRPC prints errors that it also returns.
Client::Client(const SocketAddress& server, uint32_t device, int call_ms)
    : server_(server), device_(device), call_ms_(call_ms) {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

Client::~Client() = default;

void Client::close() { connection_ = nullptr; }

// Tries again while the server may still hold our last connection: it refuses a second client with
// the same number.
Result<Description> Client::open(const std::string& program) {
  const gpr_timespec deadline = in_ms(call_ms_);
  for (;;) {
    close();
    connection_ = std::make_unique<Connection>(server_, deadline);
    auto opened = try_to_open(program);
    if (opened) return opened;
    const int code = opened.error().code;
    close();
    const bool may_be_our_last = code == grpc::INVALID_ARGUMENT || code == grpc::ALREADY_EXISTS;
    if (!may_be_our_last || is_past(deadline)) return opened;
    std::this_thread::sleep_for(std::chrono::milliseconds(kTryEveryMs));
  }
}

Result<Description> Client::try_to_open(const std::string& program) {
  if (auto done = subscribe(); !done) return fail(std::move(done.error()));
  auto description = describe(program);
  if (!description) return description;
  if (auto done = bind(program); !done) return fail(std::move(done.error()));
  return description;
}

// Opens the stream, sends our number, and waits for the answer. After that one read is always under
// way, whose end is that of the stream.
Result<void> Client::subscribe() {
  Connection& to = *connection_;
  const gpr_timespec deadline = to.open_by;
  StreamMessageRequest request;
  request.set_client_id(kId);
  request.mutable_subscribe()->set_device_id(device_);
  to.stream->StartCall(&to);
  bool done = to.wait(deadline);
  if (done) {
    to.stream->Write(request, &to);
    done = to.wait(deadline);
  }
  if (done) {
    to.stream->Read(&to.message, &to);
    done = to.wait(deadline);
  }
  if (!done) return fail(to.why(deadline));
  const bfrt_proto::RpcStatus& status = to.message.subscribe().status();
  if (!to.message.has_subscribe() || status.code() != 0) {
    return fail(make_call_error(status.code(),
                                "the server answers otherwise than to a client that "
                                "subscribes: " +
                                    status.message()));
  }
  to.stream->Read(&to.message, &to);  // ends with the stream
  return {};
}

// Looks at the end of the read that is under way, without waiting.
bool Client::is_alive() {
  if (!connection_) return false;
  constexpr int kMostMessages = 64;  // none is asked for, and only is_alive() reads them
  for (int i = 0; i < kMostMessages; ++i) {
    const bool is_message = connection_->wait(gpr_now(GPR_CLOCK_MONOTONIC));
    if (connection_->is_under_way) return true;
    if (!is_message || connection_->message.has_set_forwarding_pipeline_config_response()) break;
    connection_->stream->Read(&connection_->message, connection_.get());
  }
  close();
  return false;
}

// Finds the program among those that the chip runs, and returns both descriptions.
Result<Description> Client::describe(const std::string& program) {
  grpc::ClientContext context;
  context.set_deadline(connection_->open_by);
  bfrt_proto::GetForwardingPipelineConfigRequest request;
  request.set_device_id(device_);
  request.set_client_id(kId);
  bfrt_proto::GetForwardingPipelineConfigResponse answer;
  const auto status = connection_->stub->GetForwardingPipelineConfig(&context, request, &answer);
  if (!status.ok()) return fail(make_call_error(status.error_code(), status.error_message()));
  std::string others;
  for (bfrt_proto::ForwardingPipelineConfig& config : *answer.mutable_config()) {
    if (config.p4_name() == program) {
      return Description{std::move(*config.mutable_bfruntime_info()),
                         std::move(*answer.mutable_non_p4_config()->mutable_bfruntime_info())};
    }
    others += (others.empty() ? "" : ", ") + config.p4_name();
  }
  return fail(make_call_error(grpc::NOT_FOUND, "it runs no P4 program \"" + program + "\" but " +
                                                   (others.empty() ? "none" : others)));
}

// From here on, this client may write the tables of the program.
Result<void> Client::bind(const std::string& program) {
  grpc::ClientContext context;
  context.set_deadline(connection_->open_by);
  bfrt_proto::SetForwardingPipelineConfigRequest request;
  request.set_device_id(device_);
  request.set_client_id(kId);
  request.set_action(bfrt_proto::SetForwardingPipelineConfigRequest::BIND);
  request.add_config()->set_p4_name(program);
  bfrt_proto::SetForwardingPipelineConfigResponse answer;
  const auto status = connection_->stub->SetForwardingPipelineConfig(&context, request, &answer);
  if (!status.ok()) return fail(make_call_error(status.error_code(), status.error_message()));
  return {};
}

void Client::fill(bfrt_proto::TargetDevice* target) const {
  target->set_device_id(device_);
  target->set_pipe_id(kAllPipes);
  target->set_direction(kAll);
  target->set_prsr_id(kAll);
}

// Closes the connection where that has failed.
Error Client::error_of_call(int code, const std::string& message, const std::string& details) {
  bfrt_proto::Error failure;
  if (code == grpc::UNKNOWN && first_failure(details, &failure)) {
    return make_call_error(failure.canonical_code(), failure.message());
  }
  if (!is_refusal(code)) close();
  return make_call_error(code, message);
}

Result<void> Client::write(bfrt_proto::WriteRequest* request, bool absent_is_fine) {
  if (!connection_) return fail(make_call_error(grpc::UNAVAILABLE, "there is no connection"));
  fill(request->mutable_target());
  request->set_client_id(kId);
  grpc::ClientContext context;
  context.set_deadline(in_ms(call_ms_));
  if (absent_is_fine) {  // only both together (Write() in bf_rt_server_impl.cpp)
    context.AddMetadata("error_in_resp", "1");
    context.AddMetadata("ignore_not_found", "1");
  }
  bfrt_proto::WriteResponse answer;
  const auto status = connection_->stub->Write(&context, *request, &answer);
  if (status.ok()) return {};
  return fail(error_of_call(status.error_code(), status.error_message(), status.error_details()));
}

Result<bfrt_proto::ReadResponse> Client::read(bfrt_proto::ReadRequest* request) {
  if (!connection_) return fail(make_call_error(grpc::UNAVAILABLE, "there is no connection"));
  fill(request->mutable_target());
  request->set_client_id(kId);
  grpc::ClientContext context;
  context.set_deadline(in_ms(call_ms_));
  const auto reader = connection_->stub->Read(&context, *request);
  // The server answers in one message (Read() in bf_rt_server_impl.cpp).
  bfrt_proto::ReadResponse answer, more;
  const bool is_answered = reader->Read(&answer);
  const bool is_more = is_answered && reader->Read(&more);
  if (is_more) context.TryCancel();
  const auto status = reader->Finish();
  if (is_more) {
    close();
    return fail(make_call_error(grpc::DATA_LOSS, "it answers in more messages than one"));
  }
  if (status.ok()) return answer;
  return fail(error_of_call(status.error_code(), status.error_message(), status.error_details()));
}

}  // namespace slime::net::bfrt
