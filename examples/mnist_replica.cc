// SPDX-License-Identifier: Apache-2.0
//
// Between-graph replication, the classic program of distributed TensorFlow 1, in C++: parameter
// servers hold the variables, every worker builds the same graph and trains at its own pace.
//
//   tenon launch --ps 1 --workers 2 -- example_mnist_replica --data DIR
//
// or each task by hand, on any machines:
//
//   example_mnist_replica --job_name=ps     --ps_hosts=... --worker_hosts=... --data DIR
//   example_mnist_replica --job_name=worker --ps_hosts=... --worker_hosts=... --data DIR
#include <CLI/CLI.hpp>

#include <cmath>
#include <iostream>
#include <limits>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "data/files/file.h"
#include "examples/parse_flags.h"
#include "examples/program_end.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;  // NOLINT: a program about Tenon

struct Flags : ReplicaFlags {
  std::string data, logs_path, checkpoint_dir, trace;
  int batch_size = 100, training_epochs = 20;
  double learning_rate = 0.001;
};

/// Prints a line at once and in one piece: other tasks may print to the same place.
void Say(const std::string& line) { std::cout << line + "\n" << std::flush; }

struct Model {
  Output global_step, x, y_, cross_entropy, accuracy, summary;
  Node* train_op;
};

Model BuildModel(const Server& server, double learning_rate) {
  // Between-graph replication: variables on the parameter servers, the rest on this worker.
  DeviceScope replica(ReplicaDeviceSetter(server));
  Model m;
  m.global_step = GlobalStep();
  {
    NameScope scope("input");
    m.x = Placeholder(DType::kFloat, {-1, 784}, {.name = "x-input"});
    m.y_ = Placeholder(DType::kFloat, {-1, 10}, {.name = "y-input"});
  }
  SetRandomSeed(1);
  Variable w1, w2, b1, b2;
  {
    NameScope scope("weights");
    w1 = Variable("Variable", RandomNormal({784, 100}));
    w2 = Variable("Variable", RandomNormal({100, 10}));
  }
  {
    NameScope scope("biases");
    b1 = Variable("Variable", Zeros({100}));
    b2 = Variable("Variable", Zeros({10}));
  }
  Output y;
  {
    NameScope scope("softmax");
    Output z2 = Add(MatMul(m.x, w1), b1);
    Output a2 = Sigmoid(z2);
    Output z3 = Add(MatMul(a2, w2), b2);
    y = Softmax(z3);
  }
  {
    NameScope scope("cross_entropy");
    m.cross_entropy = Mean(-Sum(m.y_ * Log(y), {1}));
  }
  {
    NameScope scope("train");
    GradientDescent optimizer(learning_rate);
    m.train_op = optimizer.Minimize(m.cross_entropy, {.global_step = m.global_step});
  }
  {
    NameScope scope("Accuracy");
    Output correct_prediction = Equal(ArgMax(y, 1), ArgMax(m.y_, 1));
    m.accuracy = Mean(Cast(correct_prediction, DType::kFloat));
  }
  m.summary =
      MergeSummary({ScalarSummary("cost", m.cross_entropy), ScalarSummary("accuracy", m.accuracy)});
  return m;
}

