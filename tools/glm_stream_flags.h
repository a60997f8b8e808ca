// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/status.h"
#include "tools/commands.h"
#include "train/glm/rows/stream_options.h"

namespace tenon::tools {

/// The flags of `tenon train linear` that have FTRL in place of an exact fit.
struct GlmStreamFlags {
  bool stream = false;
  std::optional<int64_t> epochs, batch, seed;
  std::optional<double> learning_rate;
};

void AddStreamFlags(CLI::App* command, GlmStreamFlags* flags);

/// The stream that these flags ask for, if they do. InvalidArgument for those that want --stream.
StatusOr<std::optional<StreamFitOptions>> StreamOf(const GlmStreamFlags& flags);

}  // namespace tenon::tools
