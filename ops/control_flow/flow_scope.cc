// SPDX-License-Identifier: Apache-2.0
#include "ops/control_flow/flow_scope.h"

namespace tenon {
namespace {

thread_local const FlowScope* innermost_flow_scope = nullptr;

}  // namespace

FlowScope::FlowScope(const std::string& name)
    : graph_(CurrentBuilding().graph),
      outer_(CurrentBuilding().prefix),
      scope_(UnusedScope(name)),
      inner_(CurrentBuilding().prefix),
      around_(innermost_flow_scope) {
  innermost_flow_scope = this;
}

FlowScope::~FlowScope() { innermost_flow_scope = around_; }

FlowScopesForgotten::FlowScopesForgotten() : before_(innermost_flow_scope) {
  innermost_flow_scope = nullptr;
}

FlowScopesForgotten::~FlowScopesForgotten() { innermost_flow_scope = before_; }

OutsideFlowScopes::OutsideFlowScopes(const std::source_location& at) : EnteredContext(Enter(at)) {}

BuildContext OutsideFlowScopes::Enter(const std::source_location& at) {
  BuildContext context = CurrentBuilding(at);
  // At the root, and in another graph, they are not part of the prefix.
  for (const FlowScope* s = innermost_flow_scope; s != nullptr; s = s->around_) {
    if (s->graph_ != context.graph || !context.prefix.starts_with(s->inner_)) continue;
    context.prefix = s->outer_ + context.prefix.substr(s->inner_.size());
  }
  return context;
}

}  // namespace tenon
