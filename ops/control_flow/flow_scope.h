// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <source_location>
#include <string>

#include "core/build/building.h"

// The name scopes of branches and loops, which are in the names of nodes and not in those of
// weights: TensorFlow's variable scopes know nothing of them. A layer that is first called in a
// branch has "dense/kernel", not "cond/dense/kernel". Entered and left as all of building.h.

namespace tenon {

/// A name scope, made unique, that Cond, Case or WhileLoop enters on its own account.
class [[nodiscard]] FlowScope {
 public:
  explicit FlowScope(const std::string& name);
  ~FlowScope();
  FlowScope(const FlowScope&) = delete;
  FlowScope& operator=(const FlowScope&) = delete;

 private:
  friend class OutsideFlowScopes;
  const Graph* const graph_;
  const std::string outer_;  // the prefix around it
  const NameScope scope_;
  const std::string inner_;  // the prefix in it
  const FlowScope* const around_;
};

/// While it lives, the scopes of branches and loops that were entered before count as any other:
/// for what chooses its names by itself.
class [[nodiscard]] FlowScopesForgotten {
 public:
  FlowScopesForgotten();
  ~FlowScopesForgotten();
  FlowScopesForgotten(const FlowScopesForgotten&) = delete;
  FlowScopesForgotten& operator=(const FlowScopesForgotten&) = delete;

 private:
  const FlowScope* const before_;
};

/// Names of new nodes begin with the scopes that were entered other than those of branches and
/// loops: where weights and the scopes of layers are (tf.variable_scope). The nodes stay in their
/// branch or loop; see NoControlDependencies.
class [[nodiscard]] OutsideFlowScopes : private EnteredContext {
 public:
  explicit OutsideFlowScopes(const std::source_location& at = std::source_location::current());

 private:
  static BuildContext Enter(const std::source_location& at);

  const FlowScopesForgotten forgotten_;
};

}  // namespace tenon
