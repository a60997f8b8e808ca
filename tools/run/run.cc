// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <memory>
#include <regex>
#include <set>

#include "core/device/device_name.h"
#include "core/proto/proto_io_graph.h"
#include "core/proto/proto_io_tensor.h"
#include "distributed/client/remote_session.h"
#include "distributed/resolver/task_credentials.h"
#include "ops/register.h"
#include "proto/meta_graph.pb.h"
#include "runtime/passes/pass.h"
#include "runtime/session/local_session.h"
#include "tools/access_flags.h"
#include "tools/commands.h"
#include "tools/device_flags.h"
#include "tools/graph_ends.h"
#include "tools/graph_path.h"
#include "tools/run/explain.h"
#include "tools/run/file_lists.h"
#include "tools/run/names.h"
#include "tools/run/restore.h"
#include "tools/run/run_steps.h"
#include "tools/run/signatures.h"
#include "tools/writable.h"
#include "train/replica_flags.h"
#include "train/saver/saved_model.h"

namespace tenon::tools {
namespace {

/// Thirty years.
constexpr double kMostMilliseconds = 1e12;
constexpr double kMostThreads = 4096;

struct RunFlags {
  std::string graph;
  std::vector<std::string> tags;
  std::string signature;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::vector<std::string> inits;
  std::vector<std::string> places;
  std::vector<std::string> disabled_passes;
  std::string checkpoint;
  std::string master;
  double start_up_deadline = 60;
  CredentialFiles credentials;
  DeviceFlags devices;
  std::string output;
  bool file_names = false;
  std::string trace;
  int64_t steps = 1;
  int64_t batch = 0;
  int threads = 0;
  int64_t timeout_ms = 0;
  bool stats = false;
};

/// For a flag of pairs: what is wrong with `text`, or "".
std::string CheckPair(const std::string& text) {
  return SplitPair(text, "").ok() ? "" : StrCat("found '", text, "', wanted NAME=VALUE");
}

/// Runs what the flags say, once.
class RunCommand {
 public:
  RunCommand(const RunFlags& flags, const OpRegistry& ops) : flags_(flags), ops_(ops) {}

  int Run() {
    FirstRows first;
    if (const Status ready = Prepare(&first); !ready.ok()) return Report(ready);
    if (session_ == nullptr) return Report(WriteNothing());
    if (const Status status = Initialise(first); !status.ok()) {
      return Report(ExplainStepError(status, ends_));
    }
    if (names_.fetches.empty() && flags_.targets.empty()) return kDone;
    RunLoopOptions options;
    options.fetches = names_.fetches;
    options.labels = names_.labels;
    options.targets = flags_.targets;
    options.steps = flags_.steps;
    options.batch = flags_.batch;
    options.timeout_ms = flags_.timeout_ms;
    options.output = output_.get();
    options.file_names = flags_.file_names;
    options.output_name = flags_.output;
    options.trace = flags_.trace;
    options.print_times = flags_.stats;
    options.explain = [this](const Status& status) { return ExplainStepError(status, ends_); };
    return RunSteps(*session_, options, *inputs_, std::move(first));
  }

 private:
  /// Everything that can be found wrong before a session is opened, and then opens it; none when
  /// there are no rows to run anything with.
  Status Prepare(FirstRows* first) {
    TENON_ASSIGN_OR_RETURN(devices_, flags_.devices.Resolve());
    TENON_ASSIGN_OR_RETURN(meta_, LoadGraph());
    if (flags_.master.empty()) LeaveCluster(meta_.mutable_graph_def());
    auto graph = GraphFromProto(meta_.graph_def(), ops_);
    if (!graph.ok()) return Annotate(graph.status(), flags_.graph);
    graph_ = std::make_unique<Graph>(*std::move(graph));
    ends_ = FindGraphEnds(*graph_, meta_);
    TENON_RETURN_IF_ERROR(Place());
    TENON_RETURN_IF_ERROR(ChooseNames());
    TENON_RETURN_IF_ERROR(CheckNames());
    if (!flags_.trace.empty()) TENON_RETURN_IF_ERROR(CheckWritable(flags_.trace, "--trace"));
    if (!flags_.output.empty()) {
      TENON_RETURN_IF_ERROR(CheckOutputIsNotFed());
      TENON_RETURN_IF_ERROR(OpenOutputFile());
    }
    TENON_ASSIGN_OR_RETURN(FeedInputs inputs,
                           FeedInputs::Open(names_.feeds, *graph_, flags_.batch));
    inputs_ = std::make_unique<FeedInputs>(std::move(inputs));
    if (!flags_.checkpoint.empty()) TENON_RETURN_IF_ERROR(PlanRestore());
    TENON_RETURN_IF_ERROR(inputs_->Next(&first->values, &first->rows));
    if (flags_.batch > 0 && first->rows == 0) return OkStatus();
    if (flags_.file_names && (flags_.output.empty() || !inputs_->has_files())) {
      return WrongUsage("--file_names is for --batch, --output and a feed of several files");
    }
    TENON_ASSIGN_OR_RETURN(session_, OpenSession());
    return OkStatus();
  }

