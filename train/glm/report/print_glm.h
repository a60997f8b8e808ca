// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "train/glm/result/glm_result.h"

namespace tenon {

struct GlmPrintOptions {
  bool all = false;               // every coefficient
  int64_t num_coefficients = 20;  // else those of the largest |z|, and what belongs to them
  int64_t width = 100;            // the columns of the terminal; at least 72
  std::string coefficients_file = "coefficients.csv";  // where the others are said to be
};

/// The result as text for people, in UTF-8: the model, warnings, the table of coefficients, the
/// joint tests of the terms, how well it fits and predicts. Estimates have as many digits as their
/// standard errors give a meaning, four of these as in R's summary, or three where the table would
/// be too wide. Where it still is, long names lose their middle, and then columns are left out that
/// coefficients.csv has.
std::string FormatGlm(const GlmResult& result, const GlmPrintOptions& options = {});

}  // namespace tenon
