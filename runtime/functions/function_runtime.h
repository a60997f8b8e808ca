// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/graph/graph.h"
#include "core/op/function.h"
#include "core/op/function_runtime.h"
#include "runtime/execute/program.h"

namespace tenon {

/// What runs the functions of `library`, after the passes that are wanted, on the devices of
/// `runtime`, which the functions' calls may use until its RunningCalls are closed. The registry
/// must outlive it.
std::shared_ptr<FunctionRuntime> MakeFunctionRuntime(std::shared_ptr<const FunctionLibrary> library,
                                                     const OpRegistry& registry,
                                                     const LocalRuntime& runtime,
                                                     const PassOptions& passes);

/// The functions that nodes of `graph` name, and those that these call.
std::shared_ptr<const FunctionLibrary> FunctionsNeeded(const Graph& graph);

}  // namespace tenon
