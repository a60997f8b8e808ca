// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/cost_graph.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "core/base/hash_map.h"

namespace tenon {
namespace {

/// "^name", "name" or "name:output".
std::pair<std::string_view, int> SplitInput(std::string_view input) {
  if (input.starts_with('^')) return {input.substr(1), -1};
  const size_t colon = input.rfind(':');
  int output = 0;
  if (colon != std::string_view::npos) {
    std::from_chars(input.data() + colon + 1, input.data() + input.size(), output);
  }
  return {input.substr(0, colon), output};
}

void AddExecution(const NodeExecStats& stats, CostGraphDef::Node* node) {
  const int64_t micros = stats.op_end_rel_micros() - stats.op_start_rel_micros();
  node->set_compute_cost(node->compute_cost() + micros);  // a loop runs it several times
  node->set_compute_time(node->compute_time() + micros);
  node->clear_output_info();
  for (const NodeOutput& output : stats.output()) {
    const TensorDescription& tensor = output.tensor_description();
    CostGraphDef::Node::OutputInfo* const info = node->add_output_info();
    info->set_size(tensor.allocation_description().requested_bytes());
    info->set_alias_input_port(-1);
    *info->mutable_shape() = tensor.shape();
    info->set_dtype(tensor.dtype());
  }
}

}  // namespace

void AddCosts(const GraphDef& graph, const StepStats& stats, CostGraphDef* out) {
  const int first = out->node_size();
  StringViewMap<int> ids;
  for (const NodeDef& n : graph.node()) {
    const int id = first + static_cast<int>(ids.size());
    ids.emplace(n.name(), id);
    CostGraphDef::Node* const node = out->add_node();
    node->set_name(n.name());
    node->set_device(n.device());
    node->set_id(id);
    node->set_is_final(true);
  }
  for (int i = 0; i < graph.node_size(); ++i) {
    CostGraphDef::Node* const node = out->mutable_node(first + i);
    for (const std::string& input : graph.node(i).input()) {
      const auto [name, port] = SplitInput(input);
      const int from = ids.at(name);
      out->mutable_node(from)->set_is_final(false);
      if (port < 0) {
        node->add_control_input(from);
      } else {
        node->add_input_info()->set_preceding_node(from);
        node->mutable_input_info(node->input_info_size() - 1)->set_preceding_port(port);
      }
    }
  }
  for (const DeviceStepStats& device : stats.dev_stats()) {
    for (const NodeExecStats& execution : device.node_stats()) {
      const auto id = ids.find(execution.node_name());
      if (id != ids.end()) AddExecution(execution, out->mutable_node(id->second));
    }
  }
}

}  // namespace tenon
