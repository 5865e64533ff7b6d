#include "peer/engine/sources.h"

namespace slime {

Result<void> AssignmentSource::refill(PeerRequest& request, size_t most) {
  const auto [begin, end] = take(most);
  for (size_t i = begin; i < end; ++i) {
    const auto piece = resolver_.resolve(assignments_[i], i);
    if (!piece) return fail(piece.error());
    request.append(*piece);
  }
  for (; locals_ < resolver_.locals().size(); ++locals_) {
    request.regions.push_back(resolver_.locals()[locals_].object);
  }
  for (; remotes_ < resolver_.remotes().size(); ++remotes_) {
    request.remotes.push_back(resolver_.remotes()[remotes_].object);
  }
  return {};
}

Result<void> PlanSource::refill(PeerRequest& request, size_t most) {
  const auto [begin, end] = take(most);
  for (size_t i = begin; i < end; ++i) request.append(plan_->pieces[all_ ? i : indices_[i]]);
  return {};
}

Result<void> PageSource::refill(PeerRequest& request, size_t most) {
  const auto [begin, end] = take(most);
  for (size_t i = begin; i < end; ++i) {
    Piece piece = origin_;
    piece.local += pages_.local_offset + locals_[i] * pages_.local_stride;
    piece.remote_offset = pages_.remote_offset + remotes_[i] * pages_.remote_stride;
    piece.bytes = pages_.bytes;
    request.append(piece);
  }
  return {};
}

}  // namespace slime
