// SPDX-License-Identifier: Apache-2.0
#include "tools/mnist_training.h"

#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "data/arrays/mnist.h"
#include "data/batch/shuffled_batches.h"
#include "data/checkpoint/tensor_bundle.h"
#include "data/files/file.h"
#include "data/records/event_file.h"
#include "distributed/protocol/task_role.h"
#include "tools/checkpoints.h"
#include "tools/commands.h"
#include "tools/learning_history.h"
#include "tools/mnist_model.h"
#include "tools/processes.h"
#include "tools/progress.h"
#include "tools/writable.h"
#include "train/allreduce/distributed_optimizer.h"
#include "train/allreduce/rank_hooks.h"
#include "train/allreduce/rank_values.h"
#include "train/evaluation/evaluate_checkpoints.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/gradient_descent.h"
#include "train/optimizers/learning_rate_schedules.h"
#include "train/saver/checkpoint_state.h"
#include "train/sessions/hooks.h"
#include "train/sessions/monitored_training_session.h"
#include "train/sync/sync_replicas.h"
#include "train/sync/sync_replicas_hook.h"

namespace tenon::tools {
namespace {

/// What a network is trained with unless flags say otherwise.
struct Defaults {
  MnistNetwork network;
  int epochs;
  double learning_rate;
};
Defaults DefaultsOf(const std::string& model) {
  if (model == "classic") return {MnistNetwork::kClassic, 20, 0.001};
  if (model == "conv") return {MnistNetwork::kConv, 8, 0.001};
  return {MnistNetwork::kMlp, 8, 0.001};
}

/// The names of the variables that training changes.
std::vector<std::string> TrainableNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const VariableEntry& v : graph.variables()) {
    if (v.trainable) names.push_back(v.ref->name());
  }
  return names;
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// One worker, or the only process.
class MnistTraining {
 public:
  /// On the cluster of `server`, as a rank of `ranks`, or alone where both are null.
  MnistTraining(const TrainMnistFlags& flags, const OpRegistry& ops, Server* server,
                Communicator* ranks)
      : flags_(flags),
        defaults_(DefaultsOf(flags.model)),
        server_(server),
        ranks_(ranks),
        graph_(ops) {}

  /// As the evaluator of others, which follows their checkpoints.
  Status Evaluate(const TrainingGoesOn& training_goes_on) {
    const GraphBuilding building(graph_);
    TENON_RETURN_IF_ERROR(LoadData());
    BuildGraph(false);
    SaverOptions saved;
    const Node* const counter = GlobalStep().ref().node;
    for (const VariableEntry& v : graph_.variables()) {
      if (v.trainable || v.ref == counter) {
        saved.variables.emplace_back(v.ref->name(), Output{v.ref, 0});
      }
    }
    Saver saver(saved);
    TENON_RETURN_IF_ERROR(building.status());
    EvaluationOptions options;
    options.checkpoint_dir = flags_.checkpoint_dir;
    options.training_goes_on = training_goes_on;
    options.saver = &saver;
    options.notice = PrintNotice;
    const auto evaluate = [this](Session& session) -> StatusOr<MetricValues> {
      const auto run = [&session](const StepFeeds& feeds, const Output& fetch) {
        return session.Run<float>(feeds, fetch);
      };
      TENON_ASSIGN_OR_RETURN(const double accuracy, MeanOf(model_.accuracy, mnist_.test, run));
      TENON_ASSIGN_OR_RETURN(const double loss, MeanOf(model_.loss, mnist_.test, run));
      return MetricValues{{"accuracy", accuracy}, {"loss", loss}};
    };
    TENON_ASSIGN_OR_RETURN(const std::vector<Evaluation> evaluations,
                           EvaluateCheckpoints(options, evaluate));
    const Evaluation& last = evaluations.back();
    std::printf("test accuracy: %.4f (step %d)\n", last.metrics.at("accuracy"),
                static_cast<int>(last.step));
    return OkStatus();
  }

  Status Run() {
    const GraphBuilding building(graph_);
    if (task() == 0 && !flags_.curve.empty()) {
      TENON_RETURN_IF_ERROR(CheckWritable(flags_.curve, "--curve"));
    }
    TENON_RETURN_IF_ERROR(LoadData());
    BuildGraph(true);
    TENON_RETURN_IF_ERROR(building.status());
    TENON_RETURN_IF_ERROR(CheckCheckpoint());
    TENON_RETURN_IF_ERROR(Open());
    const Status trained = Train();
    if (progress_) progress_->Finish();
    TENON_RETURN_IF_ERROR(trained);
    return Report();
  }

