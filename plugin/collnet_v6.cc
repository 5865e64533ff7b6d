// ncclCollNetPlugin_v6: NCCL 2.13 to 2.18.
#include "plugin/collnet_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::CollNetV6<nccl::PropertiesV6> ncclCollNetPlugin_v6 = {
    .name = kName,
    .init = init_v6,
    .devices = coll_devices,
    .get_properties = coll_get_properties<nccl::PropertiesV6>,
    .listen = coll_listen_v6,
    .connect = coll_connect,
    .reduce_support = coll_reduce_support,
    .reg_mr = coll_reg_mr<int>,
    .reg_mr_dma_buf = coll_reg_mr_dma_buf,
    .dereg_mr = coll_dereg_mr,
    .iallreduce = coll_iallreduce<int>,
    .iflush = coll_iflush,
    .test = coll_test,
    .close_coll = coll_close,
    .close_listen = coll_close_listen,
};

}  // namespace slime::plugin::table
