#include "rendezvous/identity.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/net/socket.h"
#include "base/text.h"

namespace slime::rendezvous {
namespace {

constexpr int kMaxRanks = 65536;
constexpr size_t kMaxShown = 64;  // of a value in a message

// Reads variables, and keeps the first one that is no number, for the error.
class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  bool has(const char* name) const { return variables_.count(name) != 0; }
  std::string text(const char* name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? "" : found->second;
  }
  // Value of the first of `names` that is set.
  int number(std::initializer_list<const char*> names, int missing) {
    const auto set = std::ranges::find_if(names, [this](const char* name) { return has(name); });
    return set == names.end() ? missing : within(*set, 0, INT_MAX, missing);
  }
  uint16_t port(const char* name) {  // 0: it is not set, or no port
    if (text(name).empty()) return 0;
    return static_cast<uint16_t>(within(name, 1, UINT16_MAX, 0));
  }
  const std::string& bad() const { return bad_; }

 private:
  int within(const char* name, int least, int most, int otherwise) {
    const std::string value = text(name);
    const auto number = parse_whole<int>(value);
    if (number && *number >= least && *number <= most) return *number;
    if (!bad_.empty()) return otherwise;
    bad_ = std::string(name) + "=" + excerpt(value, kMaxShown) +
           " in the environment is no number from " + std::to_string(least) +
           (most == INT_MAX ? " up" : " to " + std::to_string(most));
    return otherwise;
  }

  const Variables& variables_;
  std::string bad_;
};

std::optional<Identity> from_own_launcher(Reader& reader) {
  if (!reader.has("SLIME_PERF_RANK")) return std::nullopt;
  Identity identity;
  identity.launcher = "local";
  identity.variables = "SLIME_PERF_RANK and SLIME_PERF_SIZE";
  identity.rank = reader.number({"SLIME_PERF_RANK"}, -1);
  identity.local_rank = identity.rank;
  identity.size = reader.number({"SLIME_PERF_SIZE"}, 0);
  identity.host = reader.text("SLIME_PERF_HOST");
  identity.port = reader.port("SLIME_PERF_PORT");
  identity.token = reader.text("SLIME_PERF_TOKEN");
  identity.listen_fd = reader.number({"SLIME_PERF_LISTEN_FD"}, -1);
  return identity;
}

std::optional<Identity> from_torchrun(Reader& reader) {
  const bool sure = reader.has("TORCHELASTIC_RUN_ID");
  if (!sure && reader.has("OMPI_COMM_WORLD_RANK")) return std::nullopt;  // mpirun -x RANK=...
  if (!reader.has("RANK") || !reader.has("WORLD_SIZE")) return std::nullopt;
  Identity identity;
  identity.launcher = "torchrun";
  identity.variables = "RANK and WORLD_SIZE";
  identity.rank = reader.number({"RANK"}, -1);
  identity.size = reader.number({"WORLD_SIZE"}, 0);
  identity.local_rank = reader.number({"LOCAL_RANK"}, 0);
  identity.token = reader.text("TORCHELASTIC_RUN_ID");
  return identity;
}

std::optional<Identity> from_mpirun(Reader& reader) {
  Identity identity;
  identity.launcher = "mpirun";
  if (reader.has("OMPI_COMM_WORLD_RANK")) {
    identity.variables = "OMPI_COMM_WORLD_RANK and _SIZE";
    identity.rank = reader.number({"OMPI_COMM_WORLD_RANK"}, -1);
    identity.size = reader.number({"OMPI_COMM_WORLD_SIZE"}, 0);
    identity.local_rank = reader.number({"OMPI_COMM_WORLD_LOCAL_RANK"}, 0);
    if (reader.number({"OMPI_COMM_WORLD_LOCAL_SIZE"}, 0) == identity.size) {
      identity.host = "127.0.0.1";
    }
    identity.token = reader.text("PMIX_NAMESPACE");
    if (identity.token.empty()) identity.token = reader.text("OMPI_MCA_ess_base_jobid");
    return identity;
  }
  // MPICH, Intel MPI and others with Hydra. srun --mpi=pmi2 sets these too, and from_srun() has
  // more.
  if (!reader.has("PMI_RANK") || !reader.has("PMI_SIZE") || reader.has("SLURM_PROCID")) {
    return std::nullopt;
  }
  identity.variables = "PMI_RANK and PMI_SIZE";
  identity.rank = reader.number({"PMI_RANK"}, -1);
  identity.size = reader.number({"PMI_SIZE"}, 0);
  identity.local_rank = reader.number({"MPI_LOCALRANKID"}, 0);
  if (reader.number({"MPI_LOCALNRANKS"}, 0) == identity.size) identity.host = "127.0.0.1";
  return identity;
}

std::optional<Identity> from_srun(Reader& reader) {
  // Batch scripts and interactive steps have a rank 0 of their own, with reserved step numbers
  // (slurm.h: SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP, ...).
  const std::string step = reader.text("SLURM_STEP_ID");
  if (!reader.has("SLURM_PROCID") || step.empty() || step.size() >= 10) return std::nullopt;
  Identity identity;
  identity.launcher = "srun";
  identity.variables = "SLURM_PROCID and SLURM_STEP_NUM_TASKS";
  identity.rank = reader.number({"SLURM_PROCID", "PMIX_RANK"}, -1);
  identity.size = reader.number({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, 0);
  identity.local_rank = reader.number({"SLURM_LOCALID"}, 0);
  if (identity.size <= 1) return std::nullopt;
  identity.host = first_host(reader.has("SLURM_STEP_NODELIST") ? reader.text("SLURM_STEP_NODELIST")
                                                               : reader.text("SLURM_JOB_NODELIST"));
  identity.token = reader.text("SLURM_JOB_ID") + "." + step;
  return identity;
}

// A port that all ranks compute alike, out of the range that kernels hand out (32768-60999).
uint16_t port_of(const std::string& token) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : token) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return static_cast<uint16_t>(20000 + hash % 12000);
}