 private:
  int task() const {
    return ranks_ != nullptr ? ranks_->rank() : server_ == nullptr ? 0 : server_->task_index();
  }
  int workers() const {
    if (ranks_ != nullptr) return ranks_->size();
    return server_ == nullptr ? 1 : server_->cluster().NumTasks(kWorkerJob);
  }
  /// Whether the workers make each step together.
  bool in_step() const { return flags_.sync || ranks_ != nullptr; }
  double learning_rate() const {
    return flags_.learning_rate > 0 ? flags_.learning_rate : defaults_.learning_rate;
  }

  Status LoadData() {
    std::string folder = flags_.data;
    if (folder.empty()) {
      TENON_ASSIGN_OR_RETURN(folder, FindShared("mnist"));
    }
    TENON_ASSIGN_OR_RETURN(mnist_, LoadMnist(folder));
    const int64_t images = mnist_.train.images.dim(0);
    if (flags_.batch > images) {
      return WrongUsage(
          StrCat("--batch ", flags_.batch, " is more than the ", images, " images to train with"));
    }
    // Images of a step: of this worker, or of all that go in step.
    const int64_t parts = !in_step() ? 1 : flags_.shards > 0 ? flags_.shards : workers();
    per_epoch_ = std::max<int64_t>(images / (flags_.batch * parts), 1);
    const int epochs = flags_.epochs > 0 ? flags_.epochs : defaults_.epochs;
    own_steps_ = per_epoch_ * epochs;
    // Asynchronous workers each go through the data, on the same variables.
    last_step_ = in_step() ? own_steps_ : own_steps_ * workers();
    if (flags_.max_steps > 0) last_step_ = flags_.max_steps;
    // In step, the workers share one sequence of batches.
    const uint64_t seed = in_step() ? 0 : static_cast<uint64_t>(task());
    TENON_ASSIGN_OR_RETURN(
        ShuffledBatches batches,
        ShuffledBatches::Create({mnist_.train.images, mnist_.train.labels}, seed));
    batches_.emplace(std::move(batches));
    return OkStatus();
  }

  /// `trains`: with what lets workers go in step.
  void BuildGraph(bool trains) {
    SetRandomSeed(1);
    const DeviceScope replica(server_ == nullptr ? DeviceFunction()
                                                 : ReplicaDeviceSetter(*server_));
    if (defaults_.network == MnistNetwork::kClassic) {
      optimizer_ = std::make_unique<GradientDescent>(learning_rate());
    } else {
      // It falls to nothing at the end, where the counter is.
      const Variable step = GlobalStep();
      const ColocateWith beside(step.ref());
      optimizer_ = std::make_unique<Adam>(CosineDecay(learning_rate(), step, last_step_));
    }
    if (trains && ranks_ != nullptr) {
      mean_ = std::make_unique<DistributedOptimizer>(*optimizer_);
    } else if (trains && flags_.sync) {
      SyncReplicasOptions options;
      options.total_num_replicas = workers();
      options.replicas_to_aggregate = workers() - flags_.backup;
      options.task = task();
      options.deterministic_shards = flags_.shards;
      options.notice = PrintNotice;
      sync_ = std::make_unique<SyncReplicas>(*optimizer_, options);
    }
    Optimizer& optimizer = mean_   ? static_cast<Optimizer&>(*mean_)
                           : sync_ ? static_cast<Optimizer&>(*sync_)
                                   : *optimizer_;
    model_ = BuildMnistModel(defaults_.network, optimizer);
    step_ = GlobalStep();
  }

  /// Whether the latest checkpoint is one of this network, as far as it is seen here.
  Status CheckCheckpoint() const {
    if (task() != 0 || flags_.checkpoint_dir.empty()) return OkStatus();
    const auto latest = LatestCheckpoint(flags_.checkpoint_dir);
    if (!latest.ok())
      return OkStatus();  // there is none, or the session says what is wrong with it
    TENON_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(*latest));
    const Status fits = CheckKeys(*reader, TrainableNames(graph_));
    if (fits.ok()) return OkStatus();
    std::string other;
    for (const char* model : {"mlp", "conv", "classic"}) {
      if (other.empty() && HasNetwork(*reader, DefaultsOf(model).network)) other = model;
    }
    return AppendToMessage(fits,
                           StrCat("; for --model ", flags_.model, " give another --checkpoint_dir",
                                  other.empty() ? "" : StrCat(", or --model ", other)));
  }

