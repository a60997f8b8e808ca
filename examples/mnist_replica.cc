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

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "core/proto_io_graph.h"
#include "data/event_file.h"
#include "data/mnist.h"
#include "data/shuffled_batches.h"
#include "distributed/server.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "ops/random_ops.h"
#include "ops/register.h"
#include "ops/state_ops.h"
#include "ops/summary_ops.h"
#include "train/gradient_descent.h"
#include "train/replica_device_setter.h"
#include "train/supervisor.h"

namespace {

using namespace tenon;  // NOLINT: a program about Tenon

struct Flags {
  std::string ps_hosts, worker_hosts, job_name, data, logs_path, trace;
  int task_index = 0;
  int batch_size = 100;
  double learning_rate = 0.001;
  int training_epochs = 20;
  int frequency = 100;
  CredentialFiles credentials;
  bool insecure = false;
};

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

Output RandomNormal(const Scope& s, const std::vector<int32_t>& shape) {
  return RandomStandardNormal(s.WithPrefix("random_normal"), Const(s, shape), DType::kFloat);
}

/// Says a line at once, for who watches.
void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

Status Train(const Flags& flags, Server& server, const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const Mnist mnist, LoadMnist(flags.data));
  if (flags.batch_size > mnist.train.images.dim(0)) {
    return InvalidArgument("--batch_size ", flags.batch_size, " is more than the ",
                           mnist.train.images.dim(0), " images to train with");
  }

  // Between-graph replication: variables on the parameter servers, the rest on this worker.
  Scope root = Scope::Root(ops);
  root.SetSeed(1);
  const Scope model = root.WithDeviceFunction(
      ReplicaDeviceSetter({.ps_tasks = server.cluster().NumTasks("ps"),
                           .worker_device = StrCat("/job:worker/task:", flags.task_index)}));
  VariableSet variables;

  variables.Add(model.WithName("global_step"), Const(model, 0.0f), /*trainable=*/false);
  const Output global_step = variables.all()[0].ref;

  const Scope input = model.WithPrefix("input");
  const Output x = Placeholder(input.WithName("x-input"), DType::kFloat, {-1, 784});
  const Output y_ = Placeholder(input.WithName("y-input"), DType::kFloat, {-1, 10});

  const Scope weights = model.WithPrefix("weights");
  const Output w1 = variables.Add(weights.WithName("Variable"), RandomNormal(weights, {784, 100}));
  const Output w2 = variables.Add(weights.WithName("Variable"), RandomNormal(weights, {100, 10}));

  const Scope biases = model.WithPrefix("biases");
  const Output b1 = variables.Add(biases.WithName("Variable"),
                                  Const(biases, Tensor::Zeros(DType::kFloat, {100})));
  const Output b2 =
      variables.Add(biases.WithName("Variable"), Const(biases, Tensor::Zeros(DType::kFloat, {10})));

  const Scope softmax = model.WithPrefix("softmax");
  const Output a2 = Sigmoid(softmax, Add(softmax, MatMul(softmax, x, w1), b1));
  const Output y = Softmax(softmax, Add(softmax, MatMul(softmax, a2, w2), b2));

  const Scope loss = model.WithPrefix("cross_entropy");
  const Output cross_entropy = Mean(
      loss, Neg(loss, Sum(loss, Mul(loss, y_, Log(loss, y)), Const(loss, {1}))), Const(loss, {0}));

  const GradientDescentOptimizer optimizer(flags.learning_rate);
  const Node* train_op =
      optimizer.Minimize(model.WithPrefix("train"), cross_entropy, variables, global_step);

  const Scope metrics = model.WithPrefix("Accuracy");
  const Output correct =
      Equal(metrics, ArgMax(metrics, y, Const(metrics, 1)), ArgMax(metrics, y_, Const(metrics, 1)));
  const Output accuracy = Mean(metrics, Cast(metrics, correct, DType::kFloat), Const(metrics, {0}));

  const Output summary =
      MergeSummary(model, {ScalarSummary(model, Const(model, "cost"), cross_entropy),
                           ScalarSummary(model, Const(model, "accuracy"), accuracy)});

  SupervisorOptions supervision;
  supervision.is_chief = flags.task_index == 0;
  supervision.notice = Say;
  const Supervisor supervisor(root, variables, supervision);
  TENON_RETURN_IF_ERROR(root.status());

  const auto begin = std::chrono::steady_clock::now();
  TENON_ASSIGN_OR_RETURN(auto session, supervisor.PrepareOrWaitForSession(
                                           [&] { return server.MakeSession(root.graph()); }));
  std::unique_ptr<EventWriter> writer;
  if (!flags.logs_path.empty()) {
    TENON_ASSIGN_OR_RETURN(
        writer, EventWriter::Create(StrCat(flags.logs_path, "/worker", flags.task_index)));
    GraphDef graph;
    TENON_RETURN_IF_ERROR(GraphToProto(root.graph(), &graph));
    TENON_RETURN_IF_ERROR(writer->AddGraph(graph.SerializeAsString()));
  }

