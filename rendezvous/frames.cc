#include "rendezvous/frames.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace slime::rendezvous {

std::string text_in(const nlohmann::json& body, const char* key) {
  if (!body.is_object()) return "";
  const auto found = body.find(key);
  return found != body.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t number_in(const nlohmann::json& body, const char* key, int64_t missing) {
  if (!body.is_object()) return missing;
  const auto found = body.find(key);
  return found != body.end() && found->is_number_integer() ? found->get<int64_t>() : missing;
}

nlohmann::json texts_of(const nlohmann::json& list) {
  nlohmann::json texts = nlohmann::json::array();
  if (!list.is_array()) return texts;
  for (const auto& one : list) {
    if (one.is_string()) texts.push_back(displayed(one.get_ref<const std::string&>()));
  }
  return texts;
}

bool Connection::fail_with(std::string why) {
  if (why_.empty()) why_ = std::move(why);
  return false;
}

void Connection::queue(FrameType type, const nlohmann::json& body) {
  // Texts come from plugins and host names: bad UTF-8 is replaced, not thrown at us.
  const std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const FrameHeader header{kFrameMagic, static_cast<uint32_t>(type),
                           static_cast<uint32_t>(text.size())};
  out_.append(reinterpret_cast<const char*>(&header), sizeof header);
  out_.append(text);
}

bool Connection::flush() {
  while (has_output()) {
    const ssize_t sent =
        send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent < 0) return fail_with(strerror(errno));
    sent_ += static_cast<size_t>(sent);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

bool Connection::receive(std::vector<Frame>* frames) {
  char chunk[65536];
  for (;;) {
    const ssize_t got = recv(fd_.get(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got < 0) return fail_with(strerror(errno));
    if (got == 0) return fail_with("its control connection ended");
    in_.append(chunk, static_cast<size_t>(got));
    if (!parse(frames)) return false;
    if (!frames->empty())
      return true;  // a peer that sends without end must not keep the others waiting
  }
}

bool Connection::parse(std::vector<Frame>* frames) {
  size_t start = 0;
  while (in_.size() - start >= sizeof(FrameHeader)) {
    FrameHeader header;
    std::memcpy(&header, in_.data() + start, sizeof header);
    if (header.magic != kFrameMagic || header.type < static_cast<uint32_t>(FrameType::kPart) ||
        header.type > static_cast<uint32_t>(FrameType::kFarewell)) {
      return fail_with("it does not speak slime-perf's control protocol");
    }
    if (header.bytes > limits_.bytes) return fail_with("it sent an oversized control message");
    if (in_.size() - start - sizeof header < header.bytes) break;
    auto body = parse_json<nlohmann::json>({in_.data() + start + sizeof header, header.bytes},
                                           "it sent a malformed control message", limits_);
    if (!body) return fail_with(std::move(body.error().what));
    frames->push_back({static_cast<FrameType>(header.type), std::move(*body)});
    start += sizeof header + header.bytes;
  }
  in_.erase(0, start);
  return true;
}

}  // namespace slime::rendezvous
