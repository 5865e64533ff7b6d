#include "transports/tcp/loan.h"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "transports/tcp/region_table.h"

namespace slime::tcp {

namespace {

void* at(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

Ledger::Ledger(const Nonce& nonce) {
  for (size_t i = 0; i < words_.size(); ++i) {
    uint64_t word = 0;
    std::memcpy(&word, &nonce[i * sizeof word], sizeof word);
    words_[i].store(word);
  }
}

void Ledger::close() {
  for (auto& word : words_) word.exchange(0);
}

bool Borrower::open(pid_t process, uint64_t ledger, const Nonce& nonce) {
  Nonce found{};
  const iovec here{found.data(), found.size()}, there{at(ledger), found.size()};
  const ssize_t got = process_vm_readv(process, &here, 1, &there, 1, 0);
  if (got != static_cast<ssize_t>(found.size()) || !same_nonce(found, nonce)) return false;
  process_ = process;
  ledger_ = ledger;
  nonce_ = nonce;
  return true;
}

int Borrower::copy(std::byte* to, const Loan& loan, uint64_t offset, size_t bytes) const {
  uint64_t state = 0;
  Nonce nonce{};
  const std::array<iovec, 3> here{iovec{to, bytes}, {&state, sizeof state}, {&nonce, sizeof nonce}};
  const std::array<iovec, 3> there{iovec{at(loan.source + offset), bytes},
                                   {at(loan.region), sizeof state},
                                   {at(ledger_), sizeof nonce}};
  const ssize_t got = process_vm_readv(process_, here.data(), 3, there.data(), 3, 0);
  if (got < 0) return errno;
  if (static_cast<size_t>(got) != bytes + sizeof state + sizeof nonce) return EFAULT;
  const bool valid = RegionTable::is_registered(state, loan.region_mark);
  return valid && same_nonce(nonce, nonce_) ? 0 : EOWNERDEAD;
}

}  // namespace slime::tcp
