// ncclNetPlugin_v6: NCCL 2.13 to 2.18.
#include "plugin/net_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::NetV6 ncclNetPlugin_v6 = {
    .name = kName,
    .init = init_v6,
    .devices = devices_v6,
    .get_properties = get_properties<nccl::PropertiesV6>,
    .listen = listen_v6,
    .connect = connect_v6,
    .accept = accept_v6,
    .reg_mr = reg_mr<int>,
    .reg_mr_dma_buf = reg_mr_dma_buf,
    .dereg_mr = dereg_mr,
    .isend = isend_v6<int>,
    .irecv = irecv_v6,
    .iflush = iflush_v6,
    .test = test_v6,
    .close_send = close_send_v6,
    .close_recv = close_recv_v6,
    .close_listen = close_listen_v6,
};

}  // namespace slime::plugin::table
