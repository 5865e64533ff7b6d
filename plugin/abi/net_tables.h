// ncclNet_v6_t ... ncclNet_v12_t: the tables of functions that NCCL looks up by symbol.
// Order and types are NCCL's (src/include/plugin/net/net_v*.h); the names are ours.
//
// Versions differ in two ways, and each has its part below. NCCL changes the signatures of
// functions in the middle of the table: NetSignaturesV<n> inherits those that version n keeps and
// declares the others. NCCL also appends functions: NetTableV<n> inherits the table of the version
// before.
#pragma once

#include "plugin/abi/properties.h"

namespace slime::nccl {

// NCCL 2.13 to 2.18
struct NetSignaturesV6 {
  using Properties = PropertiesV6;
  using Init = ResultCode(Logger logger);
  using Listen = ResultCode(int device, void* handle, void** listen_comm);
  using Connect = ResultCode(int device, void* handle, void** send_comm);
  using Accept = ResultCode(void* listen_comm, void** recv_comm);
  using RegMr = ResultCode(void* comm, void* data, int bytes, int type, void** mhandle);
  using Isend = ResultCode(void* send_comm, void* data, int bytes, int tag, void* mhandle,
                           void** request);
  using Irecv = ResultCode(void* recv_comm, int n, void** data, int* sizes, int* tags,
                           void** mhandles, void** request);
};

// 2.19: connections may be offloaded to a device.
struct NetSignaturesV7 : NetSignaturesV6 {
  using Properties = PropertiesV7;
  using Connect = ResultCode(int device, void* handle, void** send_comm,
                             NetDeviceHandle** device_handle);
  using Accept = ResultCode(void* listen_comm, void** recv_comm, NetDeviceHandle** device_handle);
};

// 2.20 to 2.23: registrations may be larger than an int.
struct NetSignaturesV8 : NetSignaturesV7 {
  using Properties = PropertiesV8;
  using RegMr = ResultCode(void* comm, void* data, size_t bytes, int type, void** mhandle);
};

// 2.24 and 2.25: messages may be larger than an int, and devices can be merged.
struct NetSignaturesV9 : NetSignaturesV8 {
  using Properties = PropertiesV9;
  using Members = VirtualDeviceV9;
  using Isend = ResultCode(void* send_comm, void* data, size_t bytes, int tag, void* mhandle,
                           void** request);
  using Irecv = ResultCode(void* recv_comm, int n, void** data, size_t* sizes, int* tags,
                           void** mhandles, void** request);
};

// 2.26 and 2.27: a traffic class for the connecting end, and a profiler.
struct NetSignaturesV10 : NetSignaturesV9 {
  using Properties = PropertiesV10;
  using Init = ResultCode(Logger logger, ProfilerCallback profiler);
  using Connect = ResultCode(int device, const NetCommConfig* config, void* handle,
                             void** send_comm, NetDeviceHandle** device_handle);
  using Isend = ResultCode(void* send_comm, void* data, size_t bytes, int tag, void* mhandle,
                           void* profile, void** request);
  using Irecv = ResultCode(void* recv_comm, int n, void** data, size_t* sizes, int* tags,
                           void** mhandles, void** profiles, void** request);
};

// 2.28 and 2.29: a context for each communicator, which has the traffic class.
struct NetSignaturesV11 : NetSignaturesV10 {
  using Properties = PropertiesV11;
  using Init = ResultCode(void** context, uint64_t comm_id, const NetCommConfig* config,
                          Logger logger, ProfilerCallback profiler);
  using Listen = ResultCode(void* context, int device, void* handle, void** listen_comm);
  using Connect = ResultCode(void* context, int device, void* handle, void** send_comm,
                             NetDeviceHandle** device_handle);
};

// 2.30: merged devices have more members.
struct NetSignaturesV12 : NetSignaturesV11 {
  using Properties = PropertiesV12;
  using Members = VirtualDeviceV12;
};

template <typename Signatures>
struct NetTableV6 {
  const char* name;
  typename Signatures::Init* init;
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, typename Signatures::Properties* properties);
  typename Signatures::Listen* listen;
  typename Signatures::Connect* connect;
  typename Signatures::Accept* accept;
  typename Signatures::RegMr* reg_mr;
  ResultCode (*reg_mr_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                               int fd, void** mhandle);
  ResultCode (*dereg_mr)(void* comm, void* mhandle);
  typename Signatures::Isend* isend;
  typename Signatures::Irecv* irecv;
  ResultCode (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                       void** request);
  ResultCode (*test)(void* request, int* done, int* sizes);
  ResultCode (*close_send)(void* send_comm);
  ResultCode (*close_recv)(void* recv_comm);
  ResultCode (*close_listen)(void* listen_comm);
};

template <typename Signatures>
struct NetTableV7 : NetTableV6<Signatures> {
  ResultCode (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  ResultCode (*irecv_consumed)(void* recv_comm, int n, void* request);
};

template <typename Signatures>
struct NetTableV9 : NetTableV7<Signatures> {
  ResultCode (*make_virtual_device)(int* device, typename Signatures::Members* members);
};

template <typename Signatures>
struct NetTableV11 : NetTableV9<Signatures> {
  ResultCode (*finalize)(void* context);
  ResultCode (*set_net_attributes)(void* context, const NetAttributes* attributes);
};

using NetV6 = NetTableV6<NetSignaturesV6>;
using NetV7 = NetTableV7<NetSignaturesV7>;
using NetV8 = NetTableV7<NetSignaturesV8>;
using NetV9 = NetTableV9<NetSignaturesV9>;
using NetV10 = NetTableV9<NetSignaturesV10>;
using NetV11 = NetTableV11<NetSignaturesV11>;
using NetV12 = NetTableV11<NetSignaturesV12>;

}  // namespace slime::nccl
