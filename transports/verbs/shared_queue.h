// A completion queue that many channels share. The channels and the poller read it. Each completion
// is put into the place of its channel (WorkId::place), and the channel takes it from there. So a
// channel may be polled by one thread while another polls the poller.
//
// States of a place: free, or taken from take_place() to give_back(). A place that is taken is
// armed or not (transports/poller.h). It may be given back when the queue pairs of its channel are
// destroyed: no completion of theirs can come any more, and those in the queue are read then. So a
// place that is taken again gets no completion of an earlier channel. Where one of them could not
// be destroyed (note_lost_pair), the place is never taken again, and what comes for it is dropped.
//
// Invariants: the queue has room for all work requests that channels may have posted, as each says
// how many those are. A place keeps no more completions than that. Threads: any; a mutex guards
// all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "transports/verbs/device/nic.h"

namespace slime::verbs {

class SharedQueue {
 public:
  // `events`: its completions are announced there, also to a thread that sleeps already. It is kept
  // for as long as the queue lives. `places`: how many it is to have where the NIC lets it, but as
  // many as `requests` at least.
  static Result<std::shared_ptr<SharedQueue>> open(const std::shared_ptr<Nic>& nic,
                                                   const std::shared_ptr<ibv_comp_channel>& events,
                                                   uint32_t requests, uint64_t places);

  // A place for a channel with so many work requests. kAgain: there is no room.
  Status take_place(uint32_t requests, uint64_t tag, uint16_t* place);
  void give_back(uint16_t place);
  // A queue pair of this place's channel could not be destroyed: its completions may still come.
  void note_lost_pair(uint16_t place);
  // As ibv_poll_cq(3), of the completions of one channel. Negative: failure() says why, and all
  // channels of the queue have failed.
  int poll(uint16_t place, std::span<ibv_wc> completions);
  Error failure();
  // False: it has completions already.
  bool arm(uint16_t place);
  void disarm(uint16_t place);

  // Reads the queue, at most as many completions as fit into it. Returns how many tags it wrote: of
  // armed places that have got some.
  size_t take_tags(std::span<uint64_t> tags);
  // The next completion is an event. False: take_tags() has something already.
  bool request_event();

  ibv_cq* get() const { return queue_.get(); }
  uint64_t places();  // for completions
  bool is_over();     // it is broken, and no channel is left on it

 private:
  struct Place {
    uint32_t requests = 0;  // 0: it is free
    bool taken = false, armed = false, has_lost_pair = false;
    uint64_t tag = 0;
    size_t begin = 0;  // kept[begin] is the oldest
    std::vector<ibv_wc> kept;

    size_t count() const { return kept.size() - begin; }
    void take(std::span<ibv_wc> completions);
  };

  SharedQueue(std::shared_ptr<Nic> nic, std::shared_ptr<ibv_comp_channel> events,
              CompletionQueue queue)
      : nic_(std::move(nic)), events_(std::move(events)), queue_(std::move(queue)) {}
  bool make_room(uint32_t requests);
  bool resize(uint64_t places);
  int read();
  // Reads until the queue is empty, or `enough` says so.
  template <typename Enough>
  void read_until(Enough enough);
  void keep(const ibv_wc& completion);
  void name(uint16_t place);
  void fail(const char* call, int code);

  const std::shared_ptr<Nic> nic_;
  const std::shared_ptr<ibv_comp_channel> events_;
  Mutex mutex_;
  const CompletionQueue queue_;
  std::vector<Place> places_;
  std::vector<uint16_t> named_;  // places that were armed and have got something, each once
  uint64_t requests_ = 0;        // of all places
  size_t channels_ = 0;          // places that are taken
  int broken_ = 0;               // why no channel gets anything any more
  const char* failed_call_ = "";
};

}  // namespace slime::verbs
