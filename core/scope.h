// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph.h"

// Building a graph in C++.
//
//   OpRegistry ops;
//   RegisterAllOps(ops);
//   Scope root = Scope::Root(ops);
//   Output x = Placeholder(root, DType::kFloat, {-1, 784});
//   Output w = Const(root.WithName("w"), 0.5f);
//   Output y = Sigmoid(root, Mul(root, x, w));
//   TENON_RETURN_IF_ERROR(root.status());        // the first mistake made above, if any
//   ... root.graph() ...

namespace tenon {

/// A tensor in a graph under construction: an output of a node. Small; copy it freely. Valid while
/// the graph lives. Without a node when building it failed.
struct Output {
  Node* node = nullptr;
  int index = 0;

  Output() = default;
  Output(Node* n, int i = 0) : node(n), index(i) {}  // NOLINT: a node stands for its output 0
  Output(Endpoint e) : node(e.node), index(e.index) {}  // NOLINT
  operator Endpoint() const { return {node, index}; }   // NOLINT

  explicit operator bool() const { return node != nullptr; }
  DType dtype() const { return BaseType(node->output_type(index)); }
  const PartialShape& shape() const { return node->output_shape(index); }
  /// "name" or "name:index", as feeds and fetches name it.
  std::string name() const { return ToString(Endpoint(*this)); }
  friend bool operator==(const Output& a, const Output& b) = default;
};

class NodeBuilder;

/// Where new nodes go: a graph, a name prefix, a device, and control dependencies. An immutable
/// value; the With... functions return a changed copy for the same graph. The first error is kept
/// and shared by all copies, and everything built after it does nothing. Not thread-safe.
class Scope {
 public:
  /// An empty graph of its own, which lives as long as any copy of the scope.
  static Scope Root(const OpRegistry& registry);
  /// For adding to a graph of the caller's.
  static Scope Into(Graph& graph);

  /// The same graph and errors, with no prefix, name, device or dependencies.
  Scope AtRoot() const;
  /// Names of new nodes begin with "<this prefix>/<name>/".
  Scope WithPrefix(std::string_view name) const;
  /// The name that the next node gets (made unique).
  Scope WithName(std::string_view name) const;
  /// The requested device of new nodes, merged over the present one: "/job:ps" and then "/task:1"
  /// is "/job:ps/task:1".
  Scope WithDevice(std::string_view device) const;
  /// Chooses a device for each node from its op and the scope's device; see ReplicaDeviceSetter.
  using DeviceFunction = std::function<std::string(const Node& node)>;
  Scope WithDeviceFunction(DeviceFunction function) const;
  /// New nodes wait for `nodes`.
  Scope WithControlDependencies(const std::vector<Output>& nodes) const;
  /// New nodes are placed where `node` is.
  Scope ColocatedWith(const Output& node) const;

  Graph& graph() const;
  const OpRegistry& registry() const { return graph().registry(); }
  const Status& status() const;
  bool ok() const { return status().ok(); }
  /// Records an error, unless there was one before.
  void Fail(const Status& error) const;

  /// Starts a node of kind `op`.
  NodeBuilder Op(std::string_view op) const;

  /// Seeds for the next random op, from the graph's seed and the op's, as TensorFlow 2.15's
  /// get_seed picks them (0, 0 means nondeterministic).
  std::pair<int64_t, int64_t> NextSeeds(int64_t op_seed) const;
  /// Makes every random op built from now on reproducible.
  void SetSeed(int64_t seed) const;

 private:
  friend class NodeBuilder;
  struct Shared;
  struct Settings;
  explicit Scope(std::shared_ptr<Shared> shared);
  Scope Changed() const;

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Settings> settings_;
};

/// Collects the parts of one node. Finishing it adds the node to the scope's graph, fills in the
/// type and length attributes that follow from the inputs, and infers shapes; a mistake goes to
/// the scope's status.
class NodeBuilder {
 public:
  /// The next input argument: one tensor.
  NodeBuilder& Input(const Output& value);
  /// The next input argument: a list of tensors.
  NodeBuilder& Input(const std::vector<Output>& values);
  NodeBuilder& Attr(std::string_view name, Attribute value);

  /// The node, or null after an error.
  Node* Finish();
  /// Its first output, for ops with one.
  tenon::Output Output();
  /// All outputs; empty after an error.
  std::vector<tenon::Output> Outputs();

 private:
  friend class Scope;
  NodeBuilder(const Scope& scope, std::string_view op) : scope_(scope), op_(op) {}
  Status InferAttrs(const OpSchema& schema);

  Scope scope_;
  std::string op_;
  std::vector<std::vector<tenon::Output>> args_;
  AttributeMap attrs_;
};

}  // namespace tenon