Result<void> read_rendezvous(const std::string& text, Identity* identity) {
  auto parts = split_host_port(text, 0, "--rendezvous HOST:PORT");
  if (!parts) return fail(std::move(parts.error()));
  identity->host = std::move(parts->host);
  identity->port = parts->port;
  return {};
}

Result<void> well_formed(const Reader& reader) {
  if (reader.bad().empty()) return {};
  return fail(Status::kConfig, "%s", reader.bad().c_str());
}

Result<void> complete(Reader& reader, const std::string& rendezvous, Identity* identity) {
  if (!rendezvous.empty()) return read_rendezvous(rendezvous, identity);
  if (reader.has("MASTER_ADDR")) {
    auto host = read_host(reader.text("MASTER_ADDR"), "MASTER_ADDR");
    if (!host) return fail(std::move(host.error()));
    identity->host = std::move(*host);
  }
  if (reader.has("MASTER_PORT")) {
    // torchrun's own store listens on MASTER_PORT itself.
    const uint16_t port = reader.port("MASTER_PORT");
    if (port == 0) return well_formed(reader);
    const int next = port < 65535 ? port + 1 : port - 1;
    const bool stepped = identity->launcher == "torchrun";
    identity->port = static_cast<uint16_t>(stepped ? next : port);
    identity->port_source = !stepped      ? " (MASTER_PORT)"
                            : next > port ? " (MASTER_PORT + 1: torchrun has MASTER_PORT itself)"
                                          : " (MASTER_PORT - 1: torchrun has MASTER_PORT itself)";
  }
  if (identity->port == 0) identity->port = port_of(identity->token);
  if (!identity->host.empty()) return {};
  return fail(Status::kConfig,
              "rank %d of %d does not know where rank 0 is; give --rendezvous HOST:PORT or export "
              "MASTER_ADDR and MASTER_PORT",
              identity->rank, identity->size);
}

Result<void> validate(const Reader& reader, const Identity& identity) {
  if (auto read = well_formed(reader); !read) return read;
  if (identity.size < 2 || identity.size > kMaxRanks || identity.rank < 0 ||
      identity.rank >= identity.size) {
    return fail(Status::kConfig,
                "%s in the environment say rank %d of %d, as %s sets them; there must be 2 to %d "
                "ranks, numbered from 0: correct the variables, or unset them and give --ranks N "
                "to start N ranks here",
                identity.variables.c_str(), identity.rank, identity.size, identity.launcher.c_str(),
                kMaxRanks);
  }
  return {};
}

}  // namespace

Variables all_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    if (equals != nullptr)
      variables[std::string(static_cast<const char*>(*entry), equals)] = equals + 1;
  }
  return variables;
}

Result<std::optional<Identity>> find_identity(const Variables& variables,
                                              const std::string& rendezvous) {
  Reader reader(variables);
  std::optional<Identity> identity = from_own_launcher(reader);
  const bool own = identity.has_value();
  if (!identity) identity = from_torchrun(reader);
  if (!identity) identity = from_mpirun(reader);
  if (!identity) identity = from_srun(reader);
  if (!identity) return identity;
  if (const auto valid = validate(reader, *identity); !valid) return fail(valid.error());
  if (own) return identity;
  if (reader.has("SLIME_PERF_TOKEN")) identity->token = reader.text("SLIME_PERF_TOKEN");
  if (const auto done = complete(reader, rendezvous, &*identity); !done) return fail(done.error());
  return identity;
}

std::map<std::string, std::string> variables_for(const Identity& identity) {
  std::map<std::string, std::string> variables = {
      {"SLIME_PERF_RANK", std::to_string(identity.rank)},
      {"SLIME_PERF_SIZE", std::to_string(identity.size)},
      {"SLIME_PERF_HOST", identity.host},
      {"SLIME_PERF_PORT", std::to_string(identity.port)},
      {"SLIME_PERF_TOKEN", identity.token}};
  if (identity.listen_fd >= 0) {
    variables["SLIME_PERF_LISTEN_FD"] = std::to_string(identity.listen_fd);
  }
  return variables;
}

std::string first_host(std::string_view node_list) {
  const size_t bracket = node_list.find('[');
  const size_t comma = node_list.find(',');
  if (bracket == std::string_view::npos || comma < bracket) {
    return std::string(node_list.substr(0, comma));
  }
  const std::string_view rest = node_list.substr(bracket + 1);
  const size_t close = rest.find(']');
  std::string host(node_list.substr(0, bracket));
  host += rest.substr(0, rest.find_first_of("-,]"));
  if (close == std::string_view::npos) return host;
  const std::string_view suffix = rest.substr(close + 1);  // "rack[1-2]node": rare, but legal
  return host + std::string(suffix.substr(0, suffix.find_first_of(",[")));
}

}  // namespace slime::rendezvous
