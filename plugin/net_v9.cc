// ncclNetPlugin_v9: NCCL 2.24 and 2.25.
#include "plugin/net_table.h"

namespace slime::plugin::table {

SLIME_EXPORT const nccl::NetV9 ncclNetPlugin_v9 = {
    .name = kName,
    .init = init_v6,
    .devices = devices_v6,
    .get_properties = get_properties<nccl::PropertiesV9>,
    .listen = listen_v6,
    .connect = connect_v7,
    .accept = accept_v7,
    .reg_mr = reg_mr<size_t>,
    .reg_mr_dma_buf = reg_mr_dma_buf,
    .dereg_mr = dereg_mr,
    .isend = isend_v6<size_t>,
    .irecv = irecv_v9,
    .iflush = iflush_v6,
    .test = test_v6,
    .close_send = close_send_v6,
    .close_recv = close_recv_v6,
    .close_listen = close_listen_v6,
    .get_device_mr = nullptr,
    .irecv_consumed = nullptr,
    .make_virtual_device = make_vdevice<nccl::VirtualDeviceV9>,
};

}  // namespace slime::plugin::table
