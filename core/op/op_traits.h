// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace tenon {

/// A flag of a declaration that passes, or others who read graphs, ask for: `schema.Has(trait)`. A
/// new one is a line here and one in kTraits.
enum class OpTrait : uint8_t {
  /// An op that takes a variable and does not change it.
  kReadsVariable,
  /// An op that gives a variable, its first input, the value of its second one.
  kAssigns,
  /// Output i is input i.
  kIdentities,
  /// The op that decides whether a while loop goes on.
  kLoopCondition,
  /// An op that gives what a tensor's shape says, and none of its elements.
  kShape,
  /// An op that makes or writes a summary.
  kSummary,
  /// Output 0 has the memory of input 0, a variable's too.
  kHandsOn,
  /// Outputs may have the memory of an input, in Tenon or in TensorFlow.
  kMayShare,
  /// An op that takes what was put into a stack last.
  kPops,
  /// A stateful op that waits for nothing that a step does.
  kNeverWaits,
  /// An op that copies from the host's memory to a device's.
  kCopiesToDevice,
  /// An op that ends when all ranks of the job have run theirs.
  kCollective,
};

/// The traits by the names that declarations have for them.
inline constexpr std::pair<std::string_view, OpTrait> kTraits[] = {
    {"reads_variable", OpTrait::kReadsVariable},
    {"assigns", OpTrait::kAssigns},
    {"identities", OpTrait::kIdentities},
    {"loop_condition", OpTrait::kLoopCondition},
    {"shape", OpTrait::kShape},
    {"summary", OpTrait::kSummary},
    {"hands_on", OpTrait::kHandsOn},
    {"may_share", OpTrait::kMayShare},
    {"pops", OpTrait::kPops},
    {"never_waits", OpTrait::kNeverWaits},
    {"copies_to_device", OpTrait::kCopiesToDevice},
    {"collective", OpTrait::kCollective},
};

}  // namespace tenon
