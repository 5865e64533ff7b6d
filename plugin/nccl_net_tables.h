// ncclNet_v6_t ... ncclNet_v12_t: the tables of functions that NCCL looks up by symbol.
// Order and types are NCCL's (src/include/plugin/net/net_v*.h); the names are ours.
#pragma once

#include "plugin/nccl_properties.h"

namespace slime::nccl {

struct NetV6 {
  const char* name;
  ResultCode (*init)(Logger logger);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, PropertiesV6* properties);
  ResultCode (*listen)(int device, void* handle, void** listen_comm);
  ResultCode (*connect)(int device, void* handle, void** send_comm);
  ResultCode (*accept)(void* listen_comm, void** recv_comm);
  ResultCode (*reg_mr)(void* comm, void* data, int bytes, int type, void** mhandle);
  ResultCode (*reg_mr_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                               int fd, void** mhandle);
  ResultCode (*dereg_mr)(void* comm, void* mhandle);
  ResultCode (*isend)(void* send_comm, void* data, int bytes, int tag, void* mhandle,
                      void** request);
  ResultCode (*irecv)(void* recv_comm, int n, void** data, int* sizes, int* tags, void** mhandles,
                      void** request);
  ResultCode (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                       void** request);
  ResultCode (*test)(void* request, int* done, int* sizes);
  ResultCode (*close_send)(void* send_comm);
  ResultCode (*close_recv)(void* recv_comm);
  ResultCode (*close_listen)(void* listen_comm);
};

struct NetV7 {
  const char* name;
  ResultCode (*init)(Logger logger);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, PropertiesV7* properties);
  ResultCode (*listen)(int device, void* handle, void** listen_comm);
  ResultCode (*connect)(int device, void* handle, void** send_comm,
                        NetDeviceHandle** device_handle);
  ResultCode (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** device_handle);
  ResultCode (*reg_mr)(void* comm, void* data, int bytes, int type, void** mhandle);
  ResultCode (*reg_mr_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                               int fd, void** mhandle);
  ResultCode (*dereg_mr)(void* comm, void* mhandle);
  ResultCode (*isend)(void* send_comm, void* data, int bytes, int tag, void* mhandle,
                      void** request);
  ResultCode (*irecv)(void* recv_comm, int n, void** data, int* sizes, int* tags, void** mhandles,
                      void** request);
  ResultCode (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                       void** request);
  ResultCode (*test)(void* request, int* done, int* sizes);
  ResultCode (*close_send)(void* send_comm);
  ResultCode (*close_recv)(void* recv_comm);
  ResultCode (*close_listen)(void* listen_comm);
  ResultCode (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  ResultCode (*irecv_consumed)(void* recv_comm, int n, void* request);
};

struct NetV8 {
  const char* name;
  ResultCode (*init)(Logger logger);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, PropertiesV8* properties);
  ResultCode (*listen)(int device, void* handle, void** listen_comm);
  ResultCode (*connect)(int device, void* handle, void** send_comm,
                        NetDeviceHandle** device_handle);
  ResultCode (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** device_handle);
  ResultCode (*reg_mr)(void* comm, void* data, size_t bytes, int type, void** mhandle);
  ResultCode (*reg_mr_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                               int fd, void** mhandle);
  ResultCode (*dereg_mr)(void* comm, void* mhandle);
  ResultCode (*isend)(void* send_comm, void* data, int bytes, int tag, void* mhandle,
                      void** request);
  ResultCode (*irecv)(void* recv_comm, int n, void** data, int* sizes, int* tags, void** mhandles,
                      void** request);
  ResultCode (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                       void** request);
  ResultCode (*test)(void* request, int* done, int* sizes);
  ResultCode (*close_send)(void* send_comm);
  ResultCode (*close_recv)(void* recv_comm);
  ResultCode (*close_listen)(void* listen_comm);
  ResultCode (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  ResultCode (*irecv_consumed)(void* recv_comm, int n, void* request);
};

struct NetV9 {
  const char* name;
  ResultCode (*init)(Logger logger);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, PropertiesV9* properties);
  ResultCode (*listen)(int device, void* handle, void** listen_comm);
  ResultCode (*connect)(int device, void* handle, void** send_comm,
                        NetDeviceHandle** device_handle);
  ResultCode (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** device_handle);
  ResultCode (*reg_mr)(void* comm, void* data, size_t bytes, int type, void** mhandle);
  ResultCode (*reg_mr_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                               int fd, void** mhandle);
  ResultCode (*dereg_mr)(void* comm, void* mhandle);
  ResultCode (*isend)(void* send_comm, void* data, size_t bytes, int tag, void* mhandle,
                      void** request);
  ResultCode (*irecv)(void* recv_comm, int n, void** data, size_t* sizes, int* tags,
                      void** mhandles, void** request);
  ResultCode (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                       void** request);
  ResultCode (*test)(void* request, int* done, int* sizes);
  ResultCode (*close_send)(void* send_comm);
  ResultCode (*close_recv)(void* recv_comm);
  ResultCode (*close_listen)(void* listen_comm);
  ResultCode (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  ResultCode (*irecv_consumed)(void* recv_comm, int n, void* request);
  ResultCode (*make_virtual_device)(int* device, VirtualDeviceV9* members);
};

