// Questions to the kernel about interfaces and routes, by rtnetlink(7).
//
// Threads: any. A question waits for a second at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

struct nlmsghdr;  // <linux/netlink.h>, which headers of base/ do not use
struct rtattr;    // <linux/rtnetlink.h>

namespace slime::netlink {

// Sends a message, and visits those of the answer. False: the kernel refuses, or does not answer;
// some messages may have been visited.
bool ask(std::span<const std::byte> question, const std::function<void(const nlmsghdr&)>& visit);

// The same about one interface, or with index 0 about all: visit(index, its attributes, their
// bytes).
bool ask_links(unsigned index, const std::function<void(unsigned, const rtattr*, int)>& visit);

// visit(type, data) for the attributes in these bytes.
void for_each_attribute(const rtattr* attribute, int bytes,
                        const std::function<void(unsigned type, std::string_view data)>& visit);
std::string text_of(std::string_view data);
uint32_t number_of(std::string_view data);  // 0 if the data is not a number of 32 bits

}  // namespace slime::netlink