  StatusOr<MetaGraphDef> LoadGraph() const {
    auto meta = LoadGraphAt(flags_.graph, flags_.tags, "run");
    if (meta.ok()) return meta;
    // A word that was meant for a flag of the kind that takes one at a time.
    for (const auto* names : {&flags_.fetches, &flags_.targets, &flags_.inits}) {
      for (const std::string& name : *names) {
        if (!FileExists(name) || FileExists(flags_.graph)) continue;
        return WrongUsage(StrCat("there is no graph '", flags_.graph, "', but a file '", name,
                                 "' where a node is wanted; several names are joined by commas, as "
                                 "in --fetch a,b"));
      }
    }
    return meta;
  }

  /// Takes devices of other tasks from the nodes of a graph that runs in this process, such as one
  /// that was saved while it trained on a cluster, and says so.
  static void LeaveCluster(GraphDef* graph) {
    std::set<std::string> jobs;
    const auto leave = [&jobs](auto* nodes) {
      for (NodeDef& node : *nodes) {
        const auto device = DeviceName::Parse(node.device());
        if (!device.ok() || !device->job || *device->job == "localhost") continue;
        jobs.insert(*device->job);
        node.clear_device();
      }
    };
    leave(graph->mutable_node());
    for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
      leave(function.mutable_node_def());
    }
    if (jobs.empty()) return;
    std::fprintf(stderr,
                 "tenon: the graph's devices of the job %s are left out: without --master it runs "
                 "in this process; --place REGEX=DEVICE puts nodes on a device of it\n",
                 Join(std::vector<std::string>(jobs.begin(), jobs.end()), " and ").c_str());
  }

  Status Place() {
    for (const std::string& rule : flags_.places) {
      TENON_ASSIGN_OR_RETURN(const auto pair, SplitPair(rule, "--place"));
      int whole = 0, part = 0;
      std::string some;
      try {
        const std::regex pattern(pair.first);
        for (Node* n : graph_->nodes()) {
          if (std::regex_match(n->name(), pattern)) {
            n->set_requested_device(pair.second);
            ++whole;
          } else if (std::regex_search(n->name(), pattern)) {
            if (part++ == 0) some = n->name();
          }
        }
      } catch (const std::regex_error& e) {
        return InvalidArgument("--place ", rule, ": '", pair.first,
                               "' is not a regular expression: ", e.what());
      }
      if (whole > 0) continue;
      return NotFound("--place ", rule, ": no node's whole name matches '", pair.first, "'",
                      part > 0 ? StrCat("; in part it matches ", part, ", such as '", some,
                                        "': '.*", pair.first, ".*' would take them")
                               : NodeHint(*graph_, pair.first));
    }
    return OkStatus();
  }

  /// Whether all that is fed and fetched are tensors of the graph by their names.
  bool NamesTensors() const {
    const auto is_there = [this](const std::string& name) {
      return FindTensor(*graph_, name, "").ok();
    };
    return std::all_of(flags_.fetches.begin(), flags_.fetches.end(), is_there) &&
           std::all_of(flags_.feeds.begin(), flags_.feeds.end(), [&](const std::string& feed) {
             return is_there(feed.substr(0, feed.find('=')));
           });
  }

