// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/op/kernel.h"

namespace tenon {

/// One kernel of a group. Values of the group are numbered: first what comes in, then constants,
/// variables, and what members give.
struct CaptureMember {
  struct Input {
    int value = 0;
    bool last = false;       // no later member reads it
    bool reads_ref = false;  // a reference that the op takes as a value
    std::string name;        // of the tensor, for messages
  };
  std::shared_ptr<const Kernel> kernel;
  DTypeVector output_types;
  std::vector<Input> inputs;
  int first_output = 0;
};

/// What a CaptureKernel runs: laid out once, immutable.
struct CapturePlan {
  /// A variable that members use: a reference, which `kernel` gives, or the value is a resource
  /// handle among the constants.
  struct Variable {
    int value = 0;
    std::shared_ptr<const Kernel> kernel;  // null for a handle
    bool changes = false;                  // some member changes it
  };
  /// A tensor that its kernel always gives, which keeps it.
  struct Constant {
    int value = 0;
    std::shared_ptr<const Kernel> kernel;
  };

  int num_inputs = 0;
  int num_values = 0;
  std::vector<Constant> constants;
  std::vector<Variable> variables;
  std::vector<CaptureMember> members;  // each behind those whose values it takes
  std::vector<int> outputs;            // values that others take
  std::vector<bool> is_output;         // by value
};

}  // namespace tenon
