// Files of secrets. A key that others can read, or can put in the place of ours, proves nothing.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/error.h"

namespace slime {

// Reads at most room.size() bytes; as many may mean that there are more. The file, and each
// symbolic link on the way to it, must belong to root or to this user. Only its owner and its group
// may be able to read it. A group may, so that the users of a cluster can use a key that root owns.
Result<size_t> read_key_file(const std::string& path, std::span<std::byte> room);

}  // namespace slime
