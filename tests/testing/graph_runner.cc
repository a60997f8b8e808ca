// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/graph_runner.h"

#include <set>

#include "tests/testing/op_runner.h"

namespace tenon::testing {

StatusOr<Kernel*> GraphRunner::KernelOf(const Node& node) {
  std::unique_ptr<Kernel>& kernel = kernels_[&node];
  if (kernel == nullptr) {
    KernelConstruction c(node.name(), node.op(), node.attrs(), node.input_types(),
                         node.output_types(), TestDevice());
    TENON_ASSIGN_OR_RETURN(kernel, node.registration().MakeKernel(c));
  }
  return kernel.get();
}

StatusOr<std::vector<Tensor>> GraphRunner::Run(const std::vector<Output>& fetches,
                                               const Feeds& feeds) {
  std::map<std::pair<const Node*, int>, Value> values;
  std::set<const Node*> fed;
  for (const auto& [output, tensor] : feeds) {
    values[{output.node, output.index}].tensor = tensor;
    fed.insert(output.node);
  }
  std::set<const Node*> needed;
  std::vector<const Node*> stack;
  for (const Output& f : fetches) stack.push_back(f.node);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (fed.contains(node) || !needed.insert(node).second) continue;
    for (const Endpoint& in : node->inputs()) stack.push_back(in.node);
    for (const Node* c : node->control_inputs()) stack.push_back(c);
  }
  ResourceStore resources;
  Cancellation cancellation;
  const ProgramRun run{.cancellation = &cancellation, .resources = &resources};
  const DeviceRun on_device{run, TestDevice(), 1};
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
  for (const Node* node : order) {
    if (!needed.contains(node)) continue;
    std::vector<Value> in, out(node->num_outputs());
    for (int i = 0; i < node->num_inputs(); ++i) {
      Value v = values[{node->input(i).node, node->input(i).index}];
      if (v.ref != nullptr && !IsRef(node->input_types()[i])) {
        v.tensor = v.ref->Read();
        v.ref = nullptr;
      }
      in.push_back(std::move(v));
    }
    TENON_ASSIGN_OR_RETURN(Kernel * kernel, KernelOf(*node));
    KernelContext ctx(on_device, node->output_types(), in.data(), static_cast<int>(in.size()),
                      out.data());
    TENON_RETURN_IF_ERROR(Annotate(kernel->Compute(ctx), StrCat(node->name(), ": ")));
    for (int i = 0; i < node->num_outputs(); ++i) values[{node, i}] = std::move(out[i]);
  }
  std::vector<Tensor> results;
  for (const Output& f : fetches) results.push_back(values[{f.node, f.index}].tensor);
  return results;
}

}  // namespace tenon::testing
