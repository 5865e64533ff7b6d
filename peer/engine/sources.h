// The kinds of lists that the pieces of a request come from. Each one uses the program's arrays
// until own_arrays() has copied what is left.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "peer/engine/resolver.h"
#include "peer/moving/piece_source.h"

namespace slime {

// The memory of a copy, between two of them: pages from the kernel cost as much as the copying.
//
// Memory: kMostBytes. Threads: any; a mutex guards it.
template <typename Element>
class SpareArray {
 public:
  static constexpr size_t kMostBytes = 16 << 20;

  std::vector<Element> take() {
    const std::lock_guard lock(mutex_);
    return std::move(spare_);
  }
  void give(std::vector<Element> array) {
    const std::lock_guard lock(mutex_);
    const bool larger = array.capacity() > spare_.capacity();
    if (larger && array.capacity() <= kMostBytes / sizeof(Element)) spare_ = std::move(array);
  }

 private:
  std::mutex mutex_;
  std::vector<Element> spare_;
};

// The array of a program, or a copy, whose memory comes from `spare` and goes there, if that is
// not nullptr.
template <typename Element>
class Array {
 public:
  explicit Array(std::span<const Element> given, SpareArray<Element>* spare = nullptr)
      : elements_(given), spare_(spare) {}
  Array(Array&&) noexcept = default;  // a copy stays where it is
  ~Array() {
    if (spare_ != nullptr) spare_->give(std::move(copy_));
  }

  void own() {
    if (spare_ != nullptr) copy_ = spare_->take();
    copy_.assign(elements_.begin(), elements_.end());
    elements_ = copy_;
  }
  size_t size() const { return elements_.size(); }
  const Element& operator[](size_t index) const { return elements_[index]; }

 private:
  std::span<const Element> elements_;
  std::vector<Element> copy_;
  SpareArray<Element>* spare_;
};

// What they have in common: a position in a list of so many.
class ListSource : public PieceSource {
 public:
  explicit ListSource(size_t count) : count_(count) {}
  bool at_end() const final { return next_ == count_; }
  void rewind() final { next_ = 0; }
  size_t size() const { return count_; }

 protected:
  // The next `most` at most, as [first, second).
  std::pair<size_t, size_t> take(size_t most) {
    const size_t begin = next_;
    next_ += std::min(most, count_ - next_);
    return {begin, next_};
  }

 private:
  size_t count_, next_ = 0;
};

class AssignmentSource final : public ListSource {
 public:
  AssignmentSource(std::span<const Assignment> assignments, Resolver resolver,
                   SpareArray<Assignment>& spare)
      : ListSource(assignments.size()),
        assignments_(assignments, &spare),
        resolver_(std::move(resolver)) {}
  void own_arrays() { assignments_.own(); }
  Result<void> refill(PeerRequest& request, size_t most) override;

 private:
  Array<Assignment> assignments_;
  Resolver resolver_;
  size_t locals_ = 0, remotes_ = 0;  // of the resolver's, that the request has
};

// Assignments that were resolved before. It does not keep the regions registered: who starts it
// finds them again.
struct Plan {
  uint64_t peer = 0;
  uint8_t rights = 0;                     // of all remote regions
  std::vector<Piece> pieces;              // one for each assignment
  std::vector<uint64_t> locals, remotes;  // handles
};

// All of a plan, or those with these indices.
class PlanSource final : public ListSource {
 public:
  explicit PlanSource(std::shared_ptr<const Plan> plan)
      : ListSource(plan->pieces.size()), plan_(std::move(plan)), indices_({}), all_(true) {}
  PlanSource(std::shared_ptr<const Plan> plan, std::span<const uint32_t> indices)
      : ListSource(indices.size()), plan_(std::move(plan)), indices_(indices), all_(false) {}
  void own_arrays() { indices_.own(); }
  Result<void> refill(PeerRequest& request, size_t most) override;

 private:
  std::shared_ptr<const Plan> plan_;
  Array<uint32_t> indices_;
  bool all_;
};

// The indices were checked.
class PageSource final : public ListSource {
 public:
  // `origin`: where both regions are.
  PageSource(const Pages& pages, const Piece& origin)
      : ListSource(pages.local_pages.size()),
        pages_(pages),
        origin_(origin),
        locals_(pages.local_pages),
        remotes_(pages.remote_pages) {}
  void own_arrays() {
    locals_.own();
    remotes_.own();
  }
  Result<void> refill(PeerRequest& request, size_t most) override;

 private:
  Pages pages_;
  Piece origin_;
  Array<uint32_t> locals_, remotes_;
};

}  // namespace slime
