// ncclCollNetPlugin_v10: NCCL 2.26 and 2.27.
#include "plugin/collnet_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::CollNetV9 ncclCollNetPlugin_v10 = {
    .name = kName,
    .init = init_v6,
    .devices = coll_devices,
    .get_properties = coll_get_properties<nccl::PropertiesV10>,
    .listen = coll_listen_v6,
    .connect = coll_connect,
    .reduce_support = coll_reduce_support,
    .reg_mr = coll_reg_mr<size_t>,
    .reg_mr_dma_buf = coll_reg_mr_dma_buf,
    .dereg_mr = coll_dereg_mr,
    .iallreduce = coll_iallreduce<size_t>,
    .iallgather = nullptr,
    .ireducescatter = nullptr,
    .iflush = coll_iflush,
    .test = coll_test,
    .close_coll = coll_close,
    .close_listen = coll_close_listen,
    .make_virtual_device = make_vdevice<nccl::VirtualDeviceV9>,
};

}  // namespace slime::plugin::table