struct NetV10 {
  const char* name;
  ResultCode (*init)(Logger logger, ProfilerCallback profiler);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, PropertiesV10* properties);
  ResultCode (*listen)(int device, void* handle, void** listen_comm);
  ResultCode (*connect)(int device, const NetCommConfig* config, void* handle, void** send_comm,
                        NetDeviceHandle** device_handle);
  ResultCode (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** device_handle);
  ResultCode (*reg_mr)(void* comm, void* data, size_t bytes, int type, void** mhandle);
  ResultCode (*reg_mr_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                               int fd, void** mhandle);
  ResultCode (*dereg_mr)(void* comm, void* mhandle);
  ResultCode (*isend)(void* send_comm, void* data, size_t bytes, int tag, void* mhandle,
                      void* profile, void** request);
  ResultCode (*irecv)(void* recv_comm, int n, void** data, size_t* sizes, int* tags,
                      void** mhandles, void** profiles, void** request);
  ResultCode (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                       void** request);
  ResultCode (*test)(void* request, int* done, int* sizes);
  ResultCode (*close_send)(void* send_comm);
  ResultCode (*close_recv)(void* recv_comm);
  ResultCode (*close_listen)(void* listen_comm);
  ResultCode (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  ResultCode (*irecv_consumed)(void* recv_comm, int n, void* request);
  ResultCode (*make_virtual_device)(int* device, VirtualDeviceV9* members);
};

struct NetV11 {
  const char* name;
  ResultCode (*init)(void** context, uint64_t comm_id, const NetCommConfig* config, Logger logger,
                     ProfilerCallback profiler);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, PropertiesV11* properties);
  ResultCode (*listen)(void* context, int device, void* handle, void** listen_comm);
  ResultCode (*connect)(void* context, int device, void* handle, void** send_comm,
                        NetDeviceHandle** device_handle);
  ResultCode (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** device_handle);
  ResultCode (*reg_mr)(void* comm, void* data, size_t bytes, int type, void** mhandle);
  ResultCode (*reg_mr_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                               int fd, void** mhandle);
  ResultCode (*dereg_mr)(void* comm, void* mhandle);
  ResultCode (*isend)(void* send_comm, void* data, size_t bytes, int tag, void* mhandle,
                      void* profile, void** request);
  ResultCode (*irecv)(void* recv_comm, int n, void** data, size_t* sizes, int* tags,
                      void** mhandles, void** profiles, void** request);
  ResultCode (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                       void** request);
  ResultCode (*test)(void* request, int* done, int* sizes);
  ResultCode (*close_send)(void* send_comm);
  ResultCode (*close_recv)(void* recv_comm);
  ResultCode (*close_listen)(void* listen_comm);
  ResultCode (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  ResultCode (*irecv_consumed)(void* recv_comm, int n, void* request);
  ResultCode (*make_virtual_device)(int* device, VirtualDeviceV9* members);
  ResultCode (*finalize)(void* context);
  ResultCode (*set_net_attributes)(void* context, const NetAttributes* attributes);
};

struct NetV12 {
  const char* name;
  ResultCode (*init)(void** context, uint64_t comm_id, const NetCommConfig* config, Logger logger,
                     ProfilerCallback profiler);
  ResultCode (*devices)(int* count);
  ResultCode (*get_properties)(int device, PropertiesV12* properties);
  ResultCode (*listen)(void* context, int device, void* handle, void** listen_comm);
  ResultCode (*connect)(void* context, int device, void* handle, void** send_comm,
                        NetDeviceHandle** device_handle);
  ResultCode (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** device_handle);
  ResultCode (*reg_mr)(void* comm, void* data, size_t bytes, int type, void** mhandle);
  ResultCode (*reg_mr_dma_buf)(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                               int fd, void** mhandle);
  ResultCode (*dereg_mr)(void* comm, void* mhandle);
  ResultCode (*isend)(void* send_comm, void* data, size_t bytes, int tag, void* mhandle,
                      void* profile, void** request);
  ResultCode (*irecv)(void* recv_comm, int n, void** data, size_t* sizes, int* tags,
                      void** mhandles, void** profiles, void** request);
  ResultCode (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                       void** request);
  ResultCode (*test)(void* request, int* done, int* sizes);
  ResultCode (*close_send)(void* send_comm);
  ResultCode (*close_recv)(void* recv_comm);
  ResultCode (*close_listen)(void* listen_comm);
  ResultCode (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  ResultCode (*irecv_consumed)(void* recv_comm, int n, void* request);
  ResultCode (*make_virtual_device)(int* device, VirtualDeviceV12* members);
  ResultCode (*finalize)(void* context);
  ResultCode (*set_net_attributes)(void* context, const NetAttributes* attributes);
};

}  // namespace slime::nccl
