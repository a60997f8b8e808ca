// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tenon/tenon.h"

// Mistakes of running: the message names the tensor.

std::vector<std::string> RunningMistakes();
/// Makes the one of that name in a session on `graph`, which is being built.
tenon::Status MakeRunningMistake(const tenon::Graph& graph, const std::string& name);
