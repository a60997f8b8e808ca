// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/status.h"
#include "core/op/op_registry.h"

// Functions: graphs with a name, arguments and results, which nodes of other graphs call
// (TensorFlow's FunctionDef). They come with a GraphDef; see proto_io_function.h.

namespace tenon {

/// A node of a function's body.
struct FunctionNode {
  std::string name;
  std::string op;
  std::string device;
  /// "argument", "argument:2" (of a list), "node:output:2", or "^node" for a control input.
  std::vector<std::string> inputs;
  AttributeMap attrs;
  /// Attributes that are the function's own: the node's name for it, and the function's.
  std::vector<std::pair<std::string, std::string>> parameters;
};

/// A function. Immutable.
struct FunctionDefinition {
  /// Its name, arguments, results and attributes, as those of an op: a node may name it as its op.
  OpRegistration signature;
  std::vector<FunctionNode> nodes;
  /// What gives each result of the signature, written as inputs are.
  StringMap<std::string> results;
  /// Nodes that run even if no result needs them.
  std::vector<std::string> control_results;
  /// Whether it asks not to be inlined (_noinline).
  bool stays_apart = false;
  /// The function that computes its gradient; empty: it is derived from the body.
  std::string gradient;
  /// The FunctionDef as it came.
  std::string proto;

  const std::string& name() const { return signature.schema.name; }
};

/// The functions that the nodes of a graph may call. Copies share the functions.
class FunctionLibrary {
 public:
  /// The function, or null.
  const FunctionDefinition* Find(std::string_view name) const;
  /// A function that is there already may be added again; InvalidArgument when it is another one of
  /// that name.
  Status Add(std::shared_ptr<const FunctionDefinition> function);
  /// A library of the functions `names`, as far as they are there, and of the functions that
  /// compute their gradients.
  FunctionLibrary Subset(const StringSet& names) const;
  bool empty() const { return functions_.empty(); }
  /// Every function, sorted by name.
  std::vector<const FunctionDefinition*> All() const;

 private:
  StringMap<std::shared_ptr<const FunctionDefinition>> functions_;
};

}  // namespace tenon
