// The memory of a channel's two hellos, registered with its NIC. Queue pairs that have not sent
// theirs yet keep it when the channel ends. It has a page of its own: see kPage.
#pragma once

#include <cerrno>
#include <memory>

#include "transports/verbs/nic.h"
#include "transports/verbs/wire.h"

namespace slime::verbs {

class alignas(kPage) HelloBuffer {
 public:
  static Result<std::unique_ptr<HelloBuffer>> create(const Nic& nic) {
    std::unique_ptr<HelloBuffer> buffer(new HelloBuffer);
    buffer->region_ = nic.register_local(&buffer->hellos_, sizeof buffer->hellos_);
    if (buffer->region_ != nullptr) return buffer;
    return fail(system_error(errno, "ibv_reg_mr of %zu bytes failed; see %s",
                             sizeof buffer->hellos_, limit_behind(errno)));
  }

  const Hello& in() const { return hellos_.in; }
  Hello& out() { return hellos_.out; }
  ibv_sge in_piece() const { return piece_of(hellos_.in); }
  ibv_sge out_piece() const { return piece_of(hellos_.out); }

 private:
  HelloBuffer() = default;
  ibv_sge piece_of(const Hello& hello) const {
    return {reinterpret_cast<uint64_t>(&hello), sizeof hello, region_->lkey};
  }

  struct {
    alignas(64) Hello in, out;
  } hellos_;
  MemoryRegion region_;
};

}  // namespace slime::verbs
