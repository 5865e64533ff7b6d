// What a tcp channel says when it fails: where, what was under way, the exact code, what to try.
#include <cerrno>
#include <cinttypes>
#include <utility>

#include "transports/tcp/channel.h"
#include "transports/tcp/rail.h"

namespace slime::tcp {

namespace {

const char* advice(int code) {
  switch (code) {
    case ECONNRESET:
    case EPIPE:
      return "the peer process ended or closed the connection; look at its log first";
    case ETIMEDOUT:
      return "the peer's host or the network between is silent (NCCL_SLIME_PEER_TIMEOUT); check "
             "that the host is up and the link is not";
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
      return "the network between is broken; check the interface, cable and routes";
    case ENOBUFS:
    case ENOMEM:
      return "the kernel has no memory for sockets; raise net.ipv4.tcp_mem, or lower "
             "NCCL_SLIME_SOCKET_BUFFER";
    case EFAULT:
      return "the memory was unmapped while it was registered; deregister it first";
    default:
      return "look at the peer's log and at the kernel's on both hosts";
  }
}

}  // namespace

std::string TcpChannel::where() const {
  return "rail " + rail_.caps().name + " (" + rail_.local().host() + ") to " + peer_name();
}

std::string TcpChannel::peer_name() const { return peer_.address.to_string(); }

void TcpChannel::fail_with(Error error, State state) {
  if (state_ < State::kBroken) failure_ = std::move(error);
  state_ = state;
  if (state == State::kFailed) hang_up();
}

Error TcpChannel::timeout_error() const {
  const char* doing = options_.active ? "no answer" : "the peer has not connected";
  const std::string last = !options_.active ? rail_.acceptor().summary_of_strangers()
                           : dialer_->last_failure().empty() ? ""
                                                             : "; last: " + dialer_->last_failure();
  return make_error(Status::kTimeout, ETIMEDOUT,
                    "%s: %s within %g s (NCCL_SLIME_CONNECT_TIMEOUT) at address %s%s; check that "
                    "the peer process lives and that no firewall stops TCP between the hosts",
                    where().c_str(), doing, rail_.settings().connect_timeout,
                    (options_.active ? peer_ : own_).address.to_string().c_str(), last.c_str());
}

Error TcpChannel::work_error(const Work& work) const {
  return make_error(Status::kInvalid, 0,
                    "%s: a work of %u bytes at %p is not inside memory registered with key "
                    "0x%" PRIx64 ", or longer than %" PRIu64 "; nothing was sent",
                    where().c_str(), work.length, static_cast<const void*>(work.local),
                    work.local_key, rail_.caps().max_message_bytes);
}

Error TcpChannel::send_error(int code) const {
  Error error = system_error(code, "%s: sending failed with %zu works not delivered (%s)",
                             where().c_str(), queue_.outstanding(), advice(code));
  error.status = status_of_errno(code);
  return error;
}

Error TcpChannel::ack_error() const {
  return make_error(Status::kRemote, 0,
                    "%s: the peer acknowledged work %u, which was not sent (%zu are outstanding); "
                    "the stream is damaged: use the same libnet-slime on all hosts",
                    where().c_str(), reader_.peer_ack(), queue_.outstanding());
}

Error TcpChannel::read_error() const {
  const ReadFault& fault = reader_.fault();
  if (fault.kind == ReadFault::Kind::kEnded) {
    return make_error(Status::kRemote, 0,
                      "%s: the peer closed the connection%s, with %zu of our works not delivered; "
                      "its process ended or closed: look at its log first",
                      where().c_str(), reader_.mid_frame() ? " in the middle of a work" : "",
                      queue_.outstanding());
  }
  if (fault.kind == ReadFault::Kind::kSocket) {
    Error error = system_error(fault.code, "%s: receiving failed with %zu works not delivered (%s)",
                               where().c_str(), queue_.outstanding(), advice(fault.code));
    error.status = status_of_errno(fault.code);
    return error;
  }
  return frame_error();
}

Error TcpChannel::frame_error() const {
  const FrameHeader& header = reader_.header();
  const char* what = "not a frame";
  switch (reader_.fault().kind) {
    case ReadFault::Kind::kTooLong:
      what = "a work longer than a work may be";
      break;
    case ReadFault::Kind::kUnknownKey:
      what = "a work for memory that is not registered";
      break;
    case ReadFault::Kind::kOutOfBounds:
      what = "a work outside of the registered memory";
      break;
    default:
      break;
  }
  return make_error(Status::kRemote, 0,
                    "%s: the peer sent %s: magic 0x%x type %u flags 0x%x, %u bytes to address "
                    "0x%" PRIx64 " with key 0x%" PRIx64
                    ", immediate 0x%x; nothing more is "
                    "written; if both hosts run the same libnet-slime, report it",
                    where().c_str(), what, header.magic, header.type, header.flags, header.length,
                    header.remote_address, header.remote_key, header.immediate);
}

}  // namespace slime::tcp