  Status ChooseNames() {
    std::string signature = flags_.signature;
    const bool asks = !flags_.fetches.empty() || !flags_.targets.empty();
    if (signature.empty() && !NamesTensors()) {
      signature = SignatureOf(meta_, flags_.feeds, flags_.fetches);
    }
    if (signature.empty() && !asks && !flags_.feeds.empty()) {
      TENON_ASSIGN_OR_RETURN(signature, DefaultSignature(meta_));
    }
    if (!signature.empty()) {
      TENON_ASSIGN_OR_RETURN(names_,
                             NamesOfSignature(meta_, signature, flags_.feeds, flags_.fetches));
    } else {
      TENON_ASSIGN_OR_RETURN(names_, NamesOfTensors(flags_.feeds, flags_.fetches));
      if (!asks && flags_.inits.empty()) return NothingToRun(flags_.graph, ends_, meta_);
    }
    if (flags_.batch > 0 && flags_.steps > 1) {
      return WrongUsage("--batch and --steps exclude each other: a step is a batch");
    }
    return OkStatus();
  }

  Status CheckNames() {
    for (size_t i = 0; i < names_.fetches.size(); ++i) {
      const std::string flag = "--fetch " + names_.labels[i];
      const auto found = FindTensor(*graph_, names_.fetches[i], flag);
      const std::string signature = SignatureOf(meta_, {}, {names_.labels[i]});
      if (!found.ok() && !signature.empty()) {
        return AppendToMessage(found.status(),
                               StrCat("; it is an output of the signature '", signature,
                                      "': give --signature ", signature));
      }
      TENON_RETURN_IF_ERROR(found.status());
      TENON_RETURN_IF_ERROR(CheckIsValue(*found->node, flag));
      fetched_.push_back(*found);
    }
    for (const std::string& target : flags_.targets) {
      TENON_RETURN_IF_ERROR(FindTarget(*graph_, target, "--target " + target).status());
    }
    for (const std::string& init : flags_.inits) {
      TENON_RETURN_IF_ERROR(FindTarget(*graph_, init, "--init " + init).status());
    }
    for (const FeedText& feed : names_.feeds) {
      TENON_RETURN_IF_ERROR(FindTensor(*graph_, feed.tensor, "--feed " + feed.label).status());
    }
    return OkStatus();
  }

  /// A resource variable's name is that of its handle, which says nothing to a person.
  static Status CheckIsValue(const Node& node, const std::string& flag) {
    if (!node.is_variable() || IsRef(node.output_type(0))) return OkStatus();
    for (const OutEdge& edge : node.out_edges()) {
      if (!edge.dst->is_identity()) continue;
      return InvalidArgument(flag, ": node '", node.name(),
                             "' is the handle of a variable, whose value is ", edge.dst->name());
    }
    return OkStatus();
  }

  /// What is written while it is read would be cut short, or never end.
  Status CheckOutputIsNotFed() const {
    for (const FeedText& feed : names_.feeds) {
      const auto paths = PathsOf(feed.value);
      if (!paths.ok()) return Annotate(paths.status(), "--feed " + feed.label);
      for (const std::string& path : *paths) {
        if (!IsSameFile(path, flags_.output)) continue;
        return WrongUsage(StrCat("--output: '", flags_.output, "' is fed to ", feed.label,
                                 "; wanted another file"));
      }
    }
    return OkStatus();
  }

  Status OpenOutputFile() {
    if (names_.fetches.empty())
      return WrongUsage("--output is for fetches, of which there is none");
    OutputOptions options;
    options.path = flags_.output;
    options.labels = names_.labels;
    if (flags_.file_names) options.labels.insert(options.labels.begin(), "file");
    options.steps = flags_.batch > 0   ? RowsAre::kBatches
                    : flags_.steps > 1 ? RowsAre::kRepeats
                                       : RowsAre::kOne;
    const bool is_open = std::any_of(names_.feeds.begin(), names_.feeds.end(), [&](const auto& f) {
      return !HasStaticRows(*FindTensor(*graph_, f.tensor, ""));
    });
    if (flags_.file_names) options.is_whole.push_back(false);
    for (const Endpoint& fetch : fetched_) {
      options.is_whole.push_back(is_open && HasStaticRows(fetch));
    }
    TENON_ASSIGN_OR_RETURN(output_, OpenOutput(options));
    return OkStatus();
  }

