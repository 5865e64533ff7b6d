// Device files, such as /dev/infiniband/uverbs0, that this process has open or mapped. While a
// child of fork(2) has a copy of either, the kernel keeps the objects of the device that belong to
// it: the queue pairs of a rank that was killed would go on acknowledging.
//
// A handler of fork(2) finds both in /proc, as the libraries that open such files do not say which
// they are: the child gets no mapping (madvise(2), MADV_DONTFORK) and closes the descriptors. Those
// of other libraries in the process are among them; no child can use them, see ibv_fork_init(3).
//
// Threads: any. What another thread opens or maps while one forks may get into the child, and what
// it maps in that moment where it has just unmapped a device may not. Without /proc nothing is
// kept.
#pragma once

#include <string>

namespace slime {

// From now on, for good. Empty: nothing.
void keep_from_children(const std::string& device_file);
// The device file of an RDMA device: "/dev/infiniband/uverbs0" for "mlx5_0". Empty: /sys knows no
// RDMA device of this name.
std::string rdma_device_file(const std::string& device, const std::string& sysfs_root);

}  // namespace slime
