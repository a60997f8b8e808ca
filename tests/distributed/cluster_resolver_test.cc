// SPDX-License-Identifier: Apache-2.0
#include "distributed/resolver/cluster_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>

#include "distributed/resolver/host_list.h"
#include "distributed/resolver/ranked_tasks.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsError;

using Variables = std::map<std::string, std::string, std::less<>>;
constexpr auto kInvalidFlags = StatusCode::kInvalidArgument;

StatusOr<ResolvedTask> Resolve(const Variables& variables, const ClusterFlags& flags = {},
                               const TaskWishes& wishes = {}) {
  return ResolveTask(flags, wishes, Environment(variables));
}

std::string MistakesOf(const Variables& variables, const ClusterFlags& flags = {}) {
  const auto task = Resolve(variables, flags);
  EXPECT_EQ(task.status().code(), kInvalidFlags);
  return std::string(Message(task.status()));
}

TEST(HostListTest, ExpandsAsSlurmDoes) {
  // The command `scontrol show hostnames` prints the same.
  EXPECT_THAT(*ExpandHostList("n1"), ElementsAre("n1"));
  EXPECT_THAT(*ExpandHostList("n[1-3,7],login"), ElementsAre("n1", "n2", "n3", "n7", "login"));
  EXPECT_THAT(*ExpandHostList("n[08-11]-ib"), ElementsAre("n08-ib", "n09-ib", "n10-ib", "n11-ib"));
  EXPECT_THAT(*ExpandHostList("r[1-2]n[1-2]"), ElementsAre("r1n1", "r1n2", "r2n1", "r2n2"));
  EXPECT_THAT(*ExpandCounts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  for (const char* wrong : {"", "n[1-", "n[3-1]", "n[a]", "n1,,n2", "n]", "n[1-99999]", "a b"}) {
    EXPECT_THAT(ExpandHostList(wrong), IsError(kInvalidFlags, "cannot read '")) << wrong;
  }
  for (const char* wrong : {"", "x", "2(x", "2(x99999)", "-1"}) {
    EXPECT_THAT(ExpandCounts(wrong), IsError(kInvalidFlags, "cannot read '")) << wrong;
  }
}

TEST(ClusterResolverTest, AProcessOfWhichNothingIsSaidIsAlone) {
  for (const Variables& variables :
       {Variables{},
        {{"TF_CONFIG", ""}},
        {{"TF_CONFIG", R"({"environment": "cloud"})"}},
        // A shell of salloc, a batch script, and a step or an mpirun of one process.
        {{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}},
        {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}},
        {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}}) {
    const auto task = Resolve(variables);
    ASSERT_OK(task.status());
    EXPECT_TRUE(task->is_alone());
    EXPECT_FALSE(task->is_by_environment);
  }
}

TEST(ClusterResolverTest, FlagsComeFirst) {
  const Variables config = {
      {"TF_CONFIG", R"({"cluster": {"worker": ["x:1", "y:1"]}, "task": {"type": "worker"}})"}};
  const auto task = Resolve(
      config,
      {.ps_hosts = "a:1", .worker_hosts = "b:1,c:1", .job_name = "worker", .task_index = 1});
  ASSERT_OK(task.status());
  EXPECT_EQ(task->Describe(),
            "cluster: ps=a:1;worker=b:1,c:1 (--ps_hosts, --worker_hosts)\n"
            "task: /job:worker/replica:0/task:1 (--job_name, --task_index)");
  EXPECT_FALSE(task->is_by_environment);
  // A flag may contradict one part of what the environment says.
  const auto other = Resolve({{"TF_CONFIG", R"({"cluster": {"worker": ["x:1", "y:1"]},
                                               "task": {"type": "worker", "index": 0}})"}},
                             {.job_name = "worker", .task_index = 1});
  ASSERT_OK(other.status());
  EXPECT_EQ(other->task, 1);
  EXPECT_EQ(other->settings[0].source, "TF_CONFIG");
}

