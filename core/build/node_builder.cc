// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/build/building.h"
#include "core/build/loop_frame.h"
#include "core/device/device_name.h"

namespace tenon {
namespace {

bool Allows(const AttrSchema* attr, DType type) {
  return attr == nullptr || attr->allowed_types.empty() ||
         std::count(attr->allowed_types.begin(), attr->allowed_types.end(), type) > 0;
}

/// Whether it brings the same value into every iteration of a loop, the one after the last too.
bool IsLoopConstant(const Node& node) { return node.flow() == FlowKind::kConstantEnter; }

}  // namespace

Status NodeBuilder::CheckArguments(const OpSchema& schema) const {
  if (args_.size() != schema.inputs.size()) {
    return InvalidArgument("op ", op_, " takes ", schema.inputs.size(), " arguments, found ",
                           args_.size());
  }
  for (size_t i = 0; i < args_.size(); ++i) {
    const ArgSchema& arg = schema.inputs[i];
    for (const tenon::Input& in : args_[i]) {
      if (in.output() == nullptr) continue;
      const std::string what = StrCat("argument '", arg.name, "' of op ", op_);
      TENON_RETURN_IF_ERROR(CurrentBuilding(at_).CheckValue(*in.output(), what));
    }
  }
  for (const auto& [name, value] : attrs_) {
    if (!name.starts_with('_') && schema.FindAttr(name) == nullptr) {
      std::vector<std::string> names;
      for (const AttrSchema& attr : schema.attrs) names.push_back(attr.name);
      return InvalidArgument("op ", op_, " has no attribute '", name,
                             "'; it has: ", names.empty() ? "none" : Join(names, ", "));
    }
  }
  return OkStatus();
}

Status NodeBuilder::CheckLengths(const OpSchema& schema) const {
  for (size_t i = 0; i < args_.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const int64_t wanted, ArgLength(schema.inputs[i], attrs_));
    if (wanted == static_cast<int64_t>(args_[i].size())) continue;
    return InvalidArgument("argument '", schema.inputs[i].name, "' of op ", op_, " takes ", wanted,
                           " tensors, found ", args_[i].size());
  }
  return OkStatus();
}

Status NodeBuilder::InferFromOutputs(const ArgSchema& arg, const Argument& values) {
  if (!arg.number_attr.empty() && attrs_.Find(arg.number_attr) == nullptr) {
    attrs_.Set(arg.number_attr, static_cast<int64_t>(values.size()));
  }
  if (arg.type_attr.empty() || attrs_.Find(arg.type_attr) != nullptr) return OkStatus();
  for (const tenon::Input& in : values) {
    if (in.literal() != nullptr) continue;
    attrs_.Set(arg.type_attr, in.output() != nullptr ? in.output()->dtype() : in.tensor()->dtype());
    break;
  }
  return OkStatus();
}

Status NodeBuilder::InferFromLiterals(const OpSchema& schema, const ArgSchema& arg,
                                      const Argument& values) {
  if (!arg.type_list_attr.empty() && attrs_.Find(arg.type_list_attr) == nullptr) {
    DTypeVector types;
    for (const tenon::Input& in : values) {
      types.push_back(in.literal() != nullptr  ? in.literal()->NaturalType()
                      : in.output() != nullptr ? in.output()->dtype()
                                               : in.tensor()->dtype());
    }
    attrs_.Set(arg.type_list_attr, std::move(types));
  }
  if (arg.type_attr.empty() || attrs_.Find(arg.type_attr) != nullptr || values.empty()) {
    return OkStatus();
  }
  // Every argument of this dtype is a literal: the first of these that the op takes, and that holds
  // them all.
  const AttrSchema* attr = schema.FindAttr(arg.type_attr);
  DTypeVector choices;
  for (size_t i = 0; i < args_.size(); ++i) {
    if (schema.inputs[i].type_attr != arg.type_attr) continue;
    for (const tenon::Input& in : args_[i]) {
      if (in.literal() != nullptr) choices.push_back(in.literal()->NaturalType());
    }
  }
  for (const DType wider : {DType::kInt64, DType::kFloat, DType::kDouble}) choices.push_back(wider);
  for (const DType type : choices) {
    const auto holds = [&](const tenon::Input& in) {
      return in.literal() == nullptr || in.literal()->ToTensor(type).ok();
    };
    bool all = Allows(attr, type);
    for (size_t i = 0; i < args_.size() && all; ++i) {
      all = schema.inputs[i].type_attr != arg.type_attr ||
            std::all_of(args_[i].begin(), args_[i].end(), holds);
    }
    if (!all) continue;
    attrs_.Set(arg.type_attr, type);
    return OkStatus();
  }
  return InvalidArgument("argument '", arg.name, "' of op ", op_,
                         " cannot be this literal: no dtype that the op takes holds it");
}

