// Who this process is among the ranks, and where rank 0 is found: from our own launcher or from
// the environment of mpirun, srun or torchrun.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace slime::rendezvous {

struct Identity {
  int rank = 0;
  int size = 0;
  int local_rank = 0;
  std::string launcher;  // "local", "torchrun", "mpirun", "srun"
  std::string host;      // of rank 0; numeric or a name
  uint16_t port = 0;
  std::string port_source;  // for messages: " (MASTER_PORT + 1)"; may be empty
  std::string variables;    // that gave rank and size, for messages: "RANK and WORLD_SIZE"
  std::string token;        // the same at all ranks of a run and different in another run
  int listen_fd = -1;       // rank 0 of a local run: the socket that already listens on `port`
};

// Variable -> value; tests make their own.
using Variables = std::map<std::string, std::string>;
Variables all_variables();

// nullopt: this process was not started as one of several.
Result<std::optional<Identity>> find_identity(const Variables& variables,
                                              const std::string& rendezvous);

// The variables that make a child of ours find `identity`.
std::map<std::string, std::string> variables_for(const Identity& identity);

// First host of a Slurm node list: "gpu[007-009,12],login1" is gpu007.
std::string first_host(std::string_view node_list);

}  // namespace slime::rendezvous
