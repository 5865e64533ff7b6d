// Who am I: the environments of launchers.
#include "rendezvous/identity.h"

#include <gtest/gtest.h>

namespace slime::rendezvous {
namespace {

Identity found(const Variables& variables, const std::string& rendezvous = "") {
  const auto identity = find_identity(variables, rendezvous);
  if (!identity) {
    ADD_FAILURE() << identity.error().what;
    return {};
  }
  if (!identity->has_value()) ADD_FAILURE() << "nobody";
  return identity->value_or(Identity());
}

std::string refusal(const Variables& variables, const std::string& rendezvous = "") {
  const auto identity = find_identity(variables, rendezvous);
  return identity ? "accepted" : identity.error().what;
}

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "8"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "prterun-a-77@1"}};
const Variables kSlurm = {{"SLURM_PROCID", "2"},   {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_LOCALID", "0"},  {"SLURM_STEP_ID", "0"},
                          {"SLURM_JOB_ID", "991"}, {"SLURM_STEP_NODELIST", "gpu[007-009,12]"},
                          {"SLURM_NTASKS", "64"}};
const Variables kTorch = {{"RANK", "5"},
                          {"WORLD_SIZE", "16"},
                          {"LOCAL_RANK", "1"},
                          {"MASTER_ADDR", "node0"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RUN_ID", "abc"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

TEST(IdentityTest, NobodyStartedUs) {
  const auto identity = find_identity({{"PATH", "/bin"}}, "");
  ASSERT_TRUE(identity);
  EXPECT_FALSE(identity->has_value());
}

TEST(IdentityTest, OpenMpiWithAMaster) {
  const Identity identity =
      found(with(kOpenMpi, {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "4711"}}));
  EXPECT_EQ(identity.rank, 3);
  EXPECT_EQ(identity.size, 8);
  EXPECT_EQ(identity.local_rank, 1);
  EXPECT_EQ(identity.host, "10.0.0.1");
  EXPECT_EQ(identity.port, 4711);
  EXPECT_EQ(identity.token, "prterun-a-77@1");
}

TEST(IdentityTest, TheMasterIsAHostAlone) {
  const auto master = [](const char* text) { return with(kTorch, {{"MASTER_ADDR", text}}); };
  for (const char* host : {"node0", "node-0.cluster", "10.0.0.1", "fd00::1", "fe80::1%eth0"}) {
    EXPECT_EQ(found(master(host)).host, host);
  }
  EXPECT_EQ(found(master("[fd00::1]")).host, "fd00::1");
  for (const char* text : {"10.0.0.1:29500", "node0:1", "[fd00::1]:29500"}) {
    EXPECT_NE(refusal(master(text)).find("has a port"), std::string::npos) << text;
  }
  for (const char* text : {"no\nde", "[fd00::1", "fe80::1%"}) {
    EXPECT_NE(refusal(master(text)).find("is no host"), std::string::npos) << text;
  }
}

TEST(IdentityTest, OpenMpiOnSeveralHostsNeedsAMaster) {
  EXPECT_NE(refusal(kOpenMpi).find("--rendezvous"), std::string::npos);
}

TEST(IdentityTest, OpenMpiOnOneHostDoesNot) {
  const Identity identity = found(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}}));
  EXPECT_EQ(identity.host, "127.0.0.1");
  EXPECT_GE(identity.port, 20000);
  EXPECT_LT(identity.port, 32000);
  EXPECT_EQ(
      identity.port,
      found(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}, {"OMPI_COMM_WORLD_RANK", "0"}}))
          .port);
}

TEST(IdentityTest, SlurmNamesTheFirstHost) {
  const Identity identity = found(kSlurm);
  EXPECT_EQ(identity.rank, 2);
  EXPECT_EQ(identity.size, 4) << "of the step, not of the job";
  EXPECT_EQ(identity.host, "gpu007");
  EXPECT_EQ(identity.token, "991.0");
}

TEST(IdentityTest, BatchScriptsAreNoRanks) {
  const auto identity = find_identity(with(kSlurm, {{"SLURM_STEP_ID", "4294967291"}}), "");
  ASSERT_TRUE(identity);
  EXPECT_FALSE(identity->has_value());
}

TEST(IdentityTest, TorchrunKeepsMasterPortForItself) {
  const Identity identity = found(kTorch);
  EXPECT_EQ(identity.rank, 5);
  EXPECT_EQ(identity.size, 16);
  EXPECT_EQ(identity.host, "node0");
  EXPECT_EQ(identity.port, 29501);
}

TEST(IdentityTest, TheInnerLauncherWins) {
  EXPECT_EQ(found(with(kSlurm, kTorch)).launcher, "torchrun");
  EXPECT_EQ(found(with(with(kSlurm, kOpenMpi), {{"MASTER_ADDR", "a"}})).launcher, "mpirun");
  Identity own;
  own.rank = 1;
  own.size = 2;
  own.host = "127.0.0.1";
  own.port = 1234;
  own.token = "t";
  const Identity again = found(with(with(kSlurm, kTorch), variables_for(own)));
  EXPECT_EQ(again.launcher, "local");
  EXPECT_EQ(again.port, 1234);
  EXPECT_EQ(again.listen_fd, -1);
}

TEST(IdentityTest, MpichTellsItsRank) {
  const Identity identity =
      found({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}}, "[::1]:4000");
  EXPECT_EQ(identity.rank, 1);
  EXPECT_EQ(identity.host, "::1");
  EXPECT_EQ(identity.port, 4000);
}

TEST(IdentityTest, RendezvousWinsOverTheMaster) {
  EXPECT_EQ(found(kTorch, "other:99").port, 99);
  for (const char* wrong :
       {"other", "other:", ":99", "other:0", "other:65536", "other:4294967395", "other:9x"}) {
    EXPECT_NE(refusal(kTorch, wrong).find("HOST:PORT"), std::string::npos) << wrong;
  }
}

TEST(IdentityTest, MalformedVariablesAreNamed) {
  EXPECT_NE(refusal(with(kTorch, {{"RANK", "five"}})).find("RANK=five"), std::string::npos);
  EXPECT_NE(refusal(with(kTorch, {{"RANK", "16"}})).find("rank 16 of 16"), std::string::npos);
  EXPECT_NE(refusal(with(kTorch, {{"WORLD_SIZE", "1"}, {"RANK", "0"}})).find("--ranks"),
            std::string::npos);
}

TEST(IdentityTest, PortsAreFrom1To65535) {
  for (const char* wrong : {"0", "65536", "94436", "4294967395", "port"}) {
    const std::string value = std::string("MASTER_PORT=") + wrong + " ";
    EXPECT_NE(refusal(with(kTorch, {{"MASTER_PORT", wrong}})).find(value), std::string::npos)
        << wrong;
    const std::string own = std::string("SLIME_PERF_PORT=") + wrong + " ";
    EXPECT_NE(
        refusal({{"SLIME_PERF_RANK", "0"}, {"SLIME_PERF_SIZE", "2"}, {"SLIME_PERF_PORT", wrong}})
            .find(own),
        std::string::npos)
        << wrong;
  }
}

TEST(IdentityTest, FirstHostOfALists) {
  EXPECT_EQ(first_host("a"), "a");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("gpu[007-009,12],login1"), "gpu007");
  EXPECT_EQ(first_host("login1,gpu[007-009]"), "login1");
  EXPECT_EQ(first_host("rack[1,2]-ib"), "rack1-ib");
  EXPECT_EQ(first_host("gpu[3"), "gpu3");
  EXPECT_EQ(first_host(""), "");
}

}  // namespace
}  // namespace slime::rendezvous
