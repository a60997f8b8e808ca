// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/functions/body.h"

// Functional control flow as the executor runs it: Switch, Merge and frames. Each gives what takes
// the place of the node's outputs, and what must have run before the node is over.

namespace tenon {

/// If, StatelessIf: the body of then_branch where the condition holds, else that of else_branch.
StatusOr<CallBuilder::Body> LowerIf(CallBuilder& builder);
/// Case, StatelessCase: the body of the branch with the number of the first input; the last one for
/// any other number.
StatusOr<CallBuilder::Body> LowerCase(CallBuilder& builder);
/// While, StatelessWhile.
StatusOr<CallBuilder::Body> LowerWhile(CallBuilder& builder);
/// For: the loop variables go through the body once for each number from the first input on, before
/// the second one, in steps of the third one.
StatusOr<CallBuilder::Body> LowerFor(CallBuilder& builder);

}  // namespace tenon
