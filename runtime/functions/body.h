// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/op/function.h"

namespace tenon {

/// The functions whose bodies a node comes from, the innermost first; null outside functions.
struct CallStack {
  std::string function;
  std::shared_ptr<const CallStack> caller;
  /// Whether TensorFlow runs the body by an executor of its own, so that nothing in it is lowered.
  bool apart;
};

/// Adds the nodes that take the place of one call.
class CallBuilder {
 public:
  /// What a function's body gives: values for its results, and nodes that must have run before the
  /// call is over.
  struct Body {
    std::vector<Endpoint> results;
    std::vector<Node*> effects;
  };
  /// A node of a body that may be a call itself.
  struct AddedNode {
    Node* node;
    std::shared_ptr<const CallStack> stack;
  };

  /// For `call`, a node of `graph`, which must be there until the last call here. Nodes that are
  /// added out of functions' bodies are appended to `added`.
  CallBuilder(Graph& graph, int64_t max_nodes, const Node& call,
              std::shared_ptr<const CallStack> stack, std::vector<AddedNode>& added);

  Graph& graph() { return graph_; }
  const Node& call() const { return call_; }
  /// What the nodes that are added ask for: at first what the call does.
  const std::string& device() const { return device_; }
  /// They are all on `device`, whatever bodies ask for.
  void PutOn(std::string device) {
    device_ = std::move(device);
    is_put_ = true;
  }
  /// Where a node is that asks for `wish` in a body.
  StatusOr<std::string> DeviceOf(std::string_view wish) const;
  /// What the call's inputs are; they wait for the control inputs of the call.
  StatusOr<std::vector<Endpoint>> Arguments();

  /// A node "<call>/<name>", made unique, that waits for `after`.
  StatusOr<Node*> Add(std::string_view name, std::string_view op, AttributeMap attrs,
                      const std::vector<Endpoint>& inputs, const std::vector<Node*>& after = {});
  /// The same of one that passes on `value`.
  StatusOr<Endpoint> AddIdentity(std::string_view name, Endpoint value,
                                 const std::vector<Node*>& after = {});

  /// Adds the body of `function`. Nodes without inputs wait for `start`, which may be null, so that
  /// they run where and when the others do; `part` tells apart the bodies of one call and may be
  /// empty.
  StatusOr<Body> AddBody(const FunctionName& function, const std::vector<Endpoint>& arguments,
                         Node* start, std::string_view part);
  /// A node that runs when the call does, or null when nothing holds it up.
  StatusOr<Node*> Start();

  /// Whether the call lies in a body that runs apart.
  bool apart() const { return stack_ != nullptr && stack_->apart; }

 private:
  Status CheckSize() const;
  bool RunsApart(const FunctionDefinition& function, const Body& body,
                 const std::vector<Node*>& nodes) const;

  Graph& graph_;
  const int64_t max_nodes_;
  const Node& call_;
  std::string device_;
  bool is_put_ = false;
  const std::shared_ptr<const CallStack> stack_;
  std::vector<AddedNode>& added_;
  Node* start_ = nullptr;
};

}  // namespace tenon
