// ncclCollNetPlugin_v12: NCCL 2.30.
#include "plugin/collnet_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::CollNetV11<nccl::PropertiesV12, nccl::VirtualDeviceV12>
    ncclCollNetPlugin_v12 = {
        .name = kName,
        .init = coll_init_v11,
        .devices = coll_devices,
        .get_properties = coll_get_properties<nccl::PropertiesV12>,
        .listen = coll_listen_v11,
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
        .make_virtual_device = make_vdevice<nccl::VirtualDeviceV12>,
        .finalize = finalize_v11,
};

}  // namespace slime::plugin::table