  TENON_ASSIGN_OR_RETURN(
      const auto step, session->Prepare({x.name(), y_.name()},
                                        {cross_entropy.name(), summary.name(), global_step.name()},
                                        {train_op->name()}));
  TENON_ASSIGN_OR_RETURN(
      ShuffledBatches batches,
      ShuffledBatches::Create({mnist.train.images, mnist.train.labels}, flags.task_index));
  const auto batch_count = static_cast<int>(batches.num_rows() / flags.batch_size);
  float cost = 0;
  auto start = std::chrono::steady_clock::now();
  for (int epoch = 0; epoch < flags.training_epochs; ++epoch) {
    int count = 0;
    for (int i = 0; i < batch_count; ++i) {
      TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> batch, batches.Next(flags.batch_size));
      std::vector<Tensor> fetched;
      const bool last = epoch + 1 == flags.training_epochs && i + 1 == batch_count;
      std::vector<NodeTrace> trace;
      StepOptions options;
      if (last && !flags.trace.empty() && flags.task_index == 0) options.trace = &trace;
      TENON_RETURN_IF_ERROR(step->Run(batch, &fetched, options));
      if (options.trace != nullptr) std::ofstream(flags.trace) << ToChromeTrace(trace);
      cost = fetched[0].scalar<float>();
      if (!std::isfinite(cost)) {
        return OutOfRange("training has diverged: the cost is ", cost, " in epoch ", epoch + 1,
                          ", batch ", i + 1, "; try a --learning_rate smaller than ",
                          flags.learning_rate);
      }
      const auto global = static_cast<int64_t>(fetched[2].scalar<float>());
      if (writer != nullptr) {
        TENON_RETURN_IF_ERROR(writer->AddSummary(fetched[1].scalar<TString>(), global));
      }
      ++count;
      if (count % flags.frequency == 0 || i + 1 == batch_count) {
        std::printf("Step: %lld,  Epoch: %2d,  Batch: %3d of %3d,  Cost: %.4f,  AvgTime: %.2fms\n",
                    static_cast<long long>(global + 1), epoch + 1, i + 1, batch_count, cost,
                    Seconds(start) * 1000 / count);
        std::fflush(stdout);
        count = 0;
        start = std::chrono::steady_clock::now();
      }
    }
  }
  TENON_ASSIGN_OR_RETURN(
      const std::vector<Tensor> test,
      session->Run({{x.name(), mnist.test.images}, {y_.name(), mnist.test.labels}},
                   {accuracy.name()}));
  const double steps_per_second = flags.training_epochs * batch_count / Seconds(begin);
  std::printf("Test-Accuracy: %.2f\n", test[0].scalar<float>());
  std::printf("Total Time: %3.2fs\n", Seconds(begin));
  std::printf("Final Cost: %.4f\n", cost);
  std::printf("Steps per second: %.0f\n", steps_per_second);
  return OkStatus();
}

StatusOr<std::unique_ptr<Server>> StartServer(const Flags& flags, const OpRegistry& ops) {
  ServerOptions options;
  options.job = flags.job_name;
  options.task = flags.task_index;
  TENON_RETURN_IF_ERROR(options.cluster.AddJob("ps", flags.ps_hosts));
  TENON_RETURN_IF_ERROR(options.cluster.AddJob("worker", flags.worker_hosts));
  options.notice = Say;
  TENON_ASSIGN_OR_RETURN(options.credentials, ReadCredentials(flags.credentials));
  options.insecure = flags.insecure;
  return Server::Start(options, ops);
}

/// The exit code for it.
int Ended(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::printf("done\n");
  std::fflush(stdout);
  return status.ok() ? 0 : 1;
}

int Run(const Flags& flags) {
  OpRegistry ops;
  RegisterAllOps(ops);
  const auto server = StartServer(flags, ops);
  if (!server.ok()) return Ended(server.status());
  if (flags.job_name == "ps") {
    Say(StrCat("waiting for the workers at ", flags.worker_hosts, " to end"));
    return Ended((*server)->WaitForJobEnd("worker", std::chrono::minutes(5)));
  }
  const Status status = Train(flags, **server, ops);
  const int code = Ended(status);
  (*server)->ReportEnd("ps", status);  // waits for a parameter server that is still to start
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("MNIST with parameter servers and between-graph replication");
  app.add_option("--ps_hosts", flags.ps_hosts, "host:port,...")->required();
  app.add_option("--worker_hosts", flags.worker_hosts, "host:port,...")->required();
  app.add_option("--job_name", flags.job_name, "ps or worker")
      ->required()
      ->check(CLI::IsMember({"ps", "worker"}));
  app.add_option("--task_index", flags.task_index, "Number of this task in its job");
  app.add_option("--data", flags.data, "Folder of the MNIST files")->required();
  app.add_option("--logs_path", flags.logs_path, "Folder for TensorBoard");
  app.add_option("--trace", flags.trace, "File for the chief's trace of the last step");
  app.add_option("--tls_cert", flags.credentials.tls_cert, "PEM file; see docs/security.md");
  app.add_option("--tls_key", flags.credentials.tls_key, "PEM file");
  app.add_option("--tls_ca", flags.credentials.tls_ca, "PEM file");
  app.add_option("--token_file", flags.credentials.token, "File with the job's secret");
  app.add_flag("--insecure", flags.insecure, "Listen beyond loopback without either");
  app.add_option("--batch_size", flags.batch_size)->check(CLI::Range(1, INT32_MAX));
  app.add_option("--learning_rate", flags.learning_rate);
  app.add_option("--training_epochs", flags.training_epochs)->check(CLI::Range(1, INT32_MAX));
  CLI11_PARSE(app, argc, argv);
  return Run(flags);
}
