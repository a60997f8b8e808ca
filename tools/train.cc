// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "core/building.h"
#include "data/event_file.h"
#include "data/mnist.h"
#include "data/shuffled_batches.h"
#include "runtime/local_session.h"
#include "tools/access_flags.h"
#include "tools/commands.h"
#include "tools/mnist_model.h"
#include "tools/processes.h"
#include "tools/progress.h"
#include "train/replica_flags.h"
#include "train/supervisor.h"

namespace tenon::tools {
namespace {

struct TrainFlags {
  std::string data, logs;
  ReplicaFlags replica;
  int epochs = 20;
  int64_t batch = 100;
  double learning_rate = 0.001;
  ServerAccessFlags access;
};

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

/// Trains in the session that `open` gives and reports on standard output.
Status Train(const TrainFlags& flags, const Graph& graph, const MnistModel& model,
             const std::function<StatusOr<std::unique_ptr<Session>>()>& open) {
  SupervisorOptions options;
  options.is_chief = flags.replica.task_index == 0;
  options.notice = PrintNotice;
  Supervisor supervisor(options);
  TENON_RETURN_IF_ERROR(graph.error());
  std::string folder = flags.data;
  if (folder.empty()) {
    TENON_ASSIGN_OR_RETURN(folder, FindShared("mnist"));
  }
  TENON_ASSIGN_OR_RETURN(const Mnist mnist, LoadMnist(folder));
  const int64_t images = mnist.train.images.dim(0);
  if (flags.batch > images) {
    return WrongUsage(
        StrCat("--batch ", flags.batch, " is more than the ", images, " images to train with"));
  }
  TENON_ASSIGN_OR_RETURN(const auto session, supervisor.PrepareOrWaitForSession(open));
  std::unique_ptr<EventWriter> writer;
  if (!flags.logs.empty()) {
    const std::string events = StrCat(flags.logs, "/worker", flags.replica.task_index);
    TENON_ASSIGN_OR_RETURN(writer, EventWriter::Create(events, graph));
  }
  std::vector<Output> fetches = {model.cross_entropy, model.global_step};
  if (writer != nullptr) fetches.push_back(model.summary);
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({model.images, model.labels}, fetches,
                                                           {model.train_op}));
  TENON_ASSIGN_OR_RETURN(
      ShuffledBatches batches,
      ShuffledBatches::Create({mnist.train.images, mnist.train.labels}, flags.replica.task_index));
  const int64_t per_epoch = batches.num_rows() / flags.batch;
  const int64_t steps = per_epoch * flags.epochs;
  Progress progress("training", steps);
  const auto start = std::chrono::steady_clock::now();
  std::vector<Tensor> fetched;
  for (int64_t i = 0; i < steps; ++i) {
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> batch, batches.Next(flags.batch));
    TENON_RETURN_IF_ERROR(step->Run(batch, &fetched));
    if (const float cost = fetched[0].scalar<float>(); !std::isfinite(cost)) {
      progress.Finish();
      return OutOfRange("training has diverged: the cost is ", cost, " after ", i + 1,
                        " steps; try a --learning_rate smaller than ", flags.learning_rate);
    }
    if (writer != nullptr) {
      TENON_RETURN_IF_ERROR(writer->AddSummary(fetched[2].scalar<TString>(),
                                               static_cast<int64_t>(fetched[1].scalar<float>())));
    }
    if (writer != nullptr && (i + 1) % per_epoch == 0) {
      TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                             session->Run({}, {model.histograms, model.global_step}));
      TENON_RETURN_IF_ERROR(writer->AddSummary(values[0].scalar<TString>(),
                                               static_cast<int64_t>(values[1].scalar<float>())));
    }
    progress.Advance(i + 1,
                     [&] { return absl::StrFormat("cost %.4f", fetched[0].scalar<float>()); });
  }
  const double seconds = Seconds(start);
  progress.Finish();
  TENON_ASSIGN_OR_RETURN(
      const float accuracy,
      session->Run<float>({{model.images, mnist.test.images}, {model.labels, mnist.test.labels}},
                          model.accuracy));
  std::printf("test accuracy: %.4f\n", accuracy);
  std::printf("steps per second: %.1f\n", static_cast<double>(steps) / seconds);
  return OkStatus();
}

Status TrainHere(const TrainFlags& flags, const OpRegistry& ops) {
  Graph graph(ops);
  GraphBuilding building(graph);
  SetRandomSeed(1);
  const MnistModel model = BuildMnistModel(flags.learning_rate);
  return Train(flags, graph, model, [&] { return MakeLocalSession(graph); });
}

/// Between-graph replication: as a worker of a cluster, or as one of its parameter servers.
Status TrainInCluster(const TrainFlags& flags, const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(ServerOptions options, flags.replica.Options());
  options.notice = PrintNotice;
  TENON_RETURN_IF_ERROR(flags.access.ApplyTo(&options));
  return RunReplica(options, ops, [&](Server& server) {
    Graph graph(ops);
    GraphBuilding building(graph);
    SetRandomSeed(1);
    MnistModel model;
    {
      const DeviceScope replica(ReplicaDeviceSetter(server));
      model = BuildMnistModel(flags.learning_rate);
    }
    return Train(flags, graph, model, [&] { return server.MakeSession(graph); });
  });
}

}  // namespace

void AddTrainCommand(CLI::App& app, const OpRegistry& ops, Command* chosen) {
  CLI::App* train = app.add_subcommand("train", "Train one of the built-in models");
  train->require_subcommand(1);
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* mnist = train->add_subcommand(
      "mnist",
      "Handwritten digits with a 784-100-10 network: in this process, or as one task of a cluster "
      "(tenon launch --ps 1 --workers 2 -- tenon train mnist)");
  mnist->add_option("--data", flags->data, "Folder of the MNIST files (default: those of Tenon)");
  mnist->add_option("--logs", flags->logs, "Folder for TensorBoard");
  mnist->add_option("--epochs", flags->epochs, "Times through the data, for each worker")
      ->check(AtLeast(1));
  mnist->add_option("--batch", flags->batch, "Images a step")->check(AtLeast(1));
  mnist->add_option("--learning_rate,--learning-rate", flags->learning_rate);
  auto* ps = mnist->add_option("--ps_hosts,--ps-hosts", flags->replica.ps_hosts, "host:port,...");
  auto* workers = mnist->add_option("--worker_hosts,--worker-hosts", flags->replica.worker_hosts,
                                    "host:port,...");
  auto* job = mnist->add_option("--job_name,--job-name", flags->replica.job_name, "ps or worker")
                  ->check(CLI::IsMember({"ps", "worker"}));
  mnist
      ->add_option("--task_index,--task-index", flags->replica.task_index,
                   "Number of this task in its job")
      ->check(AtLeast(0));
  ps->needs(workers)->needs(job);
  workers->needs(ps);
  job->needs(ps);
  flags->access.AddTo(*mnist);
  mnist->callback([=, &ops] {
    *chosen = [flags, &ops] {
      return Report(flags->replica.job_name.empty() ? TrainHere(*flags, ops)
                                                    : TrainInCluster(*flags, ops));
    };
  });
}

}  // namespace tenon::tools
