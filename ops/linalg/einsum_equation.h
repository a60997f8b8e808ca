// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// A label for each dimension of a tensor: a letter's code, or below 0 for what an ellipsis stands
/// for, counted from its end.
using EinsumLabels = std::vector<int>;
inline bool IsEllipsisLabel(int label) { return label < 0; }

/// An equation such as "...ij,jk->...ik".
struct EinsumEquation {
  /// InvalidArgument for a text that is none, or is not of so many inputs.
  static StatusOr<EinsumEquation> Parse(std::string_view text, int num_inputs);

  /// The labels of input `i`, which has `rank` dimensions; InvalidArgument for a wrong rank.
  StatusOr<EinsumLabels> LabelsOfInput(int i, size_t rank);
  /// The labels of the result, once all inputs' have been asked for.
  StatusOr<EinsumLabels> LabelsOfOutput() const;

  std::vector<std::string> inputs;
  std::string output;
  int ellipsis_rank = 0;  // how many dimensions an ellipsis stands for, at most
};

}  // namespace tenon
