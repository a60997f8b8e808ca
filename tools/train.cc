// SPDX-License-Identifier: Apache-2.0
#include "ops/register.h"
#include "tools/commands.h"
#include "tools/train_linear.h"
#include "tools/train_mnist.h"
#include "train/replica_flags.h"
#include "train/sessions/stop_signal.h"

namespace tenon::tools {
namespace {

/// Thirty years.
constexpr double kMostSeconds = 1e9;

}  // namespace

void AddTrainCommand(CLI::App& app, Command* chosen) {
  CLI::App* train = app.add_subcommand("train", "Train one of the built-in models");
  train->require_subcommand(1);
  auto flags = std::make_shared<TrainMnistFlags>();
  CLI::App* mnist = train->add_subcommand(
      "mnist",
      "Handwritten digits: in this process, or as one task of a cluster (tenon launch --ps 1 "
      "--workers 2 -- tenon train mnist). With --checkpoint_dir the same command goes on where it "
      "was ended, by ctrl-C or otherwise");
  mnist
      ->add_option(
          "--model", flags->model,
          "mlp: 784-128-64-10 with ReLU and Adam; conv: two convolutions, two dense layers and "
          "Adam; classic: 784-100-10 with sigmoids and gradient descent")
      ->check(CLI::IsMember({"mlp", "conv", "classic"}));
  mnist->add_option("--data", flags->data, "Folder of the MNIST files; default: those of Tenon");
  mnist->add_option("--logs", flags->logs, "Folder for TensorBoard; default: none");
  mnist->add_option("--checkpoint_dir", flags->checkpoint_dir,
                    "Folder of checkpoints, which all tasks see: begin with the latest, save as it "
                    "goes; default: none");
  mnist->add_option("--save_seconds", flags->save_seconds, "Seconds between two checkpoints")
      ->check(Between(0, kMostSeconds));
  mnist->add_option(
      "--curve", flags->curve,
      "File for the learning curve, an SVG picture, which goes on with that of the checkpoint that "
      "training begins with; default: learning_curve.svg beside the checkpoints, or the logs");
  mnist
      ->add_option(
          "--epochs", flags->epochs,
          "Times through the data, for each worker; in step, for all together; default: 8, "
          "of classic 20")
      ->check(AtLeast(1));
  mnist
      ->add_option("--max_steps", flags->max_steps,
                   "End when so many steps were made by all workers, instead; default: by --epochs")
      ->check(AtLeast(1));
  auto* sync = mnist->add_flag("--sync", flags->sync,
                               "Workers go in step: each step is the mean of their gradients");
  mnist->add_option("--backup", flags->backup, "A step goes on without the slowest so many workers")
      ->check(AtLeast(0))
      ->needs(sync);
  mnist
      ->add_option(
          "--shards", flags->shards,
          "Cut each step into so many batches, always added in the same order: the results do "
          "not depend on the number of tasks; default: one batch a worker, in any order")
      ->check(AtLeast(1))
      ->needs(sync);
  mnist
      ->add_flag(
          "--allreduce", flags->allreduce,
          "Workers go in step without parameter servers: each has all variables, and applies "
          "the mean of the gradients of all; so they do under mpirun, unless --num_ps says "
          "otherwise")
      ->excludes(sync);
  mnist
      ->add_option("--rank_limit", flags->rank_limit,
                   "With it: seconds that a worker is waited for in a step; then all end; default: "
                   "300")
      ->check(Between(0.001, kMostSeconds));
  mnist
      ->add_option("--collectives", flags->collectives,
                   "With it: the library by which workers add up: gloo, over TCP; mpi, that of the "
                   "mpirun that has started them; auto, mpi where an mpirun has, and else gloo, "
                   "and on GPUs nccl where all have one; nccl, the same or an error; default: auto")
      ->check(CLI::IsMember({"auto", "gloo", "mpi", "nccl"}));
  mnist->add_option("--batch", flags->batch, "Images a step")->check(AtLeast(1));
  mnist
      ->add_option("--learning_rate", flags->learning_rate,
                   "Of the first step; it falls to nothing at the end, but for classic, where it "
                   "stays; default: 0.001")
      ->check(Above(0));
  AddClusterFlags(*mnist, &flags->cluster);
  flags->access.AddTo(*mnist);
  AddTrainLinearCommand(*train, chosen);
  mnist->callback([=] {
    *chosen = [flags] {
      const int code = Report(TrainMnist(*flags, AllOps()));
      return code == kDone ? SignalCode(StopSignal::last_received()) : code;
    };
  });
}

}  // namespace tenon::tools
