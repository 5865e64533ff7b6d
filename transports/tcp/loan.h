// Large works within a host: the receiver reads the sender's memory (process_vm_readv, "cross
// memory attach") instead of a stream that the kernel would copy twice and split into packets.
//
// The receiver does it, not the sender, so that all its checks of key and bounds hold. What it
// reads is good only if the sender had neither deregistered that memory nor closed the channel by
// the end of the copy; both leave a mark in the sender's memory, which the same call reads last.
#pragma once

#include <slime/random.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace slime::tcp {

// Follows the header of a kLend frame. Addresses are the sender's.
struct Loan {
  uint64_t source = 0;
  uint64_t region = 0;       // its RegionTable slot's state
  uint32_t region_mark = 0;  // upper half of that state while the registration lasts
  uint32_t reserved = 0;
};
inline constexpr size_t kLoanBytes = 24;
static_assert(sizeof(Loan) == kLoanBytes);

// Of a sending end: holds the channel's nonce until the channel fails, is fenced or is closed.
class Ledger {
 public:
  explicit Ledger(const Nonce& nonce);
  ~Ledger() { close(); }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  uint64_t address() const { return reinterpret_cast<uint64_t>(&words_); }
  void close();

 private:
  // The nonce. Atomic, as what this process does with its memory next must not be seen before.
  std::array<std::atomic<uint64_t>, sizeof(Nonce) / sizeof(uint64_t)> words_;
  static_assert(sizeof(words_) == sizeof(Nonce));
};

// Of a receiving end.
class Borrower {
 public:
  // False: `process` cannot be read, or has no such ledger. Not an error: the stream remains.
  bool open(pid_t process, uint64_t ledger, const Nonce& nonce);
  bool is_open() const { return process_ != 0; }
  // 0, or an errno; EOWNERDEAD: the sender has withdrawn the loan. Never blocks.
  int copy(std::byte* to, const Loan& loan, uint64_t offset, size_t bytes) const;

 private:
  pid_t process_ = 0;
  uint64_t ledger_ = 0;
  Nonce nonce_{};
};

}  // namespace slime::tcp
