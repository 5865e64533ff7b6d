#include "base/key_file.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/net/socket.h"

namespace slime {
namespace {

constexpr int kMostParts = 256;  // of a path, with those of the links in it

// `link`: the symbolic link that is looked at; empty: the file itself.
Result<void> check_owner(const std::string& path, const std::string& link, uid_t owner) {
  if (owner == 0 || owner == geteuid()) return {};
  const std::string what = link.empty() ? "" : ": the link " + link + " on the way to it";
  return fail(Status::kConfig,
              "key file %s%s belongs to user %u, who can change it: chown %s%u %s, after a look at "
              "who made it (what root or one's own user has made is taken)",
              path.c_str(), what.c_str(), owner, link.empty() ? "" : "-h ", geteuid(),
              link.empty() ? path.c_str() : link.c_str());
}

Result<void> check_private(const std::string& path, const struct stat& status) {
  const char* const name = path.c_str();
  if (auto owned = check_owner(path, "", status.st_uid); !owned) return owned;
  if ((status.st_mode & (S_IWGRP | S_IRWXO)) == 0) return {};
  return fail(Status::kConfig,
              "key file %s has mode %03o, so that others can %s it: chmod 640 %s, or 600 where no "
              "group needs it, and make a new key if strangers had access",
              name, status.st_mode & 0777,
              (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "change" : "read", name);
}

// Takes the first part off a path.
std::string next_part(std::string* path) {
  path->erase(0, path->find_first_not_of('/'));
  const std::string part = path->substr(0, path->find('/'));
  path->erase(0, part.size());
  return part;
}

// As open(2) does, but one part of the path after the other, so that the links that are looked at
// are those that are followed: the owner of a link chooses the key, and anybody can make one in
// /tmp. Links of root are sound: Kubernetes mounts secrets so.
Result<Fd> open_by_owned_links(const std::string& path) {
  constexpr int kLook = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  // O_NONBLOCK: a pipe of that name must not make us wait.
  constexpr int kRead = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  std::string left = path;
  Fd at;
  for (int i = 0; i < kMostParts; ++i) {
    if (left.starts_with('/') || !at) at = Fd(open(left.starts_with('/') ? "/" : ".", kLook));
    const std::string part = next_part(&left);
    Fd found(openat(at.get(), part.c_str(), kLook));
    struct stat status {};
    if (!found || fstat(found.get(), &status) != 0) break;
    if (S_ISLNK(status.st_mode)) {
      if (auto owned = check_owner(path, part, status.st_uid); !owned) return fail(owned.error());
      char target[PATH_MAX];
      const ssize_t bytes = readlinkat(found.get(), "", target, sizeof target);
      if (bytes <= 0) break;
      left.insert(0, target, static_cast<size_t>(bytes));
    } else if (left.find_first_not_of('/') == std::string::npos) {
      Fd file(openat(at.get(), part.c_str(), kRead));
      if (!file) break;
      return file;
    } else {
      at = std::move(found);
      left.erase(0, left.find_first_not_of('/'));  // the rest is relative to it
    }
    errno = ELOOP;
  }
  return fail(system_error(errno, "open key file %s", path.c_str()));
}

}  // namespace

Result<size_t> read_key_file(const std::string& path, std::span<std::byte> room) {
  const auto file = open_by_owned_links(path);
  if (!file) return fail(file.error());
  struct stat status {};
  int code = fstat(file->get(), &status) == 0 ? (S_ISREG(status.st_mode) ? 0 : EINVAL) : errno;
  if (code == 0) {
    if (auto sound = check_private(path, status); !sound) return fail(std::move(sound.error()));
  }
  size_t got = 0;
  while (code == 0 && got < room.size()) {
    const ssize_t moved = read(file->get(), room.data() + got, room.size() - got);
    if (moved == 0) break;
    if (moved > 0) got += static_cast<size_t>(moved);
    if (moved < 0 && errno != EINTR) code = errno;
  }
  if (code == 0) return got;
  return fail(system_error(code, "read key file %s (must be a regular file)", path.c_str()));
}

}  // namespace slime
