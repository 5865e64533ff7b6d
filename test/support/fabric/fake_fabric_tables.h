// The tables of calls behind the objects of FakeFabric. All of them take its lock, so what they
// call must not.
#pragma once

#include "test/support/fabric/fake_fabric.h"

namespace slime::test {

// Calls that are not set are null.
template <typename Table, typename Fill>
Table table(Fill fill) {
  Table calls = {};
  calls.size = sizeof calls;
  fill(calls);
  return calls;
}

// fake_fabric_objects.cc, fake_fabric_memory.cc and fake_fabric_endpoints.cc
struct FakeObjects {
  using Lock = std::lock_guard<std::mutex>;
  static fi_ops fids;
  static fi_ops_fabric fabrics;
  static fi_ops_domain domains;
  static fi_ops_mr registrations;
  static fi_ops_ep endpoints;
  static fi_ops_cm names;
  static fi_ops_av addresses;

  static int open_domain(fid_fabric* of, fi_info* info, fid_domain** made, void* context);
  static int open_addresses(fid_domain* of, fi_av_attr* wanted, fid_av** made, void* context);
  static int open_queue(fid_domain* of, fi_cq_attr* wanted, fid_cq** made, void* context);
  static int open_endpoint(fid_domain* of, fi_info* info, fid_ep** made, void* context);
  static int register_memory(fid* of, const fi_mr_attr* attributes, uint64_t flags, fid_mr** made);
  static int close(fid* object);
  static int bind(fid* object, fid* to, uint64_t flags);
  static int control(fid* object, int command, void* argument);
  static int set_option(fid* object, int level, int name, const void* value, size_t bytes);
  static int get_option(fid* object, int level, int name, void* value, size_t* bytes);
  static int get_name(fid* object, void* name, size_t* bytes);
  static int insert(fid_av* to, const void* name, size_t count, fi_addr_t* made, uint64_t flags,
                    void* context);

 private:
  static int close_endpoint(FakeFabric& in, const fid* object);
  static int close_region(FakeFabric& in, const fid* object);
  static int close_domain(FakeFabric& in, const fid* object);
  static int close_fabric(FakeFabric& in, const fid* object);
};

// fake_fabric_writes.cc and fake_fabric_queues.cc
struct FakeQueues {
  using Lock = std::lock_guard<std::mutex>;
  static fi_ops_cq queues;
  static fi_ops_rma writes;

  static ssize_t write(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags);
  static ssize_t read_remote(fid_ep* endpoint, const fi_msg_rma* message, uint64_t flags);
  static ssize_t read(fid_cq* queue, void* entries, size_t count);
  static ssize_t read_error(fid_cq* queue, fi_cq_err_entry* entry, uint64_t flags);
  static const char* error_text(fid_cq* queue, int code, const void* data, char* text,
                                size_t bytes);
};

}  // namespace slime::test
