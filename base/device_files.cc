#include "base/device_files.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <new>
#include <string_view>
#include <vector>

#include "base/machine/sysfs.h"
#include "base/text.h"

namespace slime {
namespace {

// The events of an RDMA device (linux/drivers/infiniband/core/uverbs_main.c).
constexpr std::string_view kEvents = "anon_inode:[infinibandevent]";

// Never destroyed: a thread may fork while the process ends.
struct State {
  std::recursive_mutex mutex;  // held while a thread forks, and in a handler of its signals
  std::vector<std::string> files;
  std::vector<int> descriptors;  // of the files, for the child that is being made
};
State& state() {
  static auto* const instance = new State;
  return *instance;
}

// A line of /proc/self/maps: "7f0000000000-7f0000001000 rw-s 00000000 00:05 42    /dev/file".
void keep_mapping(std::string_view line) {
  const size_t dash = line.find('-'), space = line.find(' ');
  if (dash >= space || space == line.npos) return;
  const auto from = parse_whole<uintptr_t>(line.substr(0, dash), 16);
  const auto to = parse_whole<uintptr_t>(line.substr(dash + 1, space - dash - 1), 16);
  if (!from || !to || *to <= *from) return;
  (void)madvise(reinterpret_cast<void*>(*from), *to - *from, MADV_DONTFORK);
}

void keep_mappings(const std::vector<std::string>& files) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto is_of = [&](const std::string& file) {
      return line.ends_with(file) && line[line.size() - file.size() - 1] == ' ';
    };
    if (std::ranges::any_of(files, is_of)) keep_mapping(line);
  }
}

bool is_kept(std::string_view file, const std::vector<std::string>& files) {
  return file == kEvents || std::ranges::find(files, file) != files.end();
}

std::vector<int> descriptors_of(const std::vector<std::string>& files) {
  std::vector<int> found;
  std::error_code failed;
  std::filesystem::directory_iterator entry("/proc/self/fd", failed);
  for (; !failed && entry != std::filesystem::end(entry); entry.increment(failed)) {
    std::error_code gone;  // closed by another thread
    const auto file = std::filesystem::read_symlink(entry->path(), gone);
    if (gone || !is_kept(file.native(), files)) continue;
    if (const auto fd = parse_whole<int>(entry->path().filename().native())) found.push_back(*fd);
  }
  return found;
}

void before_fork() {
  State& now = state();
  now.mutex.lock();
  keep_mappings(now.files);
  now.descriptors = descriptors_of(now.files);
}

void in_parent() { state().mutex.unlock(); }

// Another thread of the parent may have closed one since, and opened another file there.
void in_child() {
  State& now = state();
  char path[32], file[PATH_MAX];
  for (const int fd : now.descriptors) {
    (void)std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t bytes = readlink(path, file, sizeof file);
    if (bytes > 0 && is_kept({file, static_cast<size_t>(bytes)}, now.files)) (void)close(fd);
  }
  new (&now.mutex) std::recursive_mutex;  // its owner was a thread of the parent
}

}  // namespace

void keep_from_children(const std::string& device_file) {
  if (device_file.empty()) return;
  State& now = state();
  const std::lock_guard lock(now.mutex);
  if (std::ranges::find(now.files, device_file) != now.files.end()) return;
  // It fails only for want of memory; peers then notice later.
  if (now.files.empty()) (void)pthread_atfork(before_fork, in_parent, in_child);
  now.files.push_back(device_file);
}

std::string rdma_device_file(const std::string& device, const std::string& sysfs_root) {
  std::error_code failed;
  std::filesystem::directory_iterator entry(sysfs_root + "/class/infiniband_verbs", failed);
  for (; !failed && entry != std::filesystem::end(entry); entry.increment(failed)) {
    const auto name = read_line(entry->path().native() + "/ibdev");
    if (name && *name == device) return "/dev/infiniband/" + entry->path().filename().native();
  }
  return "";
}

}  // namespace slime