  /// Whether the graph fixes how many rows a tensor has.
  static bool HasStaticRows(const Endpoint& tensor) {
    const PartialShape& shape = tensor.node->output_shape(tensor.index);
    return shape.rank() > 0 && shape.dim(0) >= 0;
  }

  Status PlanRestore() {
    CheckpointRestore::Options options;
    for (const FeedText& feed : names_.feeds) options.step.feeds.push_back(feed.tensor);
    options.step.fetches = names_.fetches;
    options.step.targets = flags_.targets;
    options.others_initialise = !flags_.inits.empty();
    options.is_remote = !flags_.master.empty();
    auto restore = CheckpointRestore::Plan(flags_.checkpoint, meta_, options, graph_.get());
    if (!restore.ok()) return Annotate(restore.status(), "--checkpoint");
    restore_ = std::make_unique<CheckpointRestore>(*std::move(restore));
    return OkStatus();
  }

  StatusOr<std::unique_ptr<Session>> OpenSession() const {
    if (!flags_.master.empty()) {
      RemoteSessionOptions options;
      options.connect_deadline =
          std::chrono::milliseconds(static_cast<int64_t>(flags_.start_up_deadline * 1000));
      TENON_ASSIGN_OR_RETURN(options.credentials, FindCredentials(flags_.credentials));
      // Apart from what is fetched, which may be read by another program.
      options.notice = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
      return MakeRemoteSession(flags_.master, *graph_, options);
    }
    LocalSessionOptions options;
    options.threads = flags_.threads;
    options.devices = devices_;
    options.passes.disabled = flags_.disabled_passes;
    return MakeLocalSession(*graph_, options);
  }

  /// Gives the variables their values. The first step's feeds serve initialisers too.
  Status Initialise(const FirstRows& first) {
    if (IsFolder(flags_.graph)) {  // a SavedModel
      TENON_RETURN_IF_ERROR(RestoreSavedModel(*session_, meta_, flags_.graph));
    }
    Session::Feeds feeds;
    const std::vector<std::string> tensors = inputs_->tensors();
    for (size_t i = 0; i < tensors.size(); ++i) feeds.emplace_back(tensors[i], first.values[i]);
    for (const std::string& init : flags_.inits) {
      const Status done =
          session_->Run(feeds, std::vector<std::string>(), std::vector<std::string>{init}).status();
      if (!done.ok()) return Annotate(done, "--init " + init);
    }
    return restore_ == nullptr ? OkStatus() : restore_->Run(*session_);
  }

  /// Writes an output without rows, for feeds that have none.
  Status WriteNothing() const {
    std::fprintf(stderr, "tenon: --batch: the feeds have no rows: no step was run\n");
    if (output_ == nullptr) return OkStatus();
    std::vector<std::pair<DType, PartialShape>> types;
    if (flags_.file_names) types.emplace_back(DType::kString, PartialShape({-1}));
    for (const Endpoint& fetch : fetched_) {
      types.emplace_back(BaseType(fetch.node->output_type(fetch.index)),
                         fetch.node->output_shape(fetch.index));
    }
    TENON_RETURN_IF_ERROR(output_->AddNothing(types));
    TENON_RETURN_IF_ERROR(output_->Finish());
    if (flags_.output != "-") {
      std::printf("%s: %s\n", flags_.output.c_str(), output_->Summary().c_str());
    }
    return OkStatus();
  }