  bool HasNetwork(const BundleReader& reader, MnistNetwork network) const {
    Graph graph(graph_.registry());
    const GraphBuilding building(graph);
    GradientDescent optimizer(1);
    BuildMnistModel(network, optimizer);
    return building.status().ok() && CheckKeys(reader, TrainableNames(graph)).ok();
  }

  Status Open() {
    MonitoredTrainingSessionOptions options;
    options.server = server_;
    options.is_chief = ranks_ != nullptr || task() == 0;
    if (ranks_ == nullptr || task() == 0) options.checkpoint_dir = flags_.checkpoint_dir;
    options.save_checkpoint_period =
        std::chrono::milliseconds(static_cast<int64_t>(flags_.save_seconds * 1000));
    options.save_summaries_steps = 0;
    options.notice = PrintNotice;
    if (ranks_ != nullptr) {
      options.communicator = ranks_;
      options.hooks.push_back(KeepRanksInStep());
    }
    if (sync_) {
      sync_hook_ = sync_->MakeHook();
      options.hooks.push_back(sync_hook_);
    }
    options.hooks.push_back(StopAtStep(last_step_));
    TENON_ASSIGN_OR_RETURN(session_, MonitoredTrainingSession::Start(options));
    if (!flags_.logs.empty()) {
      const std::string events = StrCat(flags_.logs, "/worker", task());
      TENON_ASSIGN_OR_RETURN(writer_, EventWriter::Create(events, graph_));
    }
    if (DrawsCurve()) {
      history_ = std::make_unique<LearningHistory>(flags_.checkpoint_dir, session_->global_step());
    }
    return OkStatus();
  }

  /// Goes on with the batches where a training ended before.
  StatusOr<std::vector<Tensor>> NextBatch() {
    if (ranks_ != nullptr) {
      batches_->Seek(((first_step_ + steps_) * workers() + task()) * flags_.batch);
    }
    if (sync_hook_ == nullptr) return batches_->Next(flags_.batch);
    const SyncTurn turn = sync_hook_->turn();
    const int64_t parts = flags_.shards > 0 ? flags_.shards : workers();
    const int64_t part = flags_.shards > 0 ? turn.shard : task();
    batches_->Seek((turn.step * parts + part) * flags_.batch);
    return batches_->Next(flags_.batch);
  }

