// Sends and receives small control messages piece by piece.

#include <cerrno>

#include "base/net/socket.h"

namespace slime {
namespace {

std::string name_of_peer(const Fd& fd) {
  const auto peer = peer_address(fd);  // fails once the connection was reset
  return peer ? peer->to_string() : "the peer";
}

// Calls `move` for the rest of the message until all of it has passed. `move` returns what send(2)
// and recv(2) return.
template <typename Byte, typename Move>
Status move_all(const Fd& fd, std::span<Byte> message, size_t* done, const char* operation,
                Error* error, Move move) {
  while (*done < message.size()) {
    const ssize_t moved = move(message.subspan(*done));
    if (moved > 0) {
      *done += static_cast<size_t>(moved);
    } else if (moved == 0) {
      *error = make_error(Status::kRemote, 0,
                          "%s closed the connection after %zu of %zu bytes of a control message",
                          name_of_peer(fd).c_str(), *done, message.size());
      return Status::kRemote;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Status::kAgain;
    } else if (const int code = errno; code != EINTR) {
      *error = system_error(code, "%s %s, control message, after %zu of %zu bytes", operation,
                            name_of_peer(fd).c_str(), *done, message.size());
      return error->status;
    }
  }
  return Status::kOk;
}

}  // namespace

Status send_message(const Fd& fd, std::span<const std::byte> message, size_t* done, Error* error) {
  return move_all(fd, message, done, "send to", error, [&](auto rest) {
    return send(fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

Status receive_message(const Fd& fd, std::span<std::byte> message, size_t* done, Error* error) {
  return move_all(fd, message, done, "receive from", error, [&](auto rest) {
    return recv(fd.get(), rest.data(), rest.size(), MSG_DONTWAIT);
  });
}

}  // namespace slime
