// SPDX-License-Identifier: Apache-2.0
#include "core/gradient/gradient_flow.h"

#include <algorithm>
#include <queue>

#include "core/build/loop_frame.h"
#include "core/device/device_name.h"
#include "core/gradient/gradient_rows.h"
#include "core/gradient/reference_reads.h"
#include "core/graph/graph.h"

namespace tenon {
namespace {

/// How many loops a loop may be in. Gradients of the loops within one are part of its own; and the
/// frames of a graph that cannot run may be in each other.
constexpr int kMaxLoopDepth = 64;

/// The loop that each loop is in.
flat_hash_map<std::string, std::string> LoopsAround(Graph& graph, const std::vector<Node*>& order) {
  flat_hash_map<std::string, std::string> around;
  for (const Node* node : order) {
    if (!node->is_enter()) continue;
    std::string outer = LoopFrameOf(graph, *node->input(0).node);
    if (!outer.empty()) around.emplace(LoopFrameOf(graph, *node), std::move(outer));
  }
  return around;
}

/// Whether the value that `node` takes from `in` shows updates of a ref variable: not where the two
/// were put on different tasks, between which the value is sent.
bool SeesUpdates(const Node& node, const Endpoint& in) {
  const Node* const variable = ReferenceRead(in);
  if (variable == nullptr) return false;
  const auto here = DeviceName::Parse(node.requested_device());
  const auto there = DeviceName::Parse(variable->requested_device());
  if (!here.ok() || !there.ok()) return true;
  const bool other_job = here->job && there->job && here->job != there->job;
  const bool other_task = here->task && there->task && here->task != there->task;
  return !other_job && !other_task;
}

/// The same rows, with `change` made to each tensor that says which they are.
template <typename Change>
IndexedSlices ForEachTensor(const IndexedSlices& rows, const Change& change) {
  return {change(rows.values), change(rows.indices), change(rows.dense_shape)};
}

}  // namespace

Gradient GradientFlow::SumOfParts(const Output& x) {
  const auto found = parts_.find({x.node, x.index});
  if (found == parts_.end()) return {};
  std::vector<Gradient>& parts = found->second;
  if (parts.size() == 1) return parts[0];
  const bool sparse = std::all_of(parts.begin(), parts.end(),
                                  [](const Gradient& part) { return part.is_sparse(); });
  if (sparse) {
    parts.assign(1, JoinRows(parts));
  } else {
    std::vector<Output> dense;
    for (const Gradient& part : parts) dense.push_back(part.ToDense());
    const ColocateWith beside(dense[0]);
    parts.assign(1, NodeBuilder("AddN").Inputs(dense).Output());
  }
  return parts[0];
}

Output GradientFlow::Sum(const Output& x) {
  // The parts stay rows: x may be one of those whose gradient is wanted.
  return SumOfParts(x).ToDense();
}

Status GradientFlow::Pass(Node* node) {
  if (node->num_inputs() == 0) return OkStatus();
  if (node->is_enter()) {
    // Within the iteration that the gradients are of; whole loops are passed by PassLoop.
    if (Between(node->input(0).node)) Add(node->input(0), SumOfParts(node));
    return graph_.error();
  }
  if (node->flow() == FlowKind::kSwitch &&
      std::find(entered_.begin(), entered_.end(), Output(node->input(1))) != entered_.end()) {
    // Its other output is dead here.
    for (int i = 0; i < node->num_outputs() && Between(node->input(0).node); ++i) {
      Add(node->input(0), SumOfParts(Output(node, i)));
    }
    return graph_.error();
  }
  if (PassRows(node)) return graph_.error();
  std::vector<Output> dys(node->num_outputs());
  bool any = false;
  for (int i = 0; i < node->num_outputs(); ++i) {
    dys[i] = Sum(Output(node, i));
    any |= dys[i].exists();
  }
  TENON_RETURN_IF_ERROR(graph_.error());
  const OpRegistration& op = node->registration();
  if (!any || !op.schema.is_differentiable) return OkStatus();
  const bool wanted = std::any_of(node->inputs().begin(), node->inputs().end(),
                                  [&](const Endpoint& in) { return Between(in.node); });
  if (!wanted) return OkStatus();
  const std::string custom = node->attrs().GetOr<std::string>("_gradient_op_type", "");
  const auto found = graph_.custom_gradients().find(custom);
  if (!custom.empty() && found == graph_.custom_gradients().end()) {
    return InvalidArgument("node '", node->name(), "' (", node->op(), "): its gradient '", custom,
                           "' is a function of the program that built it, which a file of the "
                           "graph does not have");
  }
  const GradientFn& gradient = custom.empty() ? op.gradient : found->second;
  if (!gradient) {
    return InvalidArgument("node '", node->name(), "' (", node->op(),
                           "): the op has no gradient function");
  }
  GradContext g(*node, dys, value_of_);
  const int first_new = graph_.num_ids();
  {
    const NameScope in(StrCat(node->name(), "_grad"));
    const ColocateWith beside(node);
    gradient(g);
  }
  TENON_RETURN_IF_ERROR(Annotate(g.status(), StrCat("gradient of node '", node->name(), "'")));
  TENON_RETURN_IF_ERROR(graph_.error());
  std::vector<Gradient> dxs(g.dxs().begin(), g.dxs().end());
  HoldBack(*node, first_new, &dxs);
  TENON_RETURN_IF_ERROR(graph_.error());
  for (int i = 0; i < node->num_inputs(); ++i) {
    if (Between(node->input(i).node)) Add(node->input(i), dxs[i]);
  }
  return OkStatus();
}

void GradientFlow::HoldBack(const Node& node, int first_new, std::vector<Gradient>* dxs) {
  std::vector<bool> reads(node.num_inputs());
  bool any = false;
  for (int i = 0; i < node.num_inputs(); ++i) any |= reads[i] = SeesUpdates(node, node.input(i));
  if (!any) return;
  any = false;
  for (int id = first_new; id < graph_.num_ids() && !any; ++id) {
    const Node* const made = graph_.node(id);
    if (made == nullptr) continue;
    any = std::any_of(made->inputs().begin(), made->inputs().end(),
                      [](const Endpoint& in) { return ReferenceRead(in) != nullptr; });
  }
  if (!any) return;
  const std::vector<Gradient> free = *dxs;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!reads[i] || !free[i].exists() || !Between(node.input(i).node)) continue;
    std::vector<Output> others;
    for (int k = 0; k < node.num_inputs(); ++k) {
      if (k != i && free[k].exists() && Between(node.input(k).node)) {
        others.push_back(free[k].values());
      }
    }
    if (others.empty()) continue;
    const ColocateWith beside(free[i].values());
    const ControlDependencies after(others);
    const std::string name = StrCat(node.name(), "_grad/held_back");
    const Output held_back = NodeBuilder("Identity", name).Input(free[i].values()).Output();
    (*dxs)[i] = free[i].WithValues(held_back);
  }
}

