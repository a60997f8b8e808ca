// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/commands.h"

namespace tenon::tools {

/// Adds `linear` to the subcommands of `train`: linear, logistic and Poisson regression from files.
void AddTrainLinearCommand(CLI::App& train, Command* chosen);

}  // namespace tenon::tools
