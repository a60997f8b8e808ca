// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/scope.h"

// Graph-building functions for ops that check values and say what they are.

namespace tenon {

/// Fails the step with "assertion failed: [...]", showing `summarize` elements of each of `data`,
/// unless the bool scalar `condition` is true.
Node* Assert(const Scope& s, Output condition, const std::vector<Output>& data,
             int64_t summarize = 3);
/// `input`, after writing `message` and `data` to standard error, the first `first_n` times (always
/// when negative).
Output Print(const Scope& s, Output input, const std::vector<Output>& data,
             std::string_view message = "", int64_t first_n = -1, int64_t summarize = 3);
/// Writes the string scalar `input` to "stderr" or "stdout".
Node* PrintV2(const Scope& s, Output input, std::string_view output_stream = "stderr",
              std::string_view end = "\n");

}  // namespace tenon