bool GradientFlow::PassRows(Node* node) {
  const FlowKind kind = node->flow();
  if (!node->is_identity() && kind != FlowKind::kSwitch && kind != FlowKind::kMerge) return false;
  std::vector<Gradient> dys;
  for (int i = 0; i < node->num_outputs(); ++i) dys.push_back(SumOfParts(Output(node, i)));
  const auto rows = std::find_if(dys.begin(), dys.end(), [](const auto& d) { return d.exists(); });
  if (rows == dys.end() ||
      std::any_of(rows, dys.end(), [](const auto& d) { return d.exists() && !d.is_sparse(); })) {
    return false;
  }
  const auto add = [&](int input, const Gradient& dx) {
    if (Between(node->input(input).node)) Add(node->input(input), dx);
  };
  if (kind == FlowKind::kSwitch && !Between(node->input(0).node)) return true;
  if (node->is_identity()) {
    add(0, dys[0]);
    return true;
  }
  const NameScope in(StrCat(node->name(), "_grad"));
  const ColocateWith beside(node);
  const IndexedSlices& some = rows->slices;
  if (kind == FlowKind::kMerge) {
    // To the input that came.
    const Output which = value_of_(Output(node, 1));
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Output came = NodeBuilder("Equal").Input(which).Input(i).Output();
      add(i, ForEachTensor(some, [&](const Output& x) {
            return Output(NodeBuilder("Switch").Input(x).Input(came).Finish(), 1);
          }));
    }
    return true;
  }
  std::vector<IndexedSlices> sides;
  for (int i = 0; i < node->num_outputs(); ++i) {
    sides.push_back(dys[i].exists() ? dys[i].slices
                                    : NoRows(value_of_(Output(node, i)), some.values.dtype(),
                                             some.indices.dtype()));
  }
  add(0, MergeRows(sides));
  return true;
}

Status GradientFlow::PassAll(const std::vector<Node*>& order, const std::vector<Node*>& nodes,
                             const std::string& within, const PassLoop& pass_loop) {
  struct Part {
    std::vector<Node*> nodes;  // one, or those of a loop
    std::string loop;
    int waits = 0;
  };
  const auto around = LoopsAround(graph_, order);
  // The loop right within `within` that the node is part of, or empty.
  const auto loop_of = [&](const Node& node) -> StatusOr<std::string> {
    std::string loop = LoopOf(graph_, node);
    if (loop == within) return std::string();
    int depth = 0;
    for (auto found = around.find(loop); found != around.end() && found->second != within;
         found = around.find(loop)) {
      if (++depth > kMaxLoopDepth) {
        return InvalidArgument("node '", node.name(), "' (", node.op(),
                               "): gradients need while loops within at most ", kMaxLoopDepth,
                               " others, and none within itself; found loop '", loop, "' within '",
                               found->second, "'");
      }
      loop = found->second;
    }
    return loop;
  };
  std::vector<Part> parts;
  flat_hash_map<std::string, int> loops;
  std::vector<int> part_of(graph_.num_ids(), -1);
  for (Node* node : nodes) {
    TENON_ASSIGN_OR_RETURN(const std::string loop, loop_of(*node));
    const int next = static_cast<int>(parts.size());
    const int part = loop.empty() ? next : loops.try_emplace(loop, next).first->second;
    if (part == next) parts.push_back({{}, loop});
    parts[part].nodes.push_back(node);
    part_of[node->id()] = part;
  }
  const auto for_each_source = [&](int part, const auto& visit) {
    for (const Node* node : parts[part].nodes) {
      for (const Endpoint& in : node->inputs()) {
        const int source = part_of[in.node->id()];
        if (source >= 0 && source != part) visit(source);
      }
    }
  };
  const int count = static_cast<int>(parts.size());
  for (int i = 0; i < count; ++i) for_each_source(i, [&](int source) { ++parts[source].waits; });
  std::priority_queue<int> ready;  // the last ones first
  for (int i = 0; i < count; ++i) {
    if (parts[i].waits == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    TENON_RETURN_IF_ERROR(parts[i].loop.empty() ? Pass(parts[i].nodes[0])
                                                : pass_loop(parts[i].loop, parts[i].nodes));
    for_each_source(i, [&](int source) {
      if (--parts[source].waits == 0) ready.push(source);
    });
  }
  return OkStatus();
}

}  // namespace tenon