TEST(ClusterResolverTest, TasksThatRegister) {
  const auto any = Resolve({}, {.rendezvous = "h:1", .num_workers = 2}, {.num_ps = 1});
  ASSERT_OK(any.status());
  EXPECT_FALSE(any->is_alone());
  EXPECT_TRUE(any->registration->job.empty());
  EXPECT_EQ(any->Describe(),
            "cluster: 1 ps and 2 workers, which register at h:1 (--rendezvous, --num_workers)");
  const auto third = Resolve(
      {},
      {.job_name = "worker", .task_index = 2, .num_ps = 0, .rendezvous = "h:1", .num_workers = 3});
  ASSERT_OK(third.status());
  EXPECT_EQ(third->registration->task, 2);
  EXPECT_THAT(third->Describe(),
              HasSubstr("\ntask: /job:worker/replica:0/task:2 (--job_name, --task_index)"));
  // Ranks of MPI on several hosts have numbers and no addresses.
  const Variables ranks = {{"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const auto rank = Resolve(ranks, {.num_ps = 1, .rendezvous = "h:1"});
  ASSERT_OK(rank.status());
  EXPECT_EQ(rank->registration->num_workers, 3);
  EXPECT_EQ(rank->registration->job, "worker");
  EXPECT_EQ(rank->registration->task, 1);
  EXPECT_THAT(rank->Describe(), HasSubstr("(OMPI_COMM_WORLD_RANK)"));
  EXPECT_THAT(MistakesOf(ranks, {.rendezvous = "h:1", .num_workers = 2}),
              HasSubstr("OMPI_COMM_WORLD_SIZE: there are 4 processes, and --num_ps and "
                        "--num_workers say 0 and 2"));
  EXPECT_THAT(MistakesOf(ranks, {.num_ps = 4, .rendezvous = "h:1"}), HasSubstr("none is left"));
  EXPECT_THAT(MistakesOf(ranks), HasSubstr("give --rendezvous with a port of one of the hosts"));
  const std::string wrong =
      MistakesOf({}, {.ps_hosts = "a:1", .job_name = "chief", .rendezvous = "h", .num_workers = 2});
  EXPECT_THAT(wrong, HasSubstr("--rendezvous: 'h'"));
  EXPECT_THAT(wrong, HasSubstr("--rendezvous: excludes --cluster, --ps_hosts and --worker_hosts"));
  EXPECT_THAT(wrong, HasSubstr("--job_name: found 'chief', wanted ps or worker"));
  EXPECT_THAT(MistakesOf({}, {.rendezvous = "h:1"}), HasSubstr("give --num_workers, at least 1"));
  EXPECT_THAT(MistakesOf({}, {.task_index = 1, .rendezvous = "h:1", .num_workers = 2}),
              HasSubstr("--task_index: of which job?"));
  EXPECT_THAT(
      MistakesOf(
          {},
          {.job_name = "ps", .task_index = 1, .num_ps = 1, .rendezvous = "h:1", .num_workers = 2}),
      HasSubstr("this is task 1 of job ps, of which there are 1"));
}

TEST(ClusterResolverTest, ARankOfPmixWantsToKnowHowManyThereAre) {
  const Variables rank = {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "prterun-h-7@1"}};
  EXPECT_THAT(MistakesOf(rank), HasSubstr("PMIx says that this is rank 1 (PMIX_RANK), and not how "
                                          "many there are, nor where: give --rendezvous"));
  EXPECT_THAT(MistakesOf(rank, {.rendezvous = "h:1"}), HasSubstr("give --num_workers, at least 1"));
  EXPECT_THAT(MistakesOf(rank, {.rendezvous = "h:1", .num_workers = 1}),
              HasSubstr("PMIX_RANK: this is rank 1, and --num_ps and --num_workers say 0 and 1"));
  const auto registers = Resolve(rank, {.num_ps = 1, .rendezvous = "h:1", .num_workers = 2});
  ASSERT_OK(registers.status());
  EXPECT_EQ(registers->Describe(),
            "cluster: 1 ps and 2 workers, which register at h:1 (--rendezvous, --num_ps, "
            "--num_workers)\ntask: /job:worker/replica:0/task:0 (PMIX_RANK)");
  const auto listed = Resolve(rank, {.ps_hosts = "a:1", .worker_hosts = "b:1,c:1"});
  ASSERT_OK(listed.status());
  EXPECT_THAT(listed->Describe(), HasSubstr("task: /job:worker/replica:0/task:0 (PMIX_RANK)"));
  EXPECT_THAT(MistakesOf(rank, {.worker_hosts = "b:1"}),
              HasSubstr("PMIX_RANK: this is rank 1, and the cluster (--ps_hosts, --worker_hosts) "
                        "has 1 task; ranks are counted from 0"));
  // A launcher that says more is believed.
  Variables more = rank;
  more.insert({{"OMPI_COMM_WORLD_RANK", "1"},
               {"OMPI_COMM_WORLD_SIZE", "2"},
               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  const auto open_mpi = Resolve(more);
  ASSERT_OK(open_mpi.status());
  EXPECT_THAT(open_mpi->Describe(), HasSubstr("(OMPI_COMM_WORLD_RANK)"));
  more = rank;
  more.insert({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}});
  EXPECT_TRUE(Resolve(more)->is_alone());
}

TEST(ClusterResolverTest, SecondsOfTheStartUpDeadlineAreChecked) {
  for (const double wrong : {-1.0, 1e300, std::nan("")}) {
    EXPECT_THAT(MistakesOf({}, {.start_up_deadline = wrong}),
                HasSubstr("--start_up_deadline: found "));
  }
  EXPECT_EQ(StartUpDeadline({.start_up_deadline = 1.5}), std::chrono::milliseconds(1500));
}

TEST(ClusterResolverTest, TfConfigsAsPeopleHaveThem) {
  // TensorFlow's guide; numbers as texts; a master; TFJob's sparse cluster; a task without a
  // number.
  const std::string cluster = R"("cluster": {"chief": ["a:1"], "ps": ["b:1", "c:1"],
      "worker": ["d:1", "e:1"]})";
  const auto chief = Resolve({{"TF_CONFIG", "{" + cluster + R"(, "task": {"type": "chief"}})"}});
  ASSERT_OK(chief.status());
  EXPECT_EQ(chief->job, "chief");
  EXPECT_EQ(chief->role, TaskRole::kChief);
  EXPECT_TRUE(chief->is_by_environment);
  const auto worker =
      Resolve({{"TF_CONFIG", "{" + cluster + R"(, "task": {"type": "worker", "index": "1"},
                                      "environment": "cloud", "job": {"scale_tier": "X"}})"}});
  ASSERT_OK(worker.status());
  EXPECT_EQ(*worker->cluster.Address(worker->job, worker->task), "e:1");
  const auto sparse = Resolve({{"TF_CONFIG", R"({"sparseCluster": {"worker": {"3": "w:1"},
      "ps": ["p:1"]}, "task": {"type": "worker", "index": 3}})"}});
  ASSERT_OK(sparse.status());
  EXPECT_EQ(sparse->cluster.ToString(), "ps=p:1;worker=[3]w:1");
  const auto evaluator =
      Resolve({{"TF_CONFIG", "{" + cluster + R"(, "task": {"type": "evaluator", "index": 0}})"}});
  ASSERT_OK(evaluator.status());
  EXPECT_EQ(evaluator->role, TaskRole::kEvaluator);
  EXPECT_FALSE(evaluator->is_alone());
  EXPECT_FALSE(evaluator->cluster.jobs().contains("evaluator"));
}

TEST(ClusterResolverTest, AChiefIsTheFirstOfTheWorkers) {
  for (const std::string chief : {"chief", "master"}) {
    const std::string cluster =
        R"({"cluster": {")" + chief + R"(": ["a:1"], "ps": ["b:1"], "worker": ["d:1", "e:1"]}, )";
    const TaskWishes wishes = {.chief_is_worker = true};
    const auto first =
        Resolve({{"TF_CONFIG", cluster + R"("task": {"type": ")" + chief + R"(", "index": 0}})"}},
                {}, wishes);
    const auto last = Resolve(
        {{"TF_CONFIG", cluster + R"("task": {"type": "worker", "index": 1}})"}}, {}, wishes);
    ASSERT_OK(first.status());
    ASSERT_OK(last.status());
    EXPECT_EQ(first->cluster.ToString(), "ps=b:1;worker=a:1,d:1,e:1");
    EXPECT_EQ(last->cluster, first->cluster);
    EXPECT_EQ(TaskName(first->job, first->task), "/job:worker/replica:0/task:0");
    EXPECT_EQ(*last->cluster.Address(last->job, last->task), "e:1");
    EXPECT_EQ(last->task, 2);
  }
}

TEST(ClusterResolverTest, EveryMistakeOfATfConfigIsToldAtOnce) {
  const struct {
    std::string config, wanted;
  } cases[] = {
      {"{'cluster': {'worker': ['a:1']}}",
       "TF_CONFIG: it is no JSON: found ''cluster': {'worker': ['a:1']}}' at byte 2; JSON has "
       "double quotes (\"), and the shell wants single ones around the whole: "
       "TF_CONFIG='{\"cluster\": ...}'"},
      {"{\"cluster\": {\"worker\": [\"a:1\"]}", "it is no JSON: found the end at byte 32"},
      {"[1]", "found [1], wanted an object {\"cluster\": ..., \"task\": ...}"},
      {R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 2}})",
       "TF_CONFIG: this is task 2 of job worker, and the cluster (TF_CONFIG) has worker 0 to 1; "
       "tasks are counted from 0"},
      {R"({"cluster": {"worker": ["a:1", "a:1"]}, "task": {"type": "worker", "index": 0}})",
       "address a:1 is that of /job:worker/replica:0/task:0 and of /job:worker/replica:0/task:1"},
      {R"({"cluster": {"wroker": ["a:1"]}, "task": {"type": "wroker", "index": 0}})",
       "cluster has a job 'wroker'; did you mean 'worker'?"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "workers", "index": 0}})",
       "the cluster (TF_CONFIG) has no job 'workers'; did you mean 'worker'?"},
      {R"({"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}})",
       "'a' of task 0 of job 'worker' is not an address; wanted host:port"},
      {R"({"cluster": {"worker": "a:1"}, "task": {"type": "worker", "index": 0}})",
       R"(job 'worker' is "a:1", wanted a list such as ["host:port"])"},
      {R"({"cluster": {"worker": [1]}, "task": {"type": "worker", "index": 0}})",
       "task 0 of job 'worker' is at 1, wanted a text \"host:port\""},
      {R"({"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}})",
       "job 'chief' has 2 tasks; there is one chief"},
      {R"({"cluster": {"worker": ["a:1"]}})",
       R"(it has a cluster and no "task": {"type": ..., "index": ...})"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"index": 0}})", "task has no \"type\""},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}})", "task has no \"index\""},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "one"}})",
       "task's index is \"one\", wanted a number"},
      {R"({"Cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}})",
       "found a member 'Cluster'; did you mean 'cluster'?"}};
  for (const auto& c : cases) {
    EXPECT_THAT(MistakesOf({{"TF_CONFIG", c.config}}), HasSubstr(c.wanted)) << c.config;
  }
  const std::string several = MistakesOf(
      {{"TF_CONFIG", R"({"cluster": {"wroker": ["a"], "ps": ["b:1", "b:1"]}, "task": 3})"}});
  EXPECT_EQ(std::count(several.begin(), several.end(), '\n'), 3) << several;
}

