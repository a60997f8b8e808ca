// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <regex>

#include "core/proto_io_file.h"
#include "core/proto_io_graph.h"
#include "core/proto_io_tensor.h"
#include "data/npy.h"
#include "distributed/remote_session.h"
#include "runtime/local_session.h"
#include "tools/access_flags.h"
#include "tools/commands.h"
#include "tools/device_flags.h"
#include "tools/signatures.h"
#include "tools/values.h"
#include "train/replica_flags.h"
#include "train/saver/saved_model.h"

namespace tenon::tools {
namespace {

struct RunFlags {
  std::string graph;
  std::string signature;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::vector<std::string> inits;
  std::vector<std::string> places;
  std::vector<std::string> disabled_passes;
  std::string master;
  CredentialFiles credentials;
  DeviceFlags devices;
  std::string output;
  std::string trace;
  int64_t steps = 1;
  int threads = 0;
  int64_t timeout_ms = 0;
  bool stats = false;
};

/// "a=b" taken apart at the first '='.
StatusOr<std::pair<std::string, std::string>> SplitPair(const std::string& text,
                                                        std::string_view flag) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return InvalidArgument(flag, " ", text, ": wanted NAME=VALUE");
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

/// For a flag of such pairs: what is wrong with `text`, or "".
std::string CheckPair(const std::string& text) {
  return SplitPair(text, "").ok() ? "" : StrCat("'", text, "': wanted NAME=VALUE");
}

Status Place(const std::vector<std::string>& rules, Graph* graph) {
  for (const std::string& rule : rules) {
    TENON_ASSIGN_OR_RETURN(const auto pair, SplitPair(rule, "--place"));
    std::regex pattern;
    try {
      pattern = std::regex(pair.first);
    } catch (const std::regex_error& e) {
      return InvalidArgument("--place ", rule, ": '", pair.first,
                             "' is not a regular expression: ", e.what());
    }
    for (Node* n : graph->nodes()) {
      if (std::regex_match(n->name(), pattern)) n->set_requested_device(pair.second);
    }
  }
  return OkStatus();
}

StatusOr<Session::Feeds> ReadFeeds(const std::vector<std::string>& texts, const Graph& graph) {
  Session::Feeds feeds;
  for (const std::string& text : texts) {
    TENON_ASSIGN_OR_RETURN(const auto pair, SplitPair(text, "--feed"));
    TENON_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(pair.first));
    const Node* node = graph.Find(name.node);
    if (node == nullptr || name.index >= node->num_outputs()) {
      return NotFound("--feed ", text, ": the graph has no tensor '", pair.first, "'");
    }
    auto value = ReadValue(pair.second, BaseType(node->output_type(name.index)));
    if (!value.ok()) return Annotate(value.status(), StrCat("--feed ", pair.first));
    feeds.emplace_back(pair.first, *std::move(value));
  }
  return feeds;
}

/// `labels` are what the fetches are called.
Status WriteOutput(const RunFlags& flags, const std::vector<std::string>& labels,
                   const std::vector<std::vector<Tensor>>& fetched) {
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (size_t step = 0; step < fetched.size(); ++step) {
    for (size_t i = 0; i < labels.size(); ++i) {
      const std::string suffix = flags.steps > 1 ? StrCat("/", step) : "";
      arrays.emplace_back(labels[i] + suffix, fetched[step][i]);
    }
  }
  return WriteNpz(flags.output, arrays);
}

void PrintStats(std::vector<double> milliseconds) {
  std::sort(milliseconds.begin(), milliseconds.end());
  const size_t n = milliseconds.size();
  std::printf("%zu steps: min %.3f ms, median %.3f ms, max %.3f ms\n", n, milliseconds.front(),
              milliseconds[n / 2], milliseconds.back());
}

StatusOr<std::unique_ptr<Session>> OpenSession(const RunFlags& flags, const Graph& graph) {
  if (!flags.master.empty()) {
    RemoteSessionOptions options;
    TENON_ASSIGN_OR_RETURN(options.credentials, ReadCredentials(flags.credentials));
    return MakeRemoteSession(flags.master, graph, options);
  }
  TENON_ASSIGN_OR_RETURN(const DeviceOptions devices, flags.devices.Resolve());
  LocalSessionOptions options;
  options.threads = flags.threads;
  options.cpu_devices = devices.cpu_devices.value_or(1);
  options.gpu_devices = devices.gpu_devices.value_or(kAllGpus);
  options.gpu = devices.gpu;
  options.passes.disabled = flags.disabled_passes;
  return MakeLocalSession(graph, options);
}

Status Run(const RunFlags& flags, const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const MetaGraphDef meta, LoadMetaGraphDef(flags.graph));
  auto graph = GraphFromProto(meta.graph_def(), ops);
  if (!graph.ok()) return Annotate(graph.status(), flags.graph);
  TENON_RETURN_IF_ERROR(Place(flags.places, &*graph));
  SignatureNames names{flags.feeds, flags.fetches, flags.fetches};
  if (!flags.signature.empty()) {
    TENON_ASSIGN_OR_RETURN(names,
                           ResolveSignature(meta, flags.signature, flags.feeds, flags.fetches));
  }
  if (!names.feeds.empty() && names.fetches.empty() && flags.targets.empty()) {
    return WrongUsage("--feed is for --fetch, --target or --signature, of which there is none");
  }
  TENON_ASSIGN_OR_RETURN(const Session::Feeds feeds, ReadFeeds(names.feeds, *graph));
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, OpenSession(flags, *graph));
  if (std::filesystem::is_directory(flags.graph)) {  // a SavedModel
    TENON_RETURN_IF_ERROR(RestoreSavedModel(*session, meta, flags.graph));
  }
  for (const std::string& init : flags.inits) {
    TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  }
  if (names.fetches.empty() && flags.targets.empty()) return OkStatus();
  std::vector<std::vector<Tensor>> fetched;
  std::vector<double> milliseconds;
  std::vector<NodeTrace> trace;
  for (int64_t step = 0; step < flags.steps; ++step) {
    StepOptions options;
    options.timeout = std::chrono::milliseconds(flags.timeout_ms);
    if (!flags.trace.empty() && step + 1 == flags.steps) options.trace = &trace;
    const auto start = std::chrono::steady_clock::now();
    TENON_ASSIGN_OR_RETURN(std::vector<Tensor> values,
                           session->Run(feeds, names.fetches, flags.targets, options));
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
    for (size_t i = 0; i < values.size(); ++i) {
      std::printf("%s = %s\n", names.labels[i].c_str(), values[i].ToString().c_str());
    }
    if (!flags.output.empty()) fetched.push_back(std::move(values));
  }
  if (flags.stats) PrintStats(milliseconds);
  if (!flags.trace.empty()) TENON_RETURN_IF_ERROR(WriteTextFile(flags.trace, ToChromeTrace(trace)));
  if (!flags.output.empty()) TENON_RETURN_IF_ERROR(WriteOutput(flags, names.labels, fetched));
  return OkStatus();
}

}  // namespace

