// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "tools/commands.h"
#include "train/glm/model/glm_penalty.h"

namespace tenon::tools {

/// The flags of `tenon train linear` that say what penalty a fit has.
struct GlmPenaltyFlags {
  double ridge = 0, lasso = 0, lambda = 0;
  std::string elastic_net, standardised;  // empty: as the method has it
  int64_t path = 0;
};

void AddPenaltyFlags(CLI::App* command, GlmPenaltyFlags* flags);

/// A text that tells the penalty from others.
std::string NameOf(const GlmPenaltyFlags& flags);

/// The penalty that these flags mean, for an exact fit or for a stream. InvalidArgument where they
/// contradict each other.
StatusOr<GlmPenalty> PenaltyOf(const GlmPenaltyFlags& flags, bool for_stream = false);

}  // namespace tenon::tools
