// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <map>

#include "core/proto/proto_io_graph.h"
#include "data/files/file.h"
#include "ops/register.h"
#include "proto/meta_graph.pb.h"
#include "runtime/functions/expansion.h"
#include "tools/checkpoints.h"
#include "tools/coefficients.h"
#include "tools/commands.h"
#include "tools/graph_ends.h"
#include "tools/graph_path.h"
#include "tools/run/signatures.h"
#include "tools/writable.h"

namespace tenon::tools {
namespace {

struct InspectFlags {
  std::string graph;
  std::vector<std::string> tags;
  std::string output;
  std::vector<std::string> prints;
  std::string compare;
  bool coefficients = false;
  bool nodes = false;
  bool dot = false;
};

/// Why no step can run the node, "  (no kernel)" or so; empty when one can: by a kernel, by what a
/// step does itself, or as the bodies of its functions.
std::string WhyNot(const Graph& graph, const Node& node) {
  if (IsCall(graph, node)) {
    const std::string missing = MissingFunction(graph, node);
    return missing.empty() ? "" : StrCat("  (no function ", missing, ")");
  }
  const bool runs = node.registration().HasKernel(node.attrs()) || node.schema().is_runtime_only();
  return runs ? "" : "  (no kernel)";
}

/// How often each op is there, the most frequent first; those that cannot run are marked.
void PrintSummary(const Graph& graph) {
  std::map<std::string, std::pair<int, std::string>> ops;
  for (const Node* node : graph.nodes()) {
    auto& [count, why_not] = ops[node->op()];
    ++count;
    if (why_not.empty()) why_not = WhyNot(graph, *node);
  }
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [op, entry] : ops) order.emplace_back(-entry.first, op);
  std::sort(order.begin(), order.end());
  std::printf("%d nodes of %zu ops\n", graph.num_nodes(), ops.size());
  for (const auto& [count, op] : order) {
    std::printf("%8d  %s%s\n", -count, op.c_str(), ops[op].second.c_str());
  }
}

/// "name = Op(inputs) -> dtype[shape], ... on device"
void PrintNode(const Graph& graph, const Node& node) {
  std::vector<std::string> inputs, outputs;
  for (const Endpoint& in : node.inputs()) inputs.push_back(ToString(in));
  for (const Node* control : node.control_inputs()) inputs.push_back("^" + control->name());
  for (int i = 0; i < node.num_outputs(); ++i) {
    outputs.push_back(ToString(node.output_type(i)) + node.output_shape(i).ToString());
  }
  std::printf("%s = %s(%s)%s%s%s%s%s\n", node.name().c_str(), node.op().c_str(),
              Join(inputs, ", ").c_str(), outputs.empty() ? "" : " -> ",
              Join(outputs, ", ").c_str(), node.requested_device().empty() ? "" : " on ",
              node.requested_device().c_str(), WhyNot(graph, node).c_str());
}

/// A node's name between quotes, for Graphviz, to which a backslash means something.
std::string Quoted(const Node& node) {
  std::string text;
  for (const char c : node.name()) text += c == '\\' ? "\\\\" : std::string(1, c);
  return text;
}

void PrintDot(const Graph& graph) {
  std::printf("digraph {\n  rankdir = BT\n  node [shape = box]\n");
  for (const Node* node : graph.nodes()) {
    const std::string name = Quoted(*node);
    std::printf("  \"%s\" [label = \"%s\\n%s\"%s]\n", name.c_str(), name.c_str(),
                node->op().c_str(), WhyNot(graph, *node).empty() ? "" : ", style = dashed");
    for (const Endpoint& in : node->inputs()) {
      std::printf("  \"%s\" -> \"%s\"\n", Quoted(*in.node).c_str(), name.c_str());
    }
    for (const Node* control : node->control_inputs()) {
      std::printf("  \"%s\" -> \"%s\" [style = dotted]\n", Quoted(*control).c_str(), name.c_str());
    }
  }
  std::printf("}\n");
}

Status Save(const Graph& graph, const std::string& path) {
  GraphDef proto;
  TENON_RETURN_IF_ERROR(GraphToProto(graph, &proto));
  return WriteTextFile(path, proto.SerializeAsString());
}

Status Inspect(const InspectFlags& flags, const OpRegistry& ops) {
  if (!flags.output.empty()) TENON_RETURN_IF_ERROR(CheckWritable(flags.output, "--output"));
  TENON_ASSIGN_OR_RETURN(const MetaGraphDef meta, LoadGraphAt(flags.graph, flags.tags, "inspect"));
  const auto graph = GraphFromProto(meta.graph_def(), ops);
  if (!graph.ok()) return Annotate(graph.status(), flags.graph);
  if (!flags.output.empty()) return Save(*graph, flags.output);
  if (flags.dot) {
    PrintDot(*graph);
  } else if (flags.nodes) {
    for (const Node* node : graph->nodes()) PrintNode(*graph, *node);
  } else {
    PrintSummary(*graph);
    std::printf("%s", DescribeGraphEnds(FindGraphEnds(*graph, meta)).c_str());
    TENON_ASSIGN_OR_RETURN(const std::string signatures, DescribeSignatures(meta));
    std::printf("%s", signatures.c_str());
  }
  return OkStatus();
}

/// The checkpoint of a path, of the SavedModel in a folder, or beside a .meta file; NotFound says
/// which there are.
StatusOr<std::string> CheckpointAt(const std::string& path) {
  constexpr std::string_view kMeta = ".meta";
  if (path.ends_with(kMeta)) {
    if (const auto prefix = FindCheckpoint(path.substr(0, path.size() - kMeta.size()))) {
      return *prefix;
    }
  }
  if (const auto prefix = FindCheckpoint(path)) return *prefix;
  if (const auto prefix = FindCheckpoint(JoinPath(path, "variables/variables"))) return *prefix;
  return NoCheckpoint(path);
}

int InspectCheckpoint(const InspectFlags& flags, const std::string& prefix, const OpRegistry& ops) {
  const CoefficientFlags coefficients{flags.graph, flags.tags, flags.output};
  if (flags.coefficients) {
    if (!flags.output.empty() && flags.output != "-") {
      if (const Status status = CheckWritable(flags.output, "--output"); !status.ok()) {
        return Report(status);
      }
    }
    return Report(WriteCoefficients(coefficients, prefix, ops));
  }
  if (!flags.compare.empty()) {
    const auto other = CheckpointAt(flags.compare);
    if (!other.ok()) return Report(Annotate(other.status(), "--compare"));
    const auto same = CompareCheckpoints(prefix, *other);
    return same.ok() && !*same ? kFailed : Report(same.status());
  }
  Status status;
  if (flags.prints.empty()) {
    status = PrintCheckpoint(prefix);
    if (status.ok()) status = PrintFirstCoefficients(coefficients, prefix, ops);
  }
  for (const std::string& name : flags.prints) status.Update(PrintTensor(prefix, name));
  return Report(status);
}

int InspectFile(const InspectFlags& flags, const OpRegistry& ops) {
  const bool wants_checkpoint =
      flags.coefficients || !flags.compare.empty() || !flags.prints.empty();
  const bool wants_graph = !wants_checkpoint && (flags.nodes || flags.dot || !flags.output.empty());
  if (const auto prefix = FindCheckpoint(flags.graph); prefix && !wants_graph) {
    return InspectCheckpoint(flags, *prefix, ops);
  }
  if (!wants_checkpoint) return Report(Inspect(flags, ops));
  const auto prefix = CheckpointAt(flags.graph);
  return prefix.ok() ? InspectCheckpoint(flags, *prefix, ops) : Report(prefix.status());
}

}  // namespace

void AddInspectCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* inspect =
      app.add_subcommand("inspect", "Say what is in a graph or checkpoint, or draw a graph");
  inspect
      ->add_option("graph", flags->graph,
                   "GraphDef, MetaGraphDef or SavedModel, binary or text; or a checkpoint: its "
                   "prefix, .index file, or the folder of a state file")
      ->required();
  auto* nodes = inspect->add_flag("--nodes", flags->nodes, "Every node with its inputs and shapes");
  auto* dot =
      inspect->add_flag("--dot", flags->dot, "The graph as Graphviz draws it")->excludes(nodes);
  auto* output =
      inspect
          ->add_option("--output", flags->output,
                       "Write the graph to this file, as a GraphDef with all attributes filled in; "
                       "with --coefficients these, as CSV")
          ->excludes(nodes)
          ->excludes(dot);
  inspect
      ->add_option("--tags", flags->tags,
                   "Of a SavedModel of several graphs, the one with these tags")
      ->delimiter(',')
      ->allow_extra_args(false);
  auto* print = inspect
                    ->add_option("--print", flags->prints,
                                 "Print all elements of these tensors of the checkpoint, or of a "
                                 "SavedModel's")
                    ->delimiter(',')
                    ->allow_extra_args(false);
  auto* compare =
      inspect
          ->add_option("--compare", flags->compare,
                       "Print what differs from this checkpoint; exit code 1 when something does")
          ->excludes(print)
          ->excludes(output);
  print->excludes(output);
  inspect
      ->add_flag("--coefficients", flags->coefficients,
                 "Print the weights of a linear model of TensorFlow's feature columns, with the "
                 "category, interval or bucket of each, from the checkpoint and its graph")
      ->excludes(nodes)
      ->excludes(dot)
      ->excludes(print)
      ->excludes(compare);
  inspect->callback([=] { *chosen = [flags] { return InspectFile(*flags, AllOps()); }; });
}

}  // namespace tenon::tools