void AddRunCommand(CLI::App& app, const OpRegistry& ops, Command* chosen) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* run = app.add_subcommand("run", "Load a graph and run steps of it");
  run->add_option("graph", flags->graph,
                  "GraphDef, MetaGraphDef or SavedModel, binary or text; of the folder of a "
                  "SavedModel, the variables too")->required();
  run->add_option("--signature", flags->signature,
                  "Feeds and fetches are inputs and outputs of this signature of the model, such as "
                  "serving_default; without fetches, all outputs");
  run->add_option("--feed", flags->feeds,
                  "NAME=FILE.npy, NAME=FILE.npz:KEY or NAME=LITERAL (1.5, [[1,2]], true, \"text\")")
      ->check(CheckPair);
  run->add_option("--fetch", flags->fetches, "Tensor to print: NODE or NODE:OUTPUT");
  run->add_option("--target", flags->targets, "Node to run without printing");
  run->add_option("--init", flags->inits, "Node to run once before the steps");
  run->add_option("--place", flags->places,
                  "REGEX=DEVICE: put the nodes whose whole name matches there")
      ->check(CheckPair);
  run->add_option("--steps", flags->steps, "How often to run the step")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  run->add_option("--master", flags->master, "grpc://host:port; without, in this process");
  AddCredentialFlags(*run, &flags->credentials);
  flags->devices.AddTo(*run);
  run->add_option("--output", flags->output, "Write the fetches to this .npz file");
  run->add_option("--trace", flags->trace, "Write a Chrome trace of the last step to this file");
  run->add_option("--threads", flags->threads, "Threads that run kernels (default: cores)")
      ->check(AtLeast(0));
  run->add_option("--timeout_ms", flags->timeout_ms, "Fail a step that takes longer")
      ->check(AtLeast(0));
  run->add_option("--disable-pass", flags->disabled_passes, "Graph pass to leave out");
  run->add_flag("--stats", flags->stats, "Print the times of the steps");
  run->callback([=, &ops] { *chosen = [flags, &ops] { return Report(Run(*flags, ops)); }; });
}

}  // namespace tenon::tools