TEST(ClusterResolverTest, RanksOfOneHost) {
  const Variables ompi = {{"OMPI_COMM_WORLD_RANK", "2"},
                          {"OMPI_COMM_WORLD_SIZE", "4"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                          {"PMIX_NAMESPACE", "1234"}};
  const auto task = Resolve(ompi, {.first_port = 5000}, {.num_ps = 1});
  ASSERT_OK(task.status());
  EXPECT_EQ(task->cluster.ToString(),
            "ps=127.0.0.1:5000;worker=127.0.0.1:5001,127.0.0.1:5002,127.0.0.1:5003");
  EXPECT_EQ(TaskName(task->job, task->task), "/job:worker/replica:0/task:1");
  EXPECT_EQ(task->settings[1].source, "OMPI_COMM_WORLD_RANK");
  const auto without = Resolve(ompi, {.num_ps = 0});
  ASSERT_OK(without.status());
  EXPECT_EQ(without->cluster.NumTasks("worker"), 4);
  const int port = FindRankedTasks(Environment(ompi)).value()->first_port;
  EXPECT_GE(port, 10000);
  EXPECT_LT(port, 32000);
  EXPECT_EQ(port % 100, 0);
  const auto pmi =
      Resolve({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"MPI_LOCALNRANKS", "3"}}, {}, {.num_ps = 1});
  ASSERT_OK(pmi.status());
  EXPECT_EQ(pmi->job, "ps");
}