Status NodeBuilder::InferAttrs(const OpSchema& schema) {
  for (size_t i = 0; i < args_.size(); ++i) {
    TENON_RETURN_IF_ERROR(InferFromOutputs(schema.inputs[i], args_[i]));
  }
  for (size_t i = 0; i < args_.size(); ++i) {
    TENON_RETURN_IF_ERROR(InferFromLiterals(schema, schema.inputs[i], args_[i]));
  }
  return OkStatus();
}

/// A node of the while loop that an argument is in; null outside loops, and where what was entered
/// makes every new node wait for one anyway.
Node* NodeBuilder::InLoop() const {
  const BuildContext& context = CurrentBuilding(at_);
  if (!context.graph->has_loops() || !context.control_inputs.empty() || context.flow != nullptr) {
    return nullptr;
  }
  for (const Argument& argument : args_) {
    for (const tenon::Input& in : argument) {
      if (in.output() != nullptr && !LoopFrameOf(*context.graph, *in.output()->node).empty()) {
        return in.output()->node;
      }
    }
  }
  return nullptr;
}

/// In a loop a constant waits for a node of it: else it would be outside.
StatusOr<tenon::Output> NodeBuilder::Constant(Tensor value) const {
  const DType dtype = value.dtype();
  NodeBuilder node("Const", "", at_);
  node.Attr("value", std::move(value)).Attr("dtype", dtype);
  TENON_ASSIGN_OR_RETURN(Node* const constant, node.Build());
  if (Node* const in_loop = InLoop()) {
    CurrentBuilding(at_).graph->AddControlEdge(in_loop, constant);
  }
  return tenon::Output(constant);
}

Status NodeBuilder::CheckLoop(const std::vector<Endpoint>& inputs) const {
  const BuildContext& context = CurrentBuilding(at_);
  if (!context.graph->has_loops()) return OkStatus();
  // In a branch or body those have been brought in, and are among `inputs`.
  std::vector<Node*> sources;
  if (context.flow == nullptr) sources = context.control_inputs;
  for (const Endpoint& in : inputs) sources.push_back(in.node);
  if (sources.empty()) return OkStatus();
  const auto place = [](const std::string& frame) {
    return frame.empty() ? "outside while loops" : StrCat("in the while loop '", frame, "'");
  };
  const std::string first = LoopFrameOf(*context.graph, *sources[0]);
  for (const Node* source : sources) {
    const std::string& frame = LoopFrameOf(*context.graph, *source);
    if (frame == first) continue;
    return InvalidArgument("its input '", sources[0]->name(), "' is ", place(first), ", '",
                           source->name(), "' ", place(frame), ": what a loop computes comes out ",
                           "as its results (through Exit), what it uses goes in through Enter, ",
                           "and a constant for a loop waits for a node of it");
  }
  return OkStatus();
}

StatusOr<tenon::Output> NodeBuilder::AllAxes(const tenon::Output& of) const {
  if (of.shape().rank_known()) {
    std::vector<int32_t> axes(of.shape().rank());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int32_t>(i);
    return Constant(Tensor::Vector(axes));
  }
  NodeBuilder rank("Rank", "", at_);
  TENON_ASSIGN_OR_RETURN(Node* const dims, rank.Input(of).Build());
  NodeBuilder range("Range", "", at_);
  TENON_ASSIGN_OR_RETURN(Node* const axes, range.Input(0).Input(dims).Input(1).Build());
  return tenon::Output(axes);
}

StatusOr<std::vector<Endpoint>> NodeBuilder::Endpoints(const OpSchema& schema) {
  std::vector<Endpoint> endpoints;
  for (size_t i = 0; i < args_.size(); ++i) {
    const ArgSchema& arg = schema.inputs[i];
    size_t position = 0;
    for (const tenon::Input& in : args_[i]) {
      const size_t at = position++;
      if (in.output() != nullptr) {
        endpoints.push_back(*in.output());
        continue;
      }
      if (in.left_out() && arg.all_axes) {
        TENON_ASSIGN_OR_RETURN(const tenon::Output axes, AllAxes(endpoints[0]));
        endpoints.push_back(axes);
        continue;
      }
      StatusOr<Tensor> value = Tensor();
      if (in.tensor() != nullptr) {
        value = *in.tensor();
      } else {
        DType type = arg.type;
        if (!arg.type_attr.empty()) type = attrs_.GetOr(arg.type_attr, DType::kInvalid);
        if (!arg.type_list_attr.empty()) {
          type = attrs_.GetOr(arg.type_list_attr, DTypeVector())[at];
        }
        value = in.literal()->ToTensor(type);
      }
      if (!value.ok()) return Annotate(value.status(), StrCat("argument '", arg.name, "'"));
      TENON_ASSIGN_OR_RETURN(const tenon::Output constant, Constant(*std::move(value)));
      endpoints.push_back(constant);
    }
  }
  return endpoints;
}

Status NodeBuilder::CheckTensors() const {
  for (const auto& arguments : args_) {
    for (const tenon::Input& in : arguments) {
      if (in.tensor() != nullptr && !in.tensor()->valid()) return in.tensor()->mistake();
    }
  }
  return OkStatus();
}

