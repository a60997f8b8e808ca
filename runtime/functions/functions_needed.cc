// SPDX-License-Identifier: Apache-2.0
#include "runtime/functions/functions_needed.h"

namespace tenon {
namespace {

/// Collects what functions are named, and follows them: chains of functions may be long.
class Collector {
 public:
  explicit Collector(const FunctionLibrary& library) : library_(library) {}

  void AddOp(const std::string& op, const AttributeMap& attrs) {
    AddNode(op, attrs);
    while (!pending_.empty()) {
      const FunctionDefinition& function = *pending_.back();
      pending_.pop_back();
      for (const FunctionNode& node : function.nodes) AddNode(node.op, node.attrs);
      if (!function.gradient.empty()) Add(function.gradient);
    }
  }
  const StringSet& names() const { return names_; }

 private:
  void AddNode(const std::string& op, const AttributeMap& attrs) {
    Add(op);
    for (const auto& [name, value] : attrs) AddAttribute(value);
  }
  void AddAttribute(const Attribute& value) {
    if (const auto* one = value.get_if<FunctionName>()) AddName(*one);
    if (const auto* several = value.get_if<std::vector<FunctionName>>()) {
      for (const FunctionName& f : *several) AddName(f);
    }
  }
  void AddName(const FunctionName& function) {
    Add(function.name);
    for (const auto& [name, value] : function.attrs) AddAttribute(value);
  }
  void Add(const std::string& name) {
    const FunctionDefinition* const found = library_.Find(name);
    if (found != nullptr && names_.insert(name).second) pending_.push_back(found);
  }

  const FunctionLibrary& library_;
  StringSet names_;
  std::vector<const FunctionDefinition*> pending_;  // of those named, what is still to be followed
};

}  // namespace

std::shared_ptr<const FunctionLibrary> FunctionsNeeded(const Graph& graph) {
  if (graph.functions().empty()) return graph.shared_functions();
  Collector collector(graph.functions());
  for (const Node* node : graph.nodes()) collector.AddOp(node->op(), node->attrs());
  return std::make_shared<FunctionLibrary>(graph.functions().Subset(collector.names()));
}

}  // namespace tenon
