// SPDX-License-Identifier: Apache-2.0
//
// Workers in step: each step applies, once, the mean of the gradients that the workers have
// computed of the same variables. Ended and started again, it goes on from its last checkpoint.
//
//   tenon launch --ps 1 --workers 2 -- example_mnist_sync --data share/mnist --checkpoint_dir DIR
#include <CLI/CLI.hpp>

#include <iostream>

#include "examples/parse_flags.h"
#include "examples/program_end.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;  // NOLINT: a program about Tenon

struct Flags : ReplicaFlags {
  std::string data, checkpoint_dir;
  int64_t batch_size = 100, steps = 1000;
  int backup = 0;
  double save_seconds = 5;
};

/// Prints a line at once and in one piece: other tasks may print to the same place.
void Say(const std::string& line) { std::cout << line + "\n" << std::flush; }

Status Train(const Flags& flags, Server& server) {
  TENON_ASSIGN_OR_RETURN(const Mnist mnist, LoadMnist(flags.data, {.one_hot = false}));
  const int workers = server.cluster().NumTasks("worker");
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const DeviceScope replica(ReplicaDeviceSetter(server));
  const Output x = Placeholder(DType::kFloat, {-1, 784}, {.name = "x"});
  const Output labels = Placeholder(DType::kInt64, {-1}, {.name = "labels"});
  const Output logits = Dense(10)(Dense(128, {.activation = Relu})(x));
  const Output loss = losses::SparseSoftmaxCrossEntropy(labels, logits);
  const Output accuracy = Mean(Cast(Equal(ArgMax(logits, 1), labels), DType::kFloat));
  Adam adam(0.001);
  SyncReplicas sync(adam, {.replicas_to_aggregate = workers - flags.backup,
                           .total_num_replicas = workers,
                           .task = server.task_index(),
                           .notice = Say});
  const Variable step = GlobalStep();
  Node* const train = sync.Minimize(loss, {.global_step = step});

  TENON_ASSIGN_OR_RETURN(
      auto session, MonitoredTrainingSession::Start(
                        {.server = &server,
                         .is_chief = server.task_index() == 0,
                         .checkpoint_dir = flags.checkpoint_dir,
                         .save_checkpoint_period =
                             std::chrono::milliseconds(static_cast<int>(flags.save_seconds * 1000)),
                         .log_step_count_steps = 200,
                         .hooks = {sync.MakeHook(), StopAtStep(flags.steps), NanTensorHook(loss)},
                         .notice = Say}));
  // Each worker takes the batches of its own number, in an order that all share.
  InputPipeline batches = InputPipeline::FromTensors({mnist.train.images, mnist.train.labels})
                              .Shuffle(mnist.train.images.dim(0), 1)
                              .Repeat()
                              .Batch(flags.batch_size)
                              .Shard(workers, server.task_index())
                              .Prefetch(2);
  for (const InputElement& batch : batches) {
    if (session->ShouldStop()) break;
    TENON_RETURN_IF_ERROR(session->Run({{x, batch[0]}, {labels, batch[1]}}, {}, {train}).status());
  }
  TENON_RETURN_IF_ERROR(batches.status());
  if (StopSignal::received() != 0) {
    TENON_RETURN_IF_ERROR(session->Close());
    Say(StoppedAfter(session->global_step(), flags.checkpoint_dir));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const auto result, session->RunWithoutHooks({{x, mnist.test.images},
                                                                      {labels, mnist.test.labels}},
                                                                     {step, accuracy}));
  Say(StrCat("step ", result[0].scalar<int64_t>(), ", test accuracy: ", result[1].scalar<float>()));
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("MNIST on workers that go in step");
  flags.AddTo(app);
  app.add_option("--data", flags.data, "Folder of the MNIST files")->required();
  app.add_option("--checkpoint_dir", flags.checkpoint_dir, "Folder that all tasks see");
  app.add_option("--save_seconds", flags.save_seconds, "Between two checkpoints")
      ->check(Between(0, 1e9));
  app.add_option("--batch_size", flags.batch_size, "Of each worker")->check(AtLeast(1));
  app.add_option("--steps", flags.steps)->check(AtLeast(1));
  app.add_option("--backup", flags.backup, "Go on without the slowest so many workers")
      ->check(AtLeast(0));
  if (const auto code = ParseFlags(app, argc, argv)) return *code;
  const Status status = RunReplica(
      flags, AllOps(), [&](Server& server) { return Train(flags, server); }, Say);
  return ExitCode(status);
}
