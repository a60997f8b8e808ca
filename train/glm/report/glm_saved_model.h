// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/status.h"
#include "train/glm/result/glm_equation.h"

namespace tenon {

inline constexpr char kSavedModelFolder[] = "saved_model";

/// Writes the equation as a SavedModel (train/saver/saved_model.h) to a folder that is not there.
/// Its signature has an input by the name of each column, float64 where the model wants numbers and
/// string where it wants levels, all of one length, and the output `predictions`: the means, NaN
/// for rows without one. False, with nothing written, for a model without columns, and for one that
/// takes a column both for numbers and for levels.
StatusOr<bool> WriteGlmSavedModel(const GlmEquation& equation, const std::string& folder);

}  // namespace tenon
