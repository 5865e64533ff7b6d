// What a tcp channel says when it fails: where, what was under way, the exact code, what to try.
#include <cerrno>
#include <cinttypes>
#include <utility>

#include "transports/channel_common.h"
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

Error TcpChannel::work_error(const Work& work) const {
  return make_error(Status::kInvalid, 0,
                    "%s: a work of %u bytes at %p is not inside memory registered with key "
                    "0x%" PRIx64 ", or longer than %" PRIu64 "; nothing was sent",
                    where().c_str(), work.length, static_cast<const void*>(work.local),
                    work.local_key, rail_.caps().max_message_bytes);
}

Error TcpChannel::socket_error(const char* doing, int code) const {
  return system_error(code, "%s: %s failed%s (%s)", where().c_str(), doing,
                      undelivered_works().c_str(), advice(code));
}

Error TcpChannel::ack_error() const {
  return make_error(Status::kRemote, 0,
                    "%s: the peer acknowledged work %u, which was not sent (%zu are outstanding); "
                    "the stream is damaged: use the same libnet-slime on all hosts",
                    where().c_str(), reader_.peer_ack(), queue_.outstanding());
}

std::string TcpChannel::refusal_note() const {
  return where() +
         ": refused a work of the peer: its memory here is not registered, or not for that; do not "
         "deregister memory that the peer may still use; later refusals are only counted "
         "(refused)";
}

Error TcpChannel::too_many_refusals() const {
  return make_error(
      Status::kRemote, 0,
      "%s: refused %" PRIu64
      " works of the peer, too many in too short a time: its memory here is not "
      "registered, or not for that; do not deregister memory that the peer still uses",
      where().c_str(), queue_.control().refused());
}

std::string TcpChannel::undelivered_works() const {
  return undelivered(queue_.outstanding() + reads_.outstanding());
}

Error TcpChannel::read_error() const {
  const ReadFault& fault = reader_.fault();
  if (fault.kind == ReadFault::Kind::kEnded) {
    return make_error(Status::kRemote, 0,
                      "%s: the peer closed the connection%s%s; its process ended or closed: look "
                      "at its log first",
                      where().c_str(), reader_.mid_frame() ? " in the middle of a work" : "",
                      undelivered_works().c_str());
  }
  if (fault.kind == ReadFault::Kind::kTooManyRefusals) return too_many_refusals();
  if (fault.kind == ReadFault::Kind::kSocket) return socket_error("receiving", fault.code);
  return frame_error();
}

Error TcpChannel::frame_error() const {
  const FrameHeader& header = reader_.header();
  const ReadFault::Kind kind = reader_.fault().kind;
  const char* const what =
      kind == ReadFault::Kind::kTooLong        ? "a work longer than a work may be"
      : kind == ReadFault::Kind::kTooManyReads ? "more reads than may be outstanding"
      : kind == ReadFault::Kind::kNotOfOurs    ? "an answer to a work that is not outstanding"
      : kind == ReadFault::Kind::kNoRight      ? "a work for memory that peers may not write into"
      : kind == ReadFault::Kind::kUnknownKey   ? "a work for memory that is not registered"
      : kind == ReadFault::Kind::kOutOfBounds  ? "a work outside of the registered memory"
                                               : "not a frame";
  return make_error(Status::kRemote, 0,
                    "%s: the peer sent %s: magic 0x%x type %u flags 0x%x, %u bytes to address "
                    "0x%" PRIx64 " with key 0x%" PRIx64
                    ", immediate 0x%x; nothing more is "
                    "written; if both hosts run the same libnet-slime, report it",
                    where().c_str(), what, header.magic, header.type, header.flags, header.length,
                    header.remote_address, header.remote_key, header.immediate);
}

}  // namespace slime::tcp
