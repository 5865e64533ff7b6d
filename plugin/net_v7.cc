// ncclNetPlugin_v7: NCCL 2.19.
#include "plugin/net_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::NetV7 ncclNetPlugin_v7 = {
    .name = kName,
    .init = init_v6,
    .devices = devices_v6,
    .get_properties = get_properties<nccl::PropertiesV7>,
    .listen = listen_v6,
    .connect = connect_v7,
    .accept = accept_v7,
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
    .get_device_mr = nullptr,
    .irecv_consumed = nullptr,
};

}  // namespace slime::plugin::table
