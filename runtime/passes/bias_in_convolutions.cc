// SPDX-License-Identifier: Apache-2.0
#include "runtime/passes/pass.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/replace_nodes.h"

namespace tenon {
namespace {

bool IsValue(const Endpoint& in) { return !IsRef(in.node->output_type(in.index)); }

std::string DataFormat(const Node& node) {
  return node.attrs().GetOr<std::string>("data_format", "NHWC");
}

/// The convolution that `bias_add` alone uses; null when there is none.
Node* ConvolutionOf(const Node& bias_add) {
  Node* const conv = bias_add.input(0).node;
  const bool fits = conv->op() == "Conv2D" && conv->out_edges().size() == 1 &&
                    DataFormat(*conv) == DataFormat(bias_add);
  // What a reference stands for may be another value when the bias is there.
  const bool values =
      fits && IsValue(conv->input(0)) && IsValue(conv->input(1)) && IsValue(bias_add.input(1));
  return values ? conv : nullptr;
}

}  // namespace

StatusOr<bool> AddBiasInConvolutions(Graph* graph, const PassContext& context) {
  const std::vector<Node*> additions = NodesOf(*graph, "BiasAdd");
  if (additions.empty()) return false;
  const OpRegistration* const fused = graph->registry().Find("_Conv2DWithBias");
  if (fused == nullptr) return false;
  std::vector<Replaced> replaced;
  std::vector<Node*> convolutions;
  for (Node* const node : additions) {
    Node* const conv = ConvolutionOf(*node);
    if (conv == nullptr || fused->FindKernel(context.device->kind(), conv->attrs()) == nullptr) {
      continue;
    }
    replaced.emplace_back(node, "_Conv2DWithBias", conv->attrs(),
                          std::vector<Endpoint>{conv->input(0), conv->input(1), node->input(1)});
    const auto& before = conv->control_inputs();
    std::vector<Node*>& waits = replaced.back().control_inputs;
    waits.insert(waits.end(), before.begin(), before.end());
    convolutions.push_back(conv);
  }
  if (replaced.empty()) return false;
  TENON_RETURN_IF_ERROR(ReplaceNodes(graph, replaced, convolutions));
  return true;
}

}  // namespace tenon
