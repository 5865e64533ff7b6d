// Works that one end of a channel posts, and the ledger of what became of them. It knows the
// promises of rail.h and lists each that was broken, in words: so that a test can ask for none,
// and a test of the tests for one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "test/contract/region.h"
#include "transports/rail.h"

namespace slime::contract {

struct TransferOptions {
  bool confirm_delivery = false;  // as in the sender's ChannelOptions
  uint32_t seed = 1;              // immediates, cookies and bytes of two transfers differ by it
  bool some_unconfirmed = false;  // every other work
  Opcode opcode = Opcode::kWriteWithImmediate;
};

class Transfer {
 public:
  // `poster`: the rail whose channel posts them.
  Transfer(Rail& poster, Rail& peer, std::span<const uint32_t> lengths,
           const TransferOptions& options);

  std::span<const Work> unposted() const { return std::span(works_).subspan(posted_); }
  void took(size_t count) { posted_ += count; }
  void sent(const Done& done);     // the poster's rail reported kSent
  void refused(const Done& done);  // or kRefused
  void arrived(const Done& done);  // the peer's rail reported kArrived

  bool knows_cookie(uint64_t cookie) const { return by_cookie_.contains(cookie); }
  bool knows_immediate(uint32_t immediate) const { return by_immediate_.contains(immediate); }

  size_t size() const { return works_.size(); }
  size_t posted() const { return posted_; }
  size_t sent_count() const { return sent_; }
  size_t arrived_count() const { return arrived_; }
  size_t refused_count() const { return refused_; }
  uint64_t bytes() const;
  bool complete() const { return sent_ + refused_ == size() && arrived_ + refused_ == size(); }
  bool was_refused(size_t index) const { return fates_[index].refused; }
  // In memory, and reported where it is a write with an immediate.
  bool has_arrived(size_t index) const { return fates_[index].arrived; }
  bool was_sent(size_t index) const { return fates_[index].sent; }
  // kSent has promised the sender that poll() has reported the arrival, or will.
  bool was_confirmed(size_t index) const {
    return confirm_ && fates_[index].sent && !works_[index].unconfirmed;
  }
  bool untouched(size_t index) const;  // the target of one work
  bool landed_whole(size_t index) const;

  std::span<const Work> works() const { return works_; }
  // The bytes move from the one to the other.
  Region& source() { return source_; }
  Region& target() { return target_; }
  Region& remote() { return reads() ? source_ : target_; }  // at the peer
  Region& local() { return reads() ? target_ : source_; }
  bool is(Opcode opcode) const { return opcode_ == opcode; }

  // Broken promises so far, and what the memory shows now.
  std::vector<std::string> problems() const;

 private:
  // Between the targets of two works: a write beyond one must not look like the next.
  static constexpr size_t kGapBytes = 64;
  struct Fate {
    size_t offset = 0;  // of its bytes, in both regions
    bool sent = false;
    bool refused = false;
    bool arrived = false;
  };

  bool reads() const { return is(Opcode::kRead); }
  // Of the work that ends now. nullptr: there is no such work.
  Fate* open_fate(const Done& done, const char* how);

  uint64_t key_of(size_t index) const { return uint64_t{seed_} << 32 | index; }
  std::span<const std::byte> landed(size_t index) const;
  void complain(size_t index, const std::string& what);
  void check_bytes(size_t index, const char* when, std::vector<std::string>* problems) const;
  void check_gaps(std::vector<std::string>* problems) const;
  std::string name(size_t index) const;
  static size_t room_for(std::span<const uint32_t> lengths);

  const uint32_t seed_;
  const Opcode opcode_;
  const bool confirm_;
  const bool confirmed_by_nic_;
  const bool ordered_;
  mutable Region source_;
  mutable Region target_;
  std::vector<Work> works_;
  std::vector<Fate> fates_;
  std::map<uint64_t, size_t> by_cookie_;
  std::map<uint32_t, size_t> by_immediate_;
  size_t posted_ = 0, sent_ = 0, refused_ = 0, arrived_ = 0;
  size_t next_ = 0;  // on an ordered rail none of those before it arrives any more
  std::vector<std::string> problems_;
};

}  // namespace slime::contract
