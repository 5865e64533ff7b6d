// ncclCollNetPlugin_v8: NCCL 2.20 to 2.23.
#include "plugin/collnet_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::CollNetV8 ncclCollNetPlugin_v8 = {
    .name = kName,
    .init = init_v6,
    .devices = coll_devices,
    .get_properties = coll_get_properties<nccl::PropertiesV8>,
    .listen = coll_listen_v6,
    .connect = coll_connect,
    .reduce_support = coll_reduce_support,
    .reg_mr = coll_reg_mr<size_t>,
    .reg_mr_dma_buf = coll_reg_mr_dma_buf,
    .dereg_mr = coll_dereg_mr,
    .iallreduce = coll_iallreduce<int>,
    .iallgather = nullptr,
    .ireducescatter = nullptr,
    .iflush = coll_iflush,
    .test = coll_test,
    .close_coll = coll_close,
    .close_listen = coll_close_listen,
};

}  // namespace slime::plugin::table
