// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

#include "core/op/op_schema.h"

// The flags of a declaration by name; op_declaration.h says what each means.

namespace tenon {

using NamedFlag = std::pair<std::string_view, bool OpSchema::*>;
inline constexpr NamedFlag kFlags[] = {
    {"stateful", &OpSchema::is_stateful},
    {"commutative", &OpSchema::is_commutative},
    {"aggregate", &OpSchema::is_aggregate},
    {"allows_uninitialized_input", &OpSchema::allows_uninitialized_input},
    {"reads_outside", &OpSchema::reads_outside},
    {"no_gradient", &OpSchema::is_differentiable},
    {"int32_on_host", &OpSchema::int32_on_host},
    {"no_function", &OpSchema::has_function},
    {"basic", &OpSchema::is_basic},
    {"arg", &OpSchema::is_arg},
    {"retval", &OpSchema::is_retval},
    {"constant", &OpSchema::is_constant},
    {"placeholder", &OpSchema::is_placeholder},
    {"variable", &OpSchema::is_variable},
    {"identity", &OpSchema::is_identity},
};
inline constexpr std::pair<std::string_view, FlowKind> kFlowKinds[] = {
    {"switch", FlowKind::kSwitch},
    {"merge", FlowKind::kMerge},
    {"enter", FlowKind::kEnter},
    {"exit", FlowKind::kExit},
    {"next_iteration", FlowKind::kNextIteration},
    {"control_trigger", FlowKind::kControlTrigger},
    {"transfer", FlowKind::kTransfer},
};
inline constexpr std::pair<std::string_view, CallKind> kCallKinds[] = {
    {"function", CallKind::kFunction}, {"gradient", CallKind::kGradient},
    {"remote", CallKind::kRemote},     {"if", CallKind::kIf},
    {"case", CallKind::kCase},         {"while", CallKind::kWhile},
    {"for", CallKind::kFor},
};
inline constexpr std::pair<std::string_view, NeutralOne> kNeutralOnes[] = {
    {"second", NeutralOne::kSecond}, {"either", NeutralOne::kEither}};

}  // namespace tenon
