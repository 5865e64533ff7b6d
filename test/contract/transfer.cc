#include "test/contract/transfer.h"

#include <algorithm>
#include <cstring>

#include "test/contract/pattern.h"

namespace slime::contract {

size_t Transfer::room_for(std::span<const uint32_t> lengths) {
  size_t bytes = kGapBytes;
  for (const uint32_t length : lengths) bytes += length + kGapBytes;
  return bytes;
}

Transfer::Transfer(Rail& poster, Rail& peer, std::span<const uint32_t> lengths,
                   const TransferOptions& options)
    : seed_(options.seed),
      opcode_(options.opcode),
      confirm_(options.confirm_delivery),
      confirmed_by_nic_(peer.caps().confirms_in_hardware),
      ordered_(poster.caps().ordered),
      source_(reads() ? peer : poster, room_for(lengths), reads() ? kRemoteRead : 0),
      target_(reads() ? poster : peer, room_for(lengths), reads() ? 0 : kRemoteWrite) {
  size_t offset = kGapBytes;
  for (size_t i = 0; i < lengths.size(); ++i) {
    Work work;
    work.opcode = opcode_;
    work.local = &local().bytes()[offset];
    work.local_key = local().keys().local;
    remote().aim(&work, remote().address() + offset);
    work.remote_key = remote().keys().remote;
    work.length = lengths[i];
    // All bits in use: the multiplication by an odd number is one to one.
    work.immediate = (static_cast<uint32_t>(i) + seed_ * 0x10001) * 2654435761U;
    work.cookie = mix(key_of(i) + 1);
    work.unconfirmed = options.some_unconfirmed && i % 2 == 1;
    fill(source_.bytes().subspan(offset, lengths[i]), key_of(i));
    works_.push_back(work);
    fates_.push_back({.offset = offset});
    by_cookie_[work.cookie] = i;
    by_immediate_[work.immediate] = i;
    offset += lengths[i] + kGapBytes;
  }
}

uint64_t Transfer::bytes() const {
  uint64_t bytes = 0;
  for (const Work& work : works_) bytes += work.length;
  return bytes;
}

std::string Transfer::name(size_t index) const {
  return "work " + std::to_string(index) + " of " + std::to_string(works_[index].length) + " bytes";
}

void Transfer::complain(size_t index, const std::string& what) {
  problems_.push_back(name(index) + ": " + what);
}

Transfer::Fate* Transfer::open_fate(const Done& done, const char* how) {
  const auto found = by_cookie_.find(done.cookie);
  if (found == by_cookie_.end()) {
    problems_.push_back(std::string(how) + " with unknown cookie " + std::to_string(done.cookie));
    return nullptr;
  }
  const size_t index = found->second;
  Fate& fate = fates_[index];
  if (index >= posted_) complain(index, std::string(how) + " before it was posted");
  if (!fate.sent && !fate.refused) return &fate;
  complain(index, std::string("ended twice: ") + (fate.sent ? "kSent" : "kRefused") + ", " + how);
  return nullptr;
}

void Transfer::refused(const Done& done) {
  Fate* const fate = open_fate(done, "kRefused");
  if (fate == nullptr) return;
  fate->refused = true;
  ++refused_;
}

void Transfer::sent(const Done& done) {
  Fate* const found = open_fate(done, "kSent");
  if (found == nullptr) return;
  Fate& fate = *found;
  const auto index = static_cast<size_t>(found - fates_.data());
  const bool confirmed = confirm_ && !works_[index].unconfirmed;
  if (!is(Opcode::kWriteWithImmediate)) {
    fate.arrived = true;
    ++arrived_;
    check_bytes(index, "when it was kSent", &problems_);
  } else if (confirmed && !fate.arrived && !confirmed_by_nic_) {
    complain(index, "confirmed before the peer reported kArrived");
  }
  fate.sent = true;
  ++sent_;
  // Its memory may be reused from now on: reuse it, and see whether the old bytes still arrive.
  const auto source = source_.bytes().subspan(fate.offset, works_[index].length);
  std::memset(source.data(), 0xee, source.size());
}

void Transfer::arrived(const Done& done) {
  const auto found = by_immediate_.find(done.immediate);
  if (found == by_immediate_.end()) {
    problems_.push_back("kArrived with unknown immediate " + std::to_string(done.immediate));
    return;
  }
  const size_t index = found->second;
  Fate& fate = fates_[index];
  if (index >= posted_) complain(index, "kArrived before it was posted");
  if (fate.arrived) return complain(index, "kArrived twice");
  if (!is(Opcode::kWriteWithImmediate)) complain(index, "kArrived of a read or silent write");
  if (ordered_ && index < next_) complain(index, "was overtaken on an ordered rail");
  next_ = index + 1;
  if (done.bytes != works_[index].length) {
    complain(index, "kArrived with " + std::to_string(done.bytes) + " bytes");
  }
  fate.arrived = true;
  ++arrived_;
  check_bytes(index, "when it was reported", &problems_);
}

std::span<const std::byte> Transfer::landed(size_t index) const {
  return target_.bytes().subspan(fates_[index].offset, works_[index].length);
}

bool Transfer::untouched(size_t index) const {
  return std::ranges::all_of(landed(index), [](std::byte b) { return b == Region::kUntouched; });
}

bool Transfer::landed_whole(size_t index) const {
  return !first_difference(landed(index), key_of(index));
}

void Transfer::check_bytes(size_t index, const char* when,
                           std::vector<std::string>* problems) const {
  const auto differs = first_difference(landed(index), key_of(index));
  if (!differs) return;
  problems->push_back(name(index) + ": wrong byte at " + std::to_string(*differs) + " " + when);
}

void Transfer::check_gaps(std::vector<std::string>* problems) const {
  const auto all = target_.bytes();
  size_t gap = 0;
  for (size_t i = 0; i <= works_.size(); ++i) {
    const auto bytes = all.subspan(gap, kGapBytes);
    if (!std::ranges::all_of(bytes, [](std::byte b) { return b == Region::kUntouched; })) {
      problems->push_back("written between works " + std::to_string(i) + " and the one before");
    }
    if (i < works_.size()) gap = fates_[i].offset + works_[i].length;
  }
  if (!target_.guards_intact()) problems->push_back("written outside the registered range");
}

std::vector<std::string> Transfer::problems() const {
  std::vector<std::string> problems = problems_;
  for (size_t i = 0; i < works_.size(); ++i) {
    if (fates_[i].arrived) check_bytes(i, "at the end", &problems);
  }
  // Only a refused work may be passed.
  for (size_t i = 0; ordered_ && i < next_; ++i) {
    if (fates_[i].arrived || fates_[i].refused) continue;
    problems.push_back(name(i) + ": was passed by others on an ordered rail, and is lost");
  }
  check_gaps(&problems);
  return problems;
}

}  // namespace slime::contract
