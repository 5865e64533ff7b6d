// Sends and receives small control messages piece by piece.

#include <cerrno>

#include "base/net/socket.h"

namespace slime {
namespace {

std::string name_of_peer(const Fd& fd) {
  const auto peer = peer_address(fd);  // fails once the connection was reset
  return peer ? peer->to_string() : "the peer";
}

Status broken(const Fd& fd, int code, const char* operation, size_t done, size_t size,
              Error* error) {
  *error = system_error(code, "%s %s, control message, after %zu of %zu bytes", operation,
                        name_of_peer(fd).c_str(), done, size);
  return error->status;
}

}  // namespace

Status send_message(const Fd& fd, std::span<const std::byte> message, size_t* done, Error* error) {
  while (*done < message.size()) {
    const auto rest = message.subspan(*done);
    const ssize_t moved = send(fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved >= 0) {
      *done += static_cast<size_t>(moved);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Status::kAgain;
    } else if (errno != EINTR) {
      return broken(fd, errno, "send to", *done, message.size(), error);
    }
  }
  return Status::kOk;
}

Status receive_message(const Fd& fd, std::span<std::byte> message, size_t* done, Error* error) {
  while (*done < message.size()) {
    const auto rest = message.subspan(*done);
    const ssize_t moved = recv(fd.get(), rest.data(), rest.size(), MSG_DONTWAIT);
    if (moved > 0) {
      *done += static_cast<size_t>(moved);
    } else if (moved == 0) {
      *error = make_error(Status::kRemote, 0,
                          "%s closed the connection after %zu of %zu bytes of a control message",
                          name_of_peer(fd).c_str(), *done, message.size());
      return Status::kRemote;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Status::kAgain;
    } else if (errno != EINTR) {
      return broken(fd, errno, "receive from", *done, message.size(), error);
    }
  }
  return Status::kOk;
}

}  // namespace slime
