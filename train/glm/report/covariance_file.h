// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/status.h"
#include "data/files/file.h"
#include "train/glm/result/glm_covariance.h"
#include "train/glm/result/glm_equation.h"
#include "train/glm/result/glm_result.h"

namespace tenon {

inline constexpr char kCovarianceFile[] = "covariance.npz";

/// Writes the covariance of a result's estimates with `estimates` and `names`, all in one order: as
/// the square matrix `covariance`; where it is kept in blocks, as these, by the names that
/// GlmCovariance::Blocks has for them. REQUIRES: there is a covariance.
Status WriteCovariance(const GlmResult& result, const std::string& path,
                       const FileContext& context = {});

/// Reads the covariance of an equation's estimates, without aliased ones, in their order, from the
/// folder of a model. NotFound for a model without, as under a penalty.
StatusOr<GlmCovariance> LoadCovariance(const GlmEquation& equation, const std::string& folder,
                                       const FileContext& context = {});

}  // namespace tenon
