// SPDX-License-Identifier: Apache-2.0
//
// Training by allreduce over tables that are cut into shards: each rank reads its share, the ranks
// agree on the least and the greatest number of each column, and train one network in step. A shard
// is a folder with descriptors.tsv (an ID and numbers) and targets.tsv (an ID, and 0 or 1).
//
//   python3 share/bench/make_tables.py DIR --shards 8 --rows 20000
//   mpirun -np 2 example_tables_allreduce --data DIR
//
// or by `tenon launch --allreduce --workers 2 -- example_tables_allreduce --data DIR`, or alone.
//
// The program follows a description of one with Horovod. Its WindowInput scales each descriptor
// from the minimum and maximum of a DistributedTable to a window; the description leaves open which
// one, and here it is [-1, 1].
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "examples/parse_flags.h"
#include "examples/program_end.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;  // NOLINT: a program about Tenon

struct Flags : ReplicaFlags {
  std::string data, id = "ID", target = "target", partition_strategy = "mod", checkpoint_dir;
  std::vector<std::string> descriptors;
  int64_t iterations = 1000, batch_size = 100, restarts = 5, seed = 1;
  double learning_rate = 0.001, l2 = 0.001, rank_limit = 300;
};

/// Prints a line at once and in one piece: other tasks may print to the same place.
void Say(const std::string& line) { std::cout << line + "\n" << std::flush; }

/// The master's IDs are the rows; their targets are looked up.
ShardedTablesOptions Schema(const Flags& flags) {
  const std::string& strategy = flags.partition_strategy;
  return {.tables = {{.file = "descriptors.tsv",
                      .kind = ShardedTable::Kind::kMaster,
                      .columns = flags.descriptors},
                     {.file = "targets.tsv",
                      .kind = ShardedTable::Kind::kLookup,
                      .columns = {flags.target},
                      .dtype = DType::kBool}},
          .id = flags.id,
          .partition = strategy == "mod"   ? ShardPartition::kMod
                       : strategy == "div" ? ShardPartition::kDiv
                                           : ShardPartition::kOwn};
}

/// Scales each column of `x` from its least and greatest number on all ranks to [-1, 1]; one that
/// is the same everywhere to 0.
Output WindowInput(const Output& x, const DistributedTable& table) {
  std::vector<float> middle, half;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const double min = table.min[c], max = table.max[c];
    middle.push_back(static_cast<float>((min + max) / 2));
    half.push_back(static_cast<float>((max - min) / 2));
    if (half[c] < std::numeric_limits<float>::min()) half[c] = 1;
  }
  return (x - Const(Tensor::Vector(middle))) / Const(Tensor::Vector(half));
}

/// The result of one training.
struct Fit {
  double loss = 0;  // of all rows of all ranks, with the penalty
  Tensor logits;    // of this rank's rows
  int64_t steps = 0;
};

StatusOr<Fit> TrainOnce(const Flags& flags, Communicator& ranks, int64_t restart,
                        const std::string& checkpoint_dir, const DistributedTable& descriptors,
                        const Tensor& targets) {
  const int64_t seed = flags.seed + restart;
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(seed);
  const auto columns = static_cast<int64_t>(descriptors.columns.size());
  const Output x = Placeholder(DType::kFloat, {-1, columns}, {.name = "x"});
  const Output y = Placeholder(DType::kFloat, {-1, 1}, {.name = "y"});
  const auto layer = [&flags](int64_t units, const Activation& activation) {
    return Dense(units, {.activation = activation, .kernel_regularizer = L2Regularizer(flags.l2)});
  };
  const Output logits = layer(1, {})(layer(5, Tanh)(layer(20, Tanh)(WindowInput(x, descriptors))));
  const Output error =
      losses::SigmoidCrossEntropy(y, logits, {.reduction = losses::Reduction::kSum});
  const Output penalty = losses::GetRegularizationLoss();
  Adam adam(flags.learning_rate);
  DistributedOptimizer optimizer(adam);
  const Variable step = GlobalStep();
  Node* const train = optimizer.Minimize(error + penalty, {.global_step = step});

  TENON_ASSIGN_OR_RETURN(
      const auto session,
      MonitoredTrainingSession::Start({.checkpoint_dir = ranks.rank() == 0 ? checkpoint_dir : "",
                                       .save_summaries_steps = 0,
                                       .hooks = {KeepRanksInStep(), StopAtStep(flags.iterations)},
                                       .communicator = &ranks,
                                       .notice = Say}));
  // Every rank makes as many steps, with batches of its own rows, in a new order each time that all
  // have come: who has fewer rows takes them more often.
  const auto shuffle = static_cast<uint64_t>(seed * ranks.size() + ranks.rank());
  TENON_ASSIGN_OR_RETURN(auto batches,
                         ShuffledBatches::Create({descriptors.rows, targets}, shuffle));
  batches.Seek(session->global_step() * flags.batch_size);
  while (!session->ShouldStop()) {
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> batch, batches.Next(flags.batch_size));
    TENON_RETURN_IF_ERROR(session->Run({{x, batch[0]}, {y, batch[1]}}, {}, {train}).status());
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> all,
                         session->RunWithoutHooks({{x, descriptors.rows}, {y, targets}},
                                                  {error, penalty, logits, step}));
  TENON_RETURN_IF_ERROR(session->Close());
  TENON_ASSIGN_OR_RETURN(const Tensor sum, ReduceOverRanks(ranks, "loss", all[0]));
  return Fit{sum.scalar<float>() + all[1].scalar<float>(), all[2], all[3].scalar<int64_t>()};
}

