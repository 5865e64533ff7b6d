#include "aggregation/introduction.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "aggregation/debug_modes.h"
#include "base/net/host.h"

namespace slime::aggregation {

Result<void> check_member(const Introduction& introduction, const Introduction& own,
                          const char* from) {
  if (introduction.magic != kIntroductionMagic || introduction.version != kIntroductionVersion) {
    return fail(Status::kRemote,
                "%s does not speak this version of the library (magic %08x, version %u; wanted "
                "%08x, %u): do all ranks run the same program?",
                from, introduction.magic, introduction.version, kIntroductionMagic,
                kIntroductionVersion);
  }
  if (introduction.ranks != own.ranks || introduction.rank >= own.ranks) {
    return fail(Status::kInvalid,
                "%s says that it is rank %u of %u, and rank %u says there are %u; give all ranks "
                "the same number of ranks",
                from, introduction.rank, introduction.ranks, own.rank, own.ranks);
  }
  if (introduction.mode != own.mode) {
    return fail(Status::kInvalid,
                "%s, rank %u, runs in mode %s, and rank %u in %s; give all ranks the same mode",
                from, introduction.rank, name_of(static_cast<Mode>(introduction.mode)), own.rank,
                name_of(static_cast<Mode>(own.mode)));
  }
  return {};
}

Result<std::vector<Handle>> handles_of(std::span<const Introduction> introductions,
                                       const Introduction& own) {
  std::vector<Handle> handles;
  std::string not_ready;
  for (uint32_t rank = 0; rank < introductions.size(); ++rank) {
    const Introduction& introduction = introductions[rank];
    const std::string from = "what came for rank " + std::to_string(rank);
    auto member = check_member(introduction, own, from.c_str());
    if (!member) return fail(std::move(member.error()));
    if (introduction.rank != rank) {
      return fail(Status::kInvalid,
                  "%s is of rank %u: do two ranks have one number, or does the all-gather not keep "
                  "the order of ranks?",
                  from.c_str(), introduction.rank);
    }
    if (!introduction.ready) not_ready += (not_ready.empty() ? "" : ", ") + std::to_string(rank);
    handles.push_back(introduction.handle);
  }
  if (not_ready.empty()) return handles;
  return fail(Status::kRemote,
              "rank %s failed before the ranks met, so all fail; its error says why",
              not_ready.c_str());
}

namespace {

constexpr char kWhere[] = "Options::rendezvous, where rank 0 listens";

Result<std::vector<Introduction>> gather(const AllGather& all_gather, const Introduction& own) {
  std::vector<Introduction> introductions(own.ranks);
  std::ranges::fill(std::as_writable_bytes(std::span(introductions)),
                    std::byte{0});  // no introduction as it is
  if (all_gather(&own, sizeof own, introductions.data())) return introductions;
  return fail(Status::kRemote,
              "rank %u of %u: the all-gather that Options::all_gather names failed", own.rank,
              own.ranks);
}

// Another size is that of another version.
Introduction from_blob(const std::string& blob) {
  Introduction introduction;
  introduction.magic = 0;
  if (blob.size() == sizeof introduction) std::memcpy(&introduction, blob.data(), blob.size());
  return introduction;
}

Result<std::vector<Introduction>> meet(const Options& options, const Settings& settings,
                                       const Introduction& own) {
  auto where = split_host_port(options.rendezvous, 0, kWhere);
  if (!where) return fail(std::move(where.error()));
  rendezvous::Terms terms;
  terms.limit_ns = seconds_to_ns(settings.connect_timeout);
  terms.hello_limit_ns = seconds_to_ns(settings.handshake_timeout);
  if (!settings.switch_key_file.empty()) {
    auto key = SecretKey::read_file(settings.switch_key_file);
    if (!key) return fail(std::move(key.error()));
    terms.key = *key;
  }
  return meet(terms, *where, own);
}

}  // namespace

Result<std::vector<Introduction>> meet(const rendezvous::Terms& base, const HostPort& where,
                                       const Introduction& own) {
  rendezvous::Terms terms = base;
  terms.where = to_string(where);
  terms.rank = own.rank;
  terms.ranks = own.ranks;
  const std::string blob(reinterpret_cast<const char*>(&own), sizeof own);
  Result<rendezvous::Gathered> gathered = fail(Error{});
  if (own.rank == 0) {
    auto listener = listen_at(where, kWhere);
    if (!listener) return fail(std::move(listener.error()));
    const auto judge = [&own](const rendezvous::Claim& claim) -> Result<std::string> {
      const Introduction introduction = from_blob(claim.blob);
      auto member = check_member(introduction, own, "it");
      if (!member) return fail(std::move(member.error()));
      if (introduction.rank == claim.rank) return claim.blob;
      return fail(Status::kRemote, "it gives two numbers as its rank: %u and %u", claim.rank,
                  introduction.rank);
    };
    gathered = rendezvous::host_group(terms, std::move(*listener), {.own = blob, .judge = judge});
  } else {
    gathered = rendezvous::join_group(terms, blob, where);
  }
  if (!gathered) return fail(std::move(gathered.error()));
  std::vector<Introduction> introductions;
  for (const std::string& one : gathered->blobs) introductions.push_back(from_blob(one));
  return introductions;
}

Result<void> check_means(const Options& options) {
  const bool both = !options.rendezvous.empty() && options.all_gather;
  const bool none = options.rendezvous.empty() && !options.all_gather;
  if (!both && (!none || options.ranks == 1)) return {};
  return fail(Status::kInvalid,
              "%u ranks find each other by Options::rendezvous or by Options::all_gather: give one "
              "of them, not %s",
              options.ranks, both ? "both" : "neither");
}

Result<std::vector<Introduction>> exchange(const Options& options, const Settings& settings,
                                           const Introduction& own) {
  if (options.all_gather) return gather(options.all_gather, own);
  if (own.ranks == 1) return std::vector<Introduction>{own};
  return meet(options, settings, own);
}

}  // namespace slime::aggregation
