// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_copies.h"

#include "core/hash_map.h"
#include "core/host_args.h"

namespace tenon {
namespace {

/// Which inputs and outputs of a node are in host memory.
struct NodeMemory {
  std::vector<bool> inputs, outputs;
};

StatusOr<NodeMemory> MemoryOf(const Node& node) {
  NodeMemory memory;
  if (node.op() == "_Arg" || node.op() == "_Retval") {
    memory.inputs.assign(node.num_inputs(), true);
    memory.outputs.assign(node.num_outputs(), true);
    return memory;
  }
  TENON_ASSIGN_OR_RETURN(memory.inputs, HostArgs(node.schema().inputs, node.attrs()));
  TENON_ASSIGN_OR_RETURN(memory.outputs, HostArgs(node.schema().outputs, node.attrs()));
  // What a reference refers to, which such a consumer reads, is in the device's memory.
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (IsRef(node.output_type(i))) memory.outputs[i] = !IsPlain(BaseType(node.output_type(i)));
  }
  return memory;
}

/// Makes the copies of one graph.
class Copier {
 public:
  explicit Copier(Graph* graph) : graph_(*graph), memory_(graph->num_ids()) {}

  Status Run() {
    const std::vector<Node*> nodes = graph_.nodes();
    for (const Node* n : nodes) {
      TENON_ASSIGN_OR_RETURN(memory_[n->id()], MemoryOf(*n));
    }
    std::vector<Node*> unused;
    for (Node* n : nodes) {
      for (int i = 0; i < n->num_inputs(); ++i) {
        const Endpoint from = n->input(i);
        const bool on_host = memory_[n->id()].inputs[i];
        if (IsRef(n->input_types()[i]) || memory_[from.node->id()].outputs[from.index] == on_host) {
          continue;
        }
        TENON_ASSIGN_OR_RETURN(Node * copy, CopyOf(from, on_host));
        TENON_RETURN_IF_ERROR(graph_.Connect({copy, 0}, n, i));
        if (copy->op() == "HostConst" && from.node->out_edges().empty())
          unused.push_back(from.node);
      }
    }
    graph_.RemoveNodes(unused);
    return OkStatus();
  }

 private:
  StatusOr<Node*> CopyOf(const Endpoint& from, bool to_host) {
    Node*& copy = copies_[{from.node, from.index}];
    if (copy != nullptr) return copy;
    const std::string name =
        graph_.UniqueName(StrCat(from.node->name(), to_host ? "/on_host" : "/on_device"));
    if (to_host && from.node->op() == "Const") {
      TENON_ASSIGN_OR_RETURN(copy, graph_.AddNode(name, "HostConst", from.node->attrs(), {}));
      for (Node* before : from.node->control_inputs()) graph_.AddControlEdge(before, copy);
    } else {
      const DType type = BaseType(from.node->output_type(from.index));
      TENON_ASSIGN_OR_RETURN(copy, graph_.AddNode(name, to_host ? "_CopyToHost" : "_CopyToDevice",
                                                  {{"T", type}}, {from}));
    }
    copy->set_assigned_device(from.node->assigned_device());
    return copy;
  }

  Graph& graph_;
  std::vector<NodeMemory> memory_;  // by node id
  flat_hash_map<std::pair<Node*, int>, Node*> copies_;
};

}  // namespace

Status AddMemoryCopies(Graph* part, Device& device) {
  if (device.allocator().IsHostMemory()) return OkStatus();
  return Copier(part).Run();
}

}  // namespace tenon