TEST(ClusterResolverTest, RanksOnHostsThatNothingNamesTakeTheirPlaceInTheFlags) {
  const Variables apart = {{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "3"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
  EXPECT_THAT(Resolve(apart), IsError(StatusCode::kInvalidArgument,
                                      "Open MPI has started 3 processes, of which 1 are on this "
                                      "host (OMPI_COMM_WORLD_LOCAL_SIZE)"));
  const auto task = Resolve(apart, {.ps_hosts = "a:1", .worker_hosts = "b:1,c:1"});
  ASSERT_OK(task.status());
  EXPECT_EQ(TaskName(task->job, task->task), "/job:worker/replica:0/task:0");
  EXPECT_THAT(Resolve(apart, {.worker_hosts = "b:1,c:1"}),
              IsError(kInvalidFlags,
                      "OMPI_COMM_WORLD_SIZE: there are 3 processes, and the cluster (--ps_hosts, "
                      "--worker_hosts) has 2 tasks"));
  EXPECT_THAT(Resolve(apart, {.num_ps = 3}), IsError(kInvalidFlags, "Open MPI has started 3"));
}

Variables Step(int rank, int node, int local, const std::string& distribution = "") {
  return {{"SLURM_JOB_ID", "42"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", StrCat(rank)},
          {"SLURM_STEP_NUM_TASKS", "5"},
          {"SLURM_NODEID", StrCat(node)},
          {"SLURM_LOCALID", StrCat(local)},
          {"SLURM_STEP_NODELIST", "n[1-3]"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
          {"SLURM_DISTRIBUTION", distribution}};
}

TEST(ClusterResolverTest, StepsOfSlurm) {
  const auto block = Resolve(Step(3, 1, 1), {.first_port = 9000}, {.num_ps = 1});
  ASSERT_OK(block.status());
  EXPECT_EQ(block->cluster.ToString(), "ps=n1:9000;worker=n1:9001,n2:9000,n2:9001,n3:9000");
  EXPECT_EQ(block->task, 2);
  EXPECT_THAT(block->settings[0].source, HasSubstr("SLURM_STEP_NODELIST"));
  const auto cyclic = Resolve(Step(3, 0, 1, "cyclic"), {.first_port = 9000}, {.num_ps = 1});
  ASSERT_OK(cyclic.status());
  EXPECT_EQ(cyclic->cluster.ToString(), "ps=n1:9000;worker=n2:9000,n3:9000,n1:9001,n2:9001");
  EXPECT_THAT(Resolve(Step(3, 2, 0)),
              IsError(kInvalidFlags, "start the step with srun --distribution=block"));
  Variables few = Step(0, 0, 0);
  few["SLURM_STEP_TASKS_PER_NODE"] = "2(x2)";
  EXPECT_THAT(Resolve(few), IsError(kInvalidFlags, "Slurm's variables contradict each other"));
  Variables none = Step(0, 0, 0);
  none.erase("SLURM_STEP_NODELIST");
  EXPECT_THAT(Resolve(none), IsError(kInvalidFlags, "has no SLURM_STEP_NODELIST"));
  EXPECT_THAT(Resolve(Step(0, 0, 0), {.num_ps = 5}),
              IsError(kInvalidFlags, "--num_ps: 5 of the 5 processes of Slurm are parameter"));
}

TEST(ClusterResolverTest, FlagsThatAreNotEnough) {
  EXPECT_THAT(MistakesOf({}, {.task_index = 1}), HasSubstr("--worker_hosts"));
  EXPECT_THAT(MistakesOf({}, {.worker_hosts = "a:1"}),
              HasSubstr("--job_name: nothing says which job of the cluster this process is of"));
  EXPECT_THAT(
      MistakesOf({}, {.worker_hosts = "a:1", .cluster = "worker=b:1", .job_name = "worker"}),
      HasSubstr("--cluster: excludes --ps_hosts and --worker_hosts"));
  EXPECT_THAT(MistakesOf({}, {.worker_hosts = "a:1", .job_name = "ps"}),
              HasSubstr("the cluster (--ps_hosts, --worker_hosts) has no job 'ps'"));
}

}  // namespace
}  // namespace tenon
