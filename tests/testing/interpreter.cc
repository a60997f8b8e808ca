// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/interpreter.h"

#include <algorithm>
#include <future>

#include "core/base/denormals.h"
#include "core/base/exceptions.h"
#include "core/graph/graph.h"
#include "tests/testing/run_kernel.h"

namespace tenon::testing {
namespace {

/// A node's outputs. A node is dead when an input, data or control, is.
struct Result {
  bool dead = false;
  std::vector<Value> outputs;
};

Status GatherInputs(const Node& node, const std::vector<Result>& results,
                    std::vector<Value>* inputs, bool* dead) {
  const bool merge = node.flow() == FlowKind::kMerge;
  bool any_live = false;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Endpoint& in = node.input(i);
    const Result& from = results[in.node->id()];
    const bool live = !from.dead && from.outputs[in.index].live();
    if (!live) {
      *dead |= !merge;
      continue;
    }
    if (merge && any_live) continue;
    any_live = true;
    (*inputs)[i] = from.outputs[in.index];
    Value& value = (*inputs)[i];
    value.tensor.Renew();
    if (value.ref != nullptr && !IsRef(node.input_types()[i])) {
      value.tensor = std::exchange(value.ref, nullptr)->Read();
      if (!value.tensor.valid()) {
        return FailedPrecondition("Attempting to use uninitialized value ", ToString(in));
      }
    }
  }
  *dead |= merge && !any_live;
  if (merge || node.flow() == FlowKind::kControlTrigger) return OkStatus();
  for (const Node* c : node.control_inputs()) *dead |= results[c->id()].dead;
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<Tensor>> Interpret(const Graph& graph, const DeviceRun& run,
                                        KernelCache& kernels, const std::vector<Tensor>& args) {
  const FlushDenormals flush;
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  std::vector<Result> results(graph.num_ids());
  std::vector<Tensor> retvals;
  std::vector<std::shared_ptr<const Kernel>> used;  // references live as long as their kernels
  for (const Node* node : order) {
    const FlowKind flow = node->flow();
    if (flow == FlowKind::kEnter || flow == FlowKind::kConstantEnter) {
      return Unimplemented("the interpreter does not run while loops");
    }
    const auto in_node = [&](const Status& s) {
      return AnnotateWithNode(s, node->name(), node->op(), run.device.name());
    };
    Result& result = results[node->id()];
    std::vector<Value> inputs(node->num_inputs());
    if (Status s = GatherInputs(*node, results, &inputs, &result.dead); !s.ok()) return in_node(s);
    result.outputs.resize(node->num_outputs());
    if (result.dead && flow != FlowKind::kTransfer && !node->is_retval()) continue;
    if (node->is_arg() || node->is_retval()) {
      TENON_ASSIGN_OR_RETURN(const auto index, node->attrs().Get<int64_t>("index"));
      if (node->is_arg()) {
        result.outputs[0].tensor = args.at(index);
        continue;
      }
      if (result.dead) return InvalidArgument("Retval[", index, "] does not have value");
      retvals.resize(std::max<size_t>(retvals.size(), index + 1));
      retvals[index] = inputs[0].tensor;
      continue;
    }
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> kernel, kernels.Get(*node, run.device));
    KernelContext context(run, node->output_types(), inputs.data(), node->num_inputs(),
                          result.outputs.data());
    context.is_input_dead = result.dead;
    if (Status s = RunKernel(*kernel, context); !s.ok()) return in_node(s);
    result.dead = context.is_output_dead;
    used.push_back(std::move(kernel));
  }
  return retvals;
}

}  // namespace tenon::testing