  const RunFlags& flags_;
  const OpRegistry& ops_;
  DeviceOptions devices_;
  MetaGraphDef meta_;
  std::unique_ptr<Graph> graph_;
  GraphEnds ends_;
  RunNames names_;
  std::vector<Endpoint> fetched_;
  std::unique_ptr<OutputWriter> output_;
  std::unique_ptr<FeedInputs> inputs_;
  std::unique_ptr<CheckpointRestore> restore_;
  std::unique_ptr<Session> session_;
};

void AddGraphFlags(CLI::App& run, RunFlags* flags) {
  run.add_option("graph", flags->graph,
                 "GraphDef, MetaGraphDef (.meta) or SavedModel, binary or text; of the folder of a "
                 "SavedModel, the variables too")
      ->required();
  run.add_option("--tags", flags->tags,
                 "Of a SavedModel of several graphs, the one with these tags")
      ->delimiter(',')
      ->allow_extra_args(false);
  run.add_option(
      "--signature", flags->signature,
      "Feeds and fetches are inputs and outputs of this signature of the model; without "
      "fetches, all outputs. default: with --feed alone, serving_default or the only one");
  run.add_option("--feed", flags->feeds,
                 "NAME=FILE.npy, NAME=FILE.npz:KEY, NAME=FILE.csv (.tsv, .txt), NAME=- (the "
                 "standard input), NAME=@FILE (its bytes) or NAME=LITERAL (1.5, [[1,2]], true, "
                 "\"text\"); the rows of several files: NAME=FILE,FILE,... or NAME=PATTERN, such "
                 "as 'x=part-*.npy'")
      ->check(CheckPair)
      ->allow_extra_args(false);
  run.add_option("--fetch", flags->fetches,
                 "Tensors to give out: NODE or NODE:OUTPUT, joined by "
                 "commas or a flag each")
      ->delimiter(',')
      ->allow_extra_args(false);
  run.add_option("--target", flags->targets, "Nodes to run beside, without an output")
      ->delimiter(',')
      ->allow_extra_args(false);
  run.add_option("--init", flags->inits, "Nodes to run once before the steps, with the same feeds")
      ->delimiter(',')
      ->allow_extra_args(false);
  run.add_option(
      "--checkpoint", flags->checkpoint,
      "Restore the variables from this checkpoint, or the latest one of a folder: by the "
      "saver of the MetaGraph, or by their names");
  run.add_option("--place", flags->places,
                 "REGEX=DEVICE: put the nodes whose whole name matches there")
      ->check(CheckPair)
      ->allow_extra_args(false);
}

void AddStepFlags(CLI::App& run, RunFlags* flags) {
  run.add_option("--steps", flags->steps, "How often to run the step")->check(Between(1, 1e12));
  run.add_option("--batch", flags->batch,
                 "Run a step for each so many rows of the files that are fed; default: all rows in "
                 "one step")
      ->check(Between(1, 1e12));
  run.add_option(
      "--output", flags->output,
      "Write all elements of the fetches to this file: .npz, .npy, .csv, .tsv or .json; -: "
      "as CSV to the standard output");
  run.add_flag("--file_names", flags->file_names,
               "With --batch and a feed of several files: write the file of each row, as 'file'");
  run.add_option("--timeout_ms", flags->timeout_ms,
                 "Fail a step that takes longer, without what prepares it; default: no limit")
      ->check(Between(0, kMostMilliseconds));
  run.add_flag("--stats", flags->stats, "Print the times of the steps");
  run.add_option("--trace", flags->trace, "Write a Chrome trace of the last step to this file");
}

}  // namespace

void AddRunCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* run = app.add_subcommand("run", "Load a graph and run steps of it");
  AddGraphFlags(*run, flags.get());
  AddStepFlags(*run, flags.get());
  run->add_option("--master", flags->master,
                  "Run on the cluster of the server at grpc://host:port; default: in this process");
  run->add_option("--start_up_deadline", flags->start_up_deadline,
                  "Seconds to wait for that server to answer")
      ->check(Between(0, 1e9));
  AddCredentialFlags(*run, &flags->credentials);
  flags->devices.AddTo(*run);
  run->add_option("--threads", flags->threads, "Threads that run kernels; default: cores")
      ->check(Between(0, kMostThreads));
  std::vector<std::string_view> passes;
  for (const Pass& pass : AllPasses()) passes.push_back(pass.name);
  run->add_option("--disable_pass", flags->disabled_passes,
                  StrCat("Graph passes to leave out: ", Join(passes, ", ")))
      ->delimiter(',')
      ->allow_extra_args(false);
  run->callback([=] { *chosen = [flags] { return RunCommand(*flags, AllOps()).Run(); }; });
}

}  // namespace tenon::tools