/// The area under the ROC curve: how often a row with target 1 has a greater score than one with
/// target 0, where equal ones count half (Mann and Whitney 1947).
double Auc(const Tensor& scores, const Tensor& targets) {
  std::map<float, std::pair<double, double>> counts;  // of targets 0 and 1, by their score
  for (int64_t i = 0; i < scores.num_elements(); ++i) {
    auto& [zeros, ones] = counts[scores.data<float>()[i]];
    (targets.data<float>()[i] == 0 ? zeros : ones) += 1;
  }
  double below = 0, pairs = 0, positives = 0;
  for (const auto& [score, count] : counts) {
    pairs += count.second * (below + count.first / 2);
    below += count.first;
    positives += count.second;
  }
  return pairs / (below * positives);
}

Status Train(const Flags& flags, Communicator& ranks) {
  TENON_ASSIGN_OR_RETURN(const std::vector<DistributedTable> tables,
                         ReadShardedTables(ranks, flags.data, Schema(flags)));
  const DistributedTable &descriptors = tables[0], &targets = tables[1];
  Status both;
  if (targets.min == targets.max) {
    both = InvalidArgument("all targets are ", targets.min[0], ", wanted some of 0 and some of 1");
  }
  TENON_RETURN_IF_ERROR(OkOnAllRanks(ranks, "targets", both));
  const auto rank = static_cast<size_t>(ranks.rank());
  Say(StrCat("rank ", rank, " of ", ranks.size(), ": ", descriptors.rows_of_ranks[rank],
             " rows of ", descriptors.columns.size(), " descriptors in ",
             descriptors.shards_of_ranks[rank], " shards"));
  Fit best;
  int64_t best_restart = -1;
  const auto folder = [&flags](int64_t restart) {
    return flags.checkpoint_dir.empty() ? ""
                                        : StrCat(flags.checkpoint_dir, "/restart_", restart + 1);
  };
  for (int64_t restart = 0; restart < flags.restarts; ++restart) {
    TENON_ASSIGN_OR_RETURN(
        Fit fit, TrainOnce(flags, ranks, restart, folder(restart), descriptors, targets.rows));
    if (fit.steps < flags.iterations) {
      if (rank == 0) Say(StoppedAfter(fit.steps, flags.checkpoint_dir));
      return OkStatus();
    }
    if (rank == 0) Say(absl::StrFormat("restart %d: loss %.4f", restart + 1, fit.loss));
    if (std::isfinite(fit.loss) && (best_restart < 0 || fit.loss < best.loss)) {
      best = std::move(fit);
      best_restart = restart;
    }
  }
  Status finite;
  if (best_restart < 0) finite = OutOfRange("no training has ended with a finite loss");
  TENON_RETURN_IF_ERROR(OkOnAllRanks(ranks, "losses", finite));
  TENON_ASSIGN_OR_RETURN(const Tensor logits, GatherRows(ranks, "logits", best.logits));
  TENON_ASSIGN_OR_RETURN(const Tensor labels, GatherRows(ranks, "labels", targets.rows));
  if (rank != 0) return OkStatus();
  Say(absl::StrFormat("best: restart %d, loss %.4f, AUC %.5f of %d rows%s", best_restart + 1,
                      best.loss, Auc(logits, labels), labels.dim(0),
                      flags.checkpoint_dir.empty() ? "" : ", in " + folder(best_restart)));
  return OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("A network for sharded tables, trained by allreduce");
  flags.AddTo(app);
  app.add_option("--data", flags.data, "Folder with a folder for each shard")->required();
  app.add_option("--id", flags.id, "Column with the ID, in both tables");
  app.add_option("--descriptors", flags.descriptors,
                 "Columns of descriptors.tsv, by commas; default: all but the ID")
      ->delimiter(',');
  app.add_option("--target", flags.target, "Column of targets.tsv, of 0 and 1");
  app.add_option("--partition_strategy", flags.partition_strategy,
                 "Whose a shard is: mod, by its number modulo the ranks; div, successive ones of "
                 "each rank; own, all that are in this rank's --data")
      ->check(CLI::IsMember({"mod", "div", "own"}));
  app.add_option("--checkpoint_dir", flags.checkpoint_dir, "Folder for a folder of each restart");
  app.add_option("--iterations", flags.iterations, "Steps of each restart")
      ->check(Between(1, INT32_MAX));
  app.add_option("--batch_size", flags.batch_size, "Rows of a rank in a step")
      ->check(Between(1, INT32_MAX));
  app.add_option("--restarts", flags.restarts, "Trainings, of which the best is kept")
      ->check(Between(1, INT32_MAX));
  app.add_option("--learning_rate", flags.learning_rate)->check(Above(0));
  app.add_option("--l2", flags.l2, "Penalty of each weight's square")->check(AtLeast(0));
  app.add_option("--seed", flags.seed, "Of initial weights and orders")
      ->check(Between(0, INT32_MAX));
  app.add_option("--rank_limit", flags.rank_limit, "Seconds that a rank is waited for in a step")
      ->check(Between(0.001, 1e9));
  if (const auto code = ParseFlags(app, argc, argv)) return *code;
  const JoinRanksOptions joining = {
      .limit = std::chrono::milliseconds(static_cast<int64_t>(flags.rank_limit * 1000)),
      .notice = Say};
  return ExitCode(RunRank(
      flags, AllOps(), [&](Communicator& ranks) { return Train(flags, ranks); }, joining));
}
