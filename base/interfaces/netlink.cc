#include "base/interfaces/netlink.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/fd.h"

namespace slime::netlink {
namespace {

constexpr size_t kAnswerBytes = 64 << 10;  // the kernel sends 32 KiB at most at once
constexpr timeval kPatience = {1, 0};

enum class Part : uint8_t { kMore, kLast, kRefusal };

Part visit_part(const char* part, size_t bytes, const std::function<void(const nlmsghdr&)>& visit) {
  const auto* header = reinterpret_cast<const nlmsghdr*>(part);
  auto left = static_cast<int>(bytes);
  bool several = false;
  for (; left > 0 && NLMSG_OK(header, static_cast<unsigned>(left));
       header = NLMSG_NEXT(header, left)) {
    if (header->nlmsg_type == NLMSG_ERROR) return Part::kRefusal;
    if (header->nlmsg_type == NLMSG_DONE) return Part::kLast;
    several |= (header->nlmsg_flags & NLM_F_MULTI) != 0;
    visit(*header);
  }
  return several ? Part::kMore : Part::kLast;
}

}  // namespace

bool ask(std::span<const std::byte> question, const std::function<void(const nlmsghdr&)>& visit) {
  const Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd) return false;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const auto* const to = reinterpret_cast<const sockaddr*>(&kernel);
  if (::sendto(fd.get(), question.data(), question.size(), 0, to, sizeof kernel) < 0) return false;
  const auto answer = std::make_unique<char[]>(kAnswerBytes);
  for (;;) {
    sockaddr_nl from{};
    socklen_t size = sizeof from;
    const ssize_t bytes = ::recvfrom(fd.get(), answer.get(), kAnswerBytes, 0,
                                     reinterpret_cast<sockaddr*>(&from), &size);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return false;
    if (from.nl_pid != 0) continue;  // not of the kernel
    const Part part = visit_part(answer.get(), static_cast<size_t>(bytes), visit);
    if (part != Part::kMore) return part == Part::kLast;
  }
}

bool ask_links(unsigned index, const std::function<void(unsigned, const rtattr*, int)>& visit) {
  struct {
    nlmsghdr header{};
    ifinfomsg info{};
  } question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = RTM_GETLINK;
  question.header.nlmsg_flags =
      static_cast<uint16_t>(NLM_F_REQUEST | (index == 0 ? NLM_F_DUMP : 0));
  question.info.ifi_index = static_cast<int>(index);
  return ask(std::as_bytes(std::span(&question, 1)), [&](const nlmsghdr& header) {
    if (header.nlmsg_type != RTM_NEWLINK) return;
    if (header.nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg))) return;
    const auto* const info = static_cast<const ifinfomsg*>(NLMSG_DATA(&header));
    visit(static_cast<unsigned>(info->ifi_index), IFLA_RTA(info),
          static_cast<int>(IFLA_PAYLOAD(&header)));
  });
}

void for_each_attribute(const rtattr* attribute, int bytes,
                        const std::function<void(unsigned, std::string_view)>& visit) {
  for (; RTA_OK(attribute, bytes); attribute = RTA_NEXT(attribute, bytes)) {
    const auto* const data = static_cast<const char*>(RTA_DATA(attribute));
    visit(attribute->rta_type & NLA_TYPE_MASK, std::string_view(data, RTA_PAYLOAD(attribute)));
  }
}

std::string text_of(std::string_view data) {
  return {data.data(), strnlen(data.data(), data.size())};
}

uint32_t number_of(std::string_view data) {
  uint32_t number = 0;
  if (data.size() == sizeof number) std::memcpy(&number, data.data(), sizeof number);
  return number;
}

}  // namespace slime::netlink