  Status Train() {
    begin_ = std::chrono::steady_clock::now();
    first_step_ = session_->global_step();
    if (first_step_ > 0 && !session_->ShouldStop()) {
      PrintNotice(StrCat(task() == 0 ? "went on from" : "joined at", " step ", first_step_));
    }
    batches_->Seek(first_step_ / workers() * flags_.batch);
    progress_.emplace("training", last_step_, first_step_);
    std::vector<Output> fetches = {model_.loss};
    if (writer_) fetches.push_back(model_.summary);
    for (; !session_->ShouldStop(); ++steps_) {
      if (!in_step() && flags_.max_steps == 0 && steps_ == own_steps_) break;
      TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> batch, NextBatch());
      Session::Feeds feeds = {{model_.images.name(), batch[0]}, {model_.labels.name(), batch[1]}};
      if (model_.training.exists()) {
        feeds.emplace_back(model_.training.name(), Tensor::Scalar(true));
      }
      TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched,
                             session_->Run(StepFeeds(feeds), fetches, {model_.train_op}));
      const float loss = fetched[0].scalar<float>();
      if (!std::isfinite(loss)) {
        return OutOfRange("training has diverged: the cost is ", loss, " after ", steps_ + 1,
                          " steps; try a --learning_rate smaller than ", learning_rate());
      }
      loss_sum_ += loss;
      ++unseen_steps_;
      if (writer_) {
        TENON_RETURN_IF_ERROR(
            writer_->AddSummary(fetched[1].scalar<TString>(), session_->global_step()));
      }
      if ((steps_ + 1) % CurveInterval() == 0) TENON_RETURN_IF_ERROR(AddPoint());
      progress_->Advance(StepsDone(), [&] {
        const std::string accuracy = curve().empty() ? std::string()
                                                     : absl::StrFormat("  validation accuracy %.4f",
                                                                       curve().back().accuracy);
        return absl::StrFormat("epoch %d  cost %.4f%s", Epoch(), loss, accuracy);
      });
    }
    return OkStatus();
  }

  /// Steps of all workers, the one that was just made too, which may not have counted itself when
  /// it read the counter.
  int64_t StepsDone() const { return std::min(session_->global_step() + 1, last_step_); }
  /// The one that the last step belongs to, from 1 on.
  int64_t Epoch() const {
    const int64_t own = (StepsDone() - 1) / (in_step() ? 1 : workers());
    return std::max<int64_t>(own, 0) / per_epoch_ + 1;
  }

  /// A point of the curve each so many steps: twice an epoch, and less often where epochs are
  /// short.
  int64_t CurveInterval() const { return std::max<int64_t>(per_epoch_ / 2, 100); }
  /// One worker draws it. The classic network is timed, to which an evaluation would not belong.
  bool DrawsCurve() const {
    return task() == 0 && (defaults_.network != MnistNetwork::kClassic || !flags_.curve.empty());
  }

  /// The points, also of the processes before that trained the same model.
  const std::vector<LearningPoint>& curve() const {
    static const std::vector<LearningPoint> none;
    return history_ == nullptr ? none : history_->points();
  }

  Status AddPoint() {
    const int64_t step = StepsDone();
    if (writer_ && (steps_ + 1) % per_epoch_ == 0) {
      TENON_ASSIGN_OR_RETURN(const Tensor histograms,
                             session_->RunWithoutHooks<Tensor>({}, model_.histograms));
      TENON_RETURN_IF_ERROR(writer_->AddSummary(histograms.scalar<TString>(), step));
    }
    TENON_ASSIGN_OR_RETURN(const double loss,
                           MeanOfMetric(std::exchange(loss_sum_, 0),
                                        static_cast<double>(std::exchange(unseen_steps_, 0))));
    if (ranks_ == nullptr && !DrawsCurve()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const double accuracy, Accuracy(mnist_.validation));
    if (!DrawsCurve()) return OkStatus();
    // A picture is no reason to end a training.
    const Status kept = history_->Add({static_cast<double>(step), loss, accuracy});
    if (std::exchange(curve_is_kept_, kept.ok()) && !kept.ok()) {
      PrintNotice(
          StrCat("the learning curve is not kept, which is tried again with its next point: ",
                 kept.ToString()));
    }
    return OkStatus();
  }

  using RunStep = std::function<StatusOr<float>(const StepFeeds& feeds, const Output& fetch)>;

  /// sum / count, of all ranks where there are some.
  StatusOr<double> MeanOfMetric(double sum, double count) const {
    Tensor both = Tensor::Vector<double>({sum, count});
    if (ranks_ != nullptr) {
      TENON_ASSIGN_OR_RETURN(both, ReduceOverRanks(*ranks_, "sum and count of a metric", both));
    }
    const auto [total, counted] = std::pair(both.flat<double>()[0], both.flat<double>()[1]);
    return counted == 0 ? 0 : total / counted;
  }

  /// The mean of what is a mean of images, in parts, whose activations fit the memory. Ranks share
  /// the parts out.
  StatusOr<double> MeanOf(const Output& value, const MnistSet& set, const RunStep& run) const {
    constexpr int64_t kPart = 1000;
    const int64_t images = set.images.dim(0);
    const int64_t first = ranks_ == nullptr ? 0 : ranks_->rank() * kPart;
    const int64_t stride = ranks_ == nullptr ? kPart : ranks_->size() * kPart;
    double sum = 0, count = 0;
    for (int64_t i = first; i < images; i += stride) {
      const int64_t end = std::min(i + kPart, images);
      TENON_ASSIGN_OR_RETURN(const float part, run({{model_.images, set.images.Slice(i, end)},
                                                    {model_.labels, set.labels.Slice(i, end)}},
                                                   value));
      sum += part * static_cast<double>(end - i);
      count += static_cast<double>(end - i);
    }
    return MeanOfMetric(sum, count);
  }

  StatusOr<double> Accuracy(const MnistSet& set) {
    return MeanOf(model_.accuracy, set, [this](const StepFeeds& feeds, const Output& fetch) {
      return session_->RunWithoutHooks<float>(feeds, fetch);
    });
  }

  StatusOr<int64_t> ReadStep() { return session_->RunWithoutHooks<int64_t>({}, step_); }

  Status Report() {
    const double seconds = SecondsSince(begin_);
    const int signal = StopSignal::received();
    if (server_ != nullptr && task() == 0 && sync_ == nullptr && !flags_.checkpoint_dir.empty()) {
      // The last checkpoint is to have the last steps of all workers.
      TENON_RETURN_IF_ERROR(WaitForOtherWorkers(
          *server_, [this] { return ReadStep(); }, PrintNotice));
    }
    TENON_ASSIGN_OR_RETURN(const double accuracy, Accuracy(mnist_.test));
    TENON_ASSIGN_OR_RETURN(const int64_t evaluated_at, ReadStep());
    if (unseen_steps_ > 0 && (ranks_ != nullptr || DrawsCurve())) TENON_RETURN_IF_ERROR(AddPoint());
    TENON_RETURN_IF_ERROR(session_->Close());
    if (signal != 0) {
      std::printf("stopped by a signal after step %d%s\n",
                  static_cast<int>(session_->global_step()),
                  flags_.checkpoint_dir.empty() ? "" : "; the same command goes on from there");
    }
    std::printf("test accuracy: %.4f (step %d)\n", accuracy, static_cast<int>(evaluated_at));
    if (steps_ > 0) {
      std::printf("steps per second%s: %.1f\n",
                  ranks_ != nullptr || server_ == nullptr ? "" : ", of this worker",
                  static_cast<double>(steps_) / seconds);
      std::printf("total time: %.1f s\n", seconds);
    }
    const std::string of_last =
        first_step_ > 0 ? absl::StrFormat("the last %d in ", evaluated_at - first_step_) : "";
    const std::string title =
        absl::StrFormat("MNIST, %s: %.2f %% of the test images after %d steps, %s%.0f s",
                        flags_.model, accuracy * 100, evaluated_at, of_last, seconds);
    return WriteCurve(title);
  }

  Status WriteCurve(const std::string& title) const {
    std::string path = flags_.curve;
    const std::string& folder = flags_.checkpoint_dir.empty() ? flags_.logs : flags_.checkpoint_dir;
    if (path.empty() && !folder.empty()) path = JoinPath(folder, "learning_curve.svg");
    if (path.empty()) return OkStatus();
    if (steps_ == 0 && flags_.curve.empty()) return OkStatus();  // that of before is there
    if (curve().empty()) {
      if (flags_.curve.empty()) return OkStatus();
      std::printf("no learning curve: %s\n",
                  task() != 0 ? "worker 0 draws it" : "no step was made");
      return OkStatus();
    }
    TENON_RETURN_IF_ERROR(WriteTextFile(path, LearningCurveSvg(title, curve())));
    std::printf("learning curve: %s\n", path.c_str());
    return OkStatus();
  }

  const TrainMnistFlags& flags_;
  const Defaults defaults_;
  Server* const server_;
  Communicator* const ranks_;
  Graph graph_;
  Mnist mnist_;
  std::optional<ShuffledBatches> batches_;
  int64_t per_epoch_ = 0, own_steps_ = 0, last_step_ = 0, first_step_ = 0, steps_ = 0;
  // Since the last point of the curve.
  double loss_sum_ = 0;
  int64_t unseen_steps_ = 0;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<DistributedOptimizer> mean_;
  std::unique_ptr<SyncReplicas> sync_;
  std::shared_ptr<SyncReplicasHook> sync_hook_;
  MnistModel model_;
  Output step_;  // the step counter
  std::unique_ptr<MonitoredTrainingSession> session_;
  std::unique_ptr<EventWriter> writer_;
  std::optional<Progress> progress_;
  std::unique_ptr<LearningHistory> history_;  // null where no curve is drawn
  bool curve_is_kept_ = true;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace

Status RunMnistTraining(const TrainMnistFlags& flags, const OpRegistry& ops, Server* server,
                        Communicator* ranks) {
  return MnistTraining(flags, ops, server, ranks).Run();
}

Status EvaluateMnistTraining(const TrainMnistFlags& flags, const OpRegistry& ops,
                             const TrainingGoesOn& training_goes_on) {
  return MnistTraining(flags, ops, nullptr, nullptr).Evaluate(training_goes_on);
}

}  // namespace tenon::tools