StatusOr<Node*> NodeBuilder::Build() {
  const BuildContext& context = CurrentBuilding(at_);
  Graph& graph = *context.graph;
  const std::string wanted = StrCat(context.prefix, name_.empty() ? op_ : name_);
  if (!name_.empty() && !IsLegalNodeName(wanted)) return IllegalNodeName(name_, "node");
  TENON_ASSIGN_OR_RETURN(const OpRegistration* const op, graph.registry().Lookup(op_));
  std::vector<Node*> controls = context.control_inputs;
  const auto arguments = [&]() -> StatusOr<std::vector<Endpoint>> {
    TENON_RETURN_IF_ERROR(CheckArguments(op->schema));
    TENON_RETURN_IF_ERROR(CheckTensors());
    TENON_RETURN_IF_ERROR(InferAttrs(op->schema));
    TENON_RETURN_IF_ERROR(CheckLengths(op->schema));
    TENON_ASSIGN_OR_RETURN(std::vector<Endpoint> endpoints, Endpoints(op->schema));
    if (context.flow != nullptr) {
      for (Endpoint& e : endpoints) e = context.flow->Bring(e);
      for (Node*& c : controls) c = context.flow->Bring({c, 0}).node;
      TENON_RETURN_IF_ERROR(graph.error());
    }
    std::vector<Endpoint> sources = endpoints;
    if (context.flow != nullptr) {
      for (Node* c : controls) sources.push_back({c, 0});
    }
    TENON_RETURN_IF_ERROR(CheckLoop(sources));
    return endpoints;
  };
  const StatusOr<std::vector<Endpoint>> inputs = arguments();
  if (!inputs.ok()) return Annotate(inputs.status(), StrCat("node '", wanted, "' (", op_, ")"));
  if (!context.colocated_with.empty()) attrs_.Set("_class", context.colocated_with);
  TENON_ASSIGN_OR_RETURN(Node* const node,
                         graph.AddNode(graph.UniqueName(wanted), op_, attrs_, *inputs));
  node->set_place(context.caller.value_or(at_));
  for (Node* c : controls) graph.AddControlEdge(c, node);
  if (context.flow != nullptr) {
    context.flow->Add(node);
    // What only waits for constants of a loop would run once more, when the loop has ended, and
    // what only waits for a Switch to run would run in either branch.
    const bool is_free = std::all_of(inputs->begin(), inputs->end(),
                                     [](const Endpoint& in) { return IsLoopConstant(*in.node); }) &&
                         std::all_of(controls.begin(), controls.end(), [](const Node* c) {
                           return IsLoopConstant(*c) || c->flow() == FlowKind::kSwitch;
                         });
    if (is_free) graph.AddControlEdge(context.flow->pivot(), node);
  }
  std::string device = context.device;
  if (context.device_function) {
    TENON_ASSIGN_OR_RETURN(device, MergeDeviceNames(context.device_function(*node), device));
  }
  node->set_requested_device(std::move(device));
  return node;
}

Node* NodeBuilder::Finish() {
  const BuildContext& context = CurrentBuilding(at_);
  if (!context.graph->error().ok()) return FailedNode();
  StatusOr<Node*> node = Build();
  if (node.ok()) return *node;
  context.Fail(node.status(), at_);
  return FailedNode();
}

int64_t NodeBuilder::LengthAfterMistake(size_t argument) {
  const OpRegistration* const op = CurrentBuilding(at_).graph->registry().Find(op_);
  if (op == nullptr || argument >= op->schema.outputs.size()) return 0;
  // Whatever could be inferred: the length may not depend on the rest.
  if (args_.size() == op->schema.inputs.size()) InferAttrs(op->schema).IgnoreError();
  const int64_t length = ArgLength(op->schema.outputs[argument], attrs_).value_or(0);
  return std::clamp<int64_t>(length, 0, 1 << 16);
}

std::vector<tenon::Output> NodeBuilder::Outputs() {
  std::vector<tenon::Output> outputs;
  const OpRegistration* const op = CurrentBuilding(at_).graph->registry().Find(op_);
  const size_t arguments = op == nullptr ? 0 : op->schema.outputs.size();
  for (auto& list : OutputLists(arguments)) outputs.insert(outputs.end(), list.begin(), list.end());
  return outputs;
}

std::vector<std::vector<tenon::Output>> NodeBuilder::OutputLists(size_t arguments) {
  Node* const node = Finish();
  std::vector<std::vector<tenon::Output>> lists(arguments);
  if (node == FailedNode()) {
    for (size_t i = 0; i < arguments; ++i) lists[i].resize(LengthAfterMistake(i));
    return lists;
  }
  const std::vector<ArgSchema>& declared = node->schema().outputs;
  int next = 0;
  for (size_t i = 0; i < std::min(arguments, declared.size()); ++i) {
    const int64_t length = ArgLength(declared[i], node->attrs()).value_or(0);
    for (int64_t k = 0; k < length; ++k) lists[i].emplace_back(node, next++);
  }
  return lists;
}

}  // namespace tenon
