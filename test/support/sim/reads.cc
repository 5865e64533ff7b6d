// Where the bytes of a work go, what has no such place, and how reads are answered.
#include <cstring>

#include "test/support/sim/sim_rail.h"
#include "test/support/sim/writes.h"

namespace slime::sim {

std::byte* Writes::target_of(const Endpoint& receiver, const InFlightWrite& write) {
  const Work& work = write.work;
  if (write.leg == Leg::kWrite) return receiver.rail->place_of(work);
  const bool registered = receiver.rail->is_local(work.local_key, work.local, work.length);
  return registered ? const_cast<std::byte*>(work.local) : nullptr;
}

void Writes::place(const Endpoint& receiver, const InFlightWrite& write, std::byte* target,
                   const std::byte* source, uint64_t bytes) {
  if (write.leg == Leg::kWrite)
    return receiver.rail->write_memory(write.work, target, source, bytes);
  std::memcpy(target, source, bytes);
}

// A rail that does not go on tells the sender of a silent write before its channel fails.
void Writes::refuse(Endpoint& receiver, InFlightWrite& write) {
  Endpoint* const sender = core_.ends.find(write.sender);
  if (write.leg == Leg::kWrite) {
    ++core_.violations.remote_access;
    const bool goes_on = receiver.rail->caps().goes_on_after_refusal;
    if (!goes_on && sender != nullptr && write.sender_waits &&
        write.work.opcode == Opcode::kWrite) {
      sender->sending.sent.push({write.work.cookie, false, true});
      write.sender_waits = false;
    }
    if (!goes_on || sender == nullptr || !is_confirmed(*sender, write.work)) {
      return failures_.refuse_write(receiver, write);
    }
  } else {
    ++core_.violations.local_access;
  }
  write.refused = true;
  if (write.leg == Leg::kWrite) receiver.counters->refused.add();
  schedule_confirmation(receiver, write);
}

// What the peer reads is what its memory holds now.
void Writes::answer(Endpoint& end, const InFlightWrite& request) {
  const Endpoint* const reader = core_.ends.find(request.sender);
  if (reader == nullptr || end.disconnected) return;
  const Work& work = request.work;
  InFlightWrite& answer = put_on_wire(end, *reader, work, Leg::kAnswer);
  if (work.length == 0) return;
  end.rail->show_device();  // a read comes behind what was written, also at the device
  const std::byte* const source = end.rail->place_of(work);
  answer.refused = source == nullptr;
  if (answer.refused) {
    ++core_.violations.remote_access;
    return end.counters->refused.add();
  }
  answer.copy = buffers_.take(work.length);
  std::memcpy(answer.copy.get(), source, work.length);
}

}  // namespace slime::sim
