// SPDX-License-Identifier: Apache-2.0
#include "core/scope.h"

#include "core/device_name.h"

namespace tenon {

struct Scope::Shared {
  std::unique_ptr<Graph> owned;
  Graph* graph = nullptr;
  Status status;
  std::optional<int64_t> seed;
  int64_t seedless_ops = 0;
};

struct Scope::Settings {
  std::string prefix;  // ends with '/' unless empty
  std::string name;    // of the next node; empty: the op's
  std::string device;
  DeviceFunction device_function;
  std::vector<Node*> control_inputs;
  std::vector<std::string> colocated_with;
};

Scope::Scope(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)), settings_(std::make_shared<Settings>()) {}

Scope Scope::Root(const OpRegistry& registry) {
  auto shared = std::make_shared<Shared>();
  shared->owned = std::make_unique<Graph>(registry);
  shared->graph = shared->owned.get();
  return Scope(std::move(shared));
}

Scope Scope::Into(Graph& graph) {
  auto shared = std::make_shared<Shared>();
  shared->graph = &graph;
  return Scope(std::move(shared));
}

Scope Scope::Changed() const {
  Scope copy = *this;
  copy.settings_ = std::make_shared<Settings>(*settings_);
  return copy;
}

Scope Scope::AtRoot() const { return Scope(shared_); }

Scope Scope::WithPrefix(std::string_view name) const {
  Scope scope = Changed();
  StrAppend(&scope.settings_->prefix, name, "/");
  scope.settings_->name.clear();
  return scope;
}

Scope Scope::WithName(std::string_view name) const {
  Scope scope = Changed();
  scope.settings_->name = name;
  return scope;
}

Scope Scope::WithDevice(std::string_view device) const {
  Scope scope = Changed();
  auto merged = MergeDeviceNames(settings_->device, device);
  if (!merged.ok()) {
    Fail(merged.status());
  } else {
    scope.settings_->device = *std::move(merged);
  }
  return scope;
}

Scope Scope::WithDeviceFunction(DeviceFunction function) const {
  Scope scope = Changed();
  scope.settings_->device_function = std::move(function);
  return scope;
}

Scope Scope::WithControlDependencies(const std::vector<Output>& nodes) const {
  Scope scope = Changed();
  for (const Output& n : nodes) {
    if (n) scope.settings_->control_inputs.push_back(n.node);
  }
  return scope;
}

Scope Scope::ColocatedWith(const Output& node) const {
  Scope scope = Changed();
  if (node) scope.settings_->colocated_with.push_back(StrCat("loc:@", node.node->name()));
  return scope;
}

Graph& Scope::graph() const { return *shared_->graph; }
const Status& Scope::status() const { return shared_->status; }

void Scope::Fail(const Status& error) const {
  if (shared_->status.ok()) shared_->status = error;
}

NodeBuilder Scope::Op(std::string_view op) const { return NodeBuilder(*this, op); }

std::pair<int64_t, int64_t> Scope::NextSeeds(int64_t op_seed) const {
  constexpr int64_t kDefaultGraphSeed = 87654321;
  if (!shared_->seed) {
    return op_seed == 0 ? std::pair<int64_t, int64_t>(0, 0)
                        : std::pair<int64_t, int64_t>(kDefaultGraphSeed, op_seed);
  }
  if (op_seed != 0) return {*shared_->seed, op_seed};
  return {*shared_->seed, shared_->seedless_ops++};
}

void Scope::SetSeed(int64_t seed) const { shared_->seed = seed; }

NodeBuilder& NodeBuilder::Input(const tenon::Output& value) {
  args_.push_back({value});
  return *this;
}

NodeBuilder& NodeBuilder::Input(const std::vector<tenon::Output>& values) {
  args_.push_back(values);
  return *this;
}

NodeBuilder& NodeBuilder::Attr(std::string_view name, Attribute value) {
  attrs_.Set(name, std::move(value));
  return *this;
}

Status NodeBuilder::InferAttrs(const OpSchema& schema) {
  if (args_.size() != schema.inputs.size()) {
    return InvalidArgument("op ", op_, " takes ", schema.inputs.size(), " arguments, found ",
                           args_.size());
  }
  for (size_t i = 0; i < args_.size(); ++i) {
    const ArgSchema& arg = schema.inputs[i];
    for (const tenon::Output& in : args_[i]) {
      if (!in) return InvalidArgument("argument '", arg.name, "' of op ", op_, " has no value");
    }
    if (!arg.number_attr.empty() && attrs_.Find(arg.number_attr) == nullptr) {
      attrs_.Set(arg.number_attr, static_cast<int64_t>(args_[i].size()));
    }
    if (!arg.type_attr.empty() && attrs_.Find(arg.type_attr) == nullptr && !args_[i].empty()) {
      attrs_.Set(arg.type_attr, args_[i][0].dtype());
    }
    if (!arg.type_list_attr.empty() && attrs_.Find(arg.type_list_attr) == nullptr) {
      DTypeVector types;
      for (const tenon::Output& in : args_[i]) types.push_back(in.dtype());
      attrs_.Set(arg.type_list_attr, std::move(types));
    }
  }
  return OkStatus();
}

Node* NodeBuilder::Finish() {
  if (!scope_.ok()) return nullptr;
  const Scope::Settings& settings = *scope_.settings_;
  Graph& graph = scope_.graph();
  const std::string name =
      graph.UniqueName(StrCat(settings.prefix, settings.name.empty() ? op_ : settings.name));
  StatusOr<Node*> node = nullptr;
  if (auto op = graph.registry().Lookup(op_); !op.ok()) {
    node = op.status();
  } else if (Status s = InferAttrs((*op)->schema); !s.ok()) {
    node = Annotate(s, StrCat("node '", name, "'"));
  } else {
    std::vector<Endpoint> inputs;
    for (const auto& arg : args_) inputs.insert(inputs.end(), arg.begin(), arg.end());
    if (!settings.colocated_with.empty()) attrs_.Set("_class", settings.colocated_with);
    node = graph.AddNode(name, op_, attrs_, inputs);
  }
  if (!node.ok()) {
    scope_.Fail(node.status());
    return nullptr;
  }
  for (Node* c : settings.control_inputs) graph.AddControlEdge(c, *node);
  std::string device = settings.device;
  if (settings.device_function) {
    auto merged = MergeDeviceNames(settings.device_function(**node), device);
    if (!merged.ok()) scope_.Fail(merged.status());
    if (merged.ok()) device = *std::move(merged);
  }
  (*node)->set_requested_device(std::move(device));
  return *node;
}

tenon::Output NodeBuilder::Output() { return tenon::Output(Finish(), 0); }

std::vector<tenon::Output> NodeBuilder::Outputs() {
  Node* node = Finish();
  std::vector<tenon::Output> outputs;
  if (node == nullptr) return outputs;
  for (int i = 0; i < node->num_outputs(); ++i) outputs.emplace_back(node, i);
  return outputs;
}

}  // namespace tenon
