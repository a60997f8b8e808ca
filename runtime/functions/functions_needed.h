// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/graph/graph.h"
#include "core/op/function.h"

namespace tenon {

/// The functions that nodes of `graph` name, and those that these call.
std::shared_ptr<const FunctionLibrary> FunctionsNeeded(const Graph& graph);

}  // namespace tenon
