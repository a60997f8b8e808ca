// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/einsum_equation.h"

#include <algorithm>

#include "core/base/strings.h"

namespace tenon {
namespace {

constexpr std::string_view kAnyAxes = "...";

/// The labels of `text`, in which an ellipsis stands for `ellipsis_rank` dimensions.
EinsumLabels LabelsOf(std::string_view text, int ellipsis_rank) {
  EinsumLabels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '.') {
      labels.push_back(text[i]);
      continue;
    }
    for (int k = ellipsis_rank; k > 0; --k) labels.push_back(-k);
    i += kAnyAxes.size() - 1;
  }
  return labels;
}

Status CheckSubscripts(std::string_view text) {
  const size_t dots = text.find('.');
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z')) continue;
    if (i == dots && text.substr(i, kAnyAxes.size()) == kAnyAxes) {
      i += kAnyAxes.size() - 1;
      continue;
    }
    return InvalidArgument("Invalid character at position ", i, " of the subscripts '", text,
                           "': wanted letters and at most one ellipsis");
  }
  return OkStatus();
}

}  // namespace

StatusOr<EinsumEquation> EinsumEquation::Parse(std::string_view text, int num_inputs) {
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos || text.find("->", arrow + 2) != std::string_view::npos) {
    return InvalidArgument("Expecting exactly one '->' in einsum equation: ", text);
  }
  EinsumEquation equation;
  equation.output = text.substr(arrow + 2);
  std::string_view left = text.substr(0, arrow);
  for (size_t comma = 0; comma != std::string_view::npos;) {
    comma = left.find(',');
    equation.inputs.emplace_back(left.substr(0, comma));
    if (comma != std::string_view::npos) left.remove_prefix(comma + 1);
  }
  const size_t count = equation.inputs.size();
  if (count > 2 || count != static_cast<size_t>(num_inputs)) {
    return InvalidArgument("Expected 1 or 2 inputs in einsum equation ", text,
                           ", as many as there are: ", num_inputs);
  }
  std::string all;
  for (const std::string& input : equation.inputs) {
    TENON_RETURN_IF_ERROR(CheckSubscripts(input));
    all += input;
  }
  TENON_RETURN_IF_ERROR(CheckSubscripts(equation.output));
  for (const char label : equation.output) {
    if (label == '.' || all.find(label) != std::string::npos) continue;
    return InvalidArgument("the result of ", text,
                           " has a label that no input has: ", std::string(1, label));
  }
  return equation;
}

StatusOr<EinsumLabels> EinsumEquation::LabelsOfInput(int i, size_t rank) {
  const std::string& text = inputs[i];
  const bool has_ellipsis = text.find('.') != std::string::npos;
  const size_t letters = text.size() - (has_ellipsis ? kAnyAxes.size() : 0);
  if (rank < letters || (rank > letters && !has_ellipsis)) {
    return InvalidArgument("Expected input ", i, " to have rank ", has_ellipsis ? "at least " : "",
                           letters, " but got: ", rank);
  }
  const int rest = static_cast<int>(rank - letters);
  ellipsis_rank = std::max(ellipsis_rank, rest);
  return LabelsOf(text, rest);
}

StatusOr<EinsumLabels> EinsumEquation::LabelsOfOutput() const {
  if (ellipsis_rank == 0 || output.find('.') != std::string::npos) {
    return LabelsOf(output, ellipsis_rank);
  }
  return InvalidArgument("Output contains ", ellipsis_rank,
                         " broadcasting dimension(s) but no ellipsis (...) was found in the output "
                         "subscripts.");
}

}  // namespace tenon
