// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/op/op_schema.h"

namespace tenon {

/// The C++ of the functions that build nodes of documented ops.
struct FunctionCode {
  std::string
      declarations;  // for a header: options, results and functions with their documentation
  std::string definitions;
};
/// The code of the functions of those ops that are basic, or of the others.
FunctionCode FunctionsOf(const std::vector<OpSchema>& ops, bool basic);

}  // namespace tenon