Status Train(const Flags& flags, Server& server) {
  TENON_ASSIGN_OR_RETURN(const Mnist mnist, LoadMnist(flags.data));
  TENON_ASSIGN_OR_RETURN(
      ShuffledBatches batches,
      ShuffledBatches::Create({mnist.train.images, mnist.train.labels}, server.task_index()));
  TENON_ASSIGN_OR_RETURN(const int64_t batch_count, batches.PerEpoch(flags.batch_size));
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Model m = BuildModel(server, flags.learning_rate);
  Saver saver;
  Supervisor supervisor({.is_chief = server.task_index() == 0,
                         .notice = Say,
                         .checkpoint_dir = flags.checkpoint_dir,
                         .saver = flags.checkpoint_dir.empty() ? nullptr : &saver,
                         .save_model_period = std::chrono::seconds(1)});
  const absl::Time begin = absl::Now();
  TENON_ASSIGN_OR_RETURN(auto session, supervisor.PrepareOrWaitForSession(server, graph));
  std::unique_ptr<EventWriter> writer;
  if (!flags.logs_path.empty()) {
    const std::string folder = StrCat(flags.logs_path, "/worker", server.task_index());
    TENON_ASSIGN_OR_RETURN(writer, EventWriter::Create(folder, graph));
  }
  const std::vector<Output> fetches = {m.cross_entropy, m.summary, m.global_step};
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({m.x, m.y_}, fetches, {m.train_op}));
  const auto read_step = [&] { return session->Run<int64_t>({}, m.global_step); };
  const bool is_chief = server.task_index() == 0, saves = !flags.checkpoint_dir.empty();
  const int64_t workers = server.cluster().NumTasks("worker");
  const int64_t own_steps = flags.training_epochs * batch_count;
  // With checkpoints the job has a last step, whichever processes, of how many starts, get there.
  const int64_t last_step = saves ? own_steps * workers : std::numeric_limits<int64_t>::max();
  TENON_ASSIGN_OR_RETURN(int64_t steps, read_step());  // of all workers
  if (steps >= last_step) {
    Say(StrCat("training had ended already, at step ", steps));
  } else if (steps > 0) {
    Say(StrCat(is_chief ? "went on from step " : "joined at step ", steps));
  }
  // Where in the data this worker is, in batches: with checkpoints as far as the job is.
  int64_t own = 0;
  const auto place = [&] { return saves ? steps / workers : own; };
  batches.Seek(place() * flags.batch_size);
  std::vector<Tensor> fetched;
  std::vector<NodeTrace> trace;
  float cost = 0;
  absl::Time start = absl::Now();
  for (int count = 1; own < own_steps && steps < last_step && !supervisor.ShouldStop(); ++count) {
    const int64_t epoch = place() / batch_count, batch_index = place() % batch_count;
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> batch, batches.Next(flags.batch_size));
    const bool last = own + 1 == own_steps || steps + workers >= last_step;
    const bool traced = last && is_chief && !flags.trace.empty();
    TENON_RETURN_IF_ERROR(step->Run(batch, &fetched, {.trace = traced ? &trace : nullptr}));
    ++own;
    cost = fetched[0].scalar<float>();
    const auto global_step = fetched[2].scalar<int64_t>();
    steps = global_step + 1;
    if (!std::isfinite(cost)) {
      return OutOfRange("training has diverged: the cost is ", cost, " in epoch ", epoch + 1,
                        "; try a --learning_rate smaller than ", flags.learning_rate);
    }
    if (writer) {
      TENON_RETURN_IF_ERROR(writer->AddSummary(fetched[1].scalar<TString>(), global_step));
    }
    if (steps >= last_step) {
      // The step may have read the counter after it counted itself.
      TENON_ASSIGN_OR_RETURN(steps, read_step());
    }
    if (count == 100 || place() / batch_count > epoch) {
      Say(absl::StrFormat(
          "Step: %d,  Epoch: %2d,  Batch: %3d of %3d,  Cost: %.4f,  AvgTime: %.2fms", steps,
          epoch + 1, batch_index + 1, batch_count, cost,
          absl::ToDoubleMilliseconds(absl::Now() - start) / count));
      count = 0;
      start = absl::Now();
    }
  }
  const absl::Time trained = absl::Now();
  if (is_chief && saves && !supervisor.ShouldStop()) {
    // The last checkpoint is to have the last steps of all workers.
    TENON_RETURN_IF_ERROR(WaitForOtherWorkers(server, read_step, Say));
  }
  const absl::Duration waited = absl::Now() - trained;
  if (supervisor.ShouldStop()) {
    TENON_ASSIGN_OR_RETURN(steps, read_step());
    TENON_RETURN_IF_ERROR(supervisor.Stop());
    Say(StoppedAfter(is_chief && saves ? supervisor.saved_step() : steps, flags.checkpoint_dir));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const auto test,
                         session->Run({{m.x, mnist.test.images}, {m.y_, mnist.test.labels}},
                                      {m.accuracy, m.global_step}));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin - waited);
  Say(absl::StrFormat("Test-Accuracy: %.2f (step %d)\nTotal Time: %3.2fs", test[0].scalar<float>(),
                      test[1].scalar<int64_t>(), seconds));
  if (own > 0) {
    Say(absl::StrFormat("Final Cost: %.4f\nSteps per second: %.0f", cost, own / seconds));
  }
  TENON_RETURN_IF_ERROR(supervisor.Stop());
  return trace.empty() ? OkStatus() : WriteStringToFile(flags.trace, ToChromeTrace(trace));
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("MNIST with parameter servers and between-graph replication");
  flags.AddTo(app);
  app.add_option("--data", flags.data, "Folder of the MNIST files")->required();
  app.add_option("--logs_path", flags.logs_path, "Folder for TensorBoard");
  app.add_option("--checkpoint_dir", flags.checkpoint_dir, "Folder that all tasks see");
  app.add_option("--trace", flags.trace, "File for the chief's trace of the last step");
  app.add_option("--batch_size", flags.batch_size)->check(Between(1, INT32_MAX));
  app.add_option("--learning_rate", flags.learning_rate)->check(Above(0));
  app.add_option("--training_epochs", flags.training_epochs)->check(Between(1, INT32_MAX));
  if (const auto code = ParseFlags(app, argc, argv)) return *code;
  const Status status = RunReplica(
      flags, AllOps(), [&](Server& server) { return Train(flags, server); }, Say);
  const int code = ExitCode(status);
  if (code == 0) Say("done");
  return code;
}
