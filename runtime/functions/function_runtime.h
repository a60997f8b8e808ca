// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "core/graph/graph.h"
#include "core/op/function.h"
#include "core/op/function_runtime.h"
#include "runtime/execute/program.h"
#include "runtime/execute/running_calls.h"
#include "runtime/execute/signature.h"

namespace tenon {

/// Makes a program of a graph that has been built and the signature to run of it.
using CompileFunction =
    std::function<StatusOr<std::shared_ptr<Program>>(Graph graph, const Signature& signature)>;

/// What runs the functions of `library`, each as a program that `compile` makes of a graph of one
/// call. Calls count among the `running` ones, and go on until these are closed. The registry must
/// outlive it.
std::shared_ptr<FunctionRuntime> MakeFunctionRuntime(std::shared_ptr<const FunctionLibrary> library,
                                                     const OpRegistry& registry,
                                                     std::shared_ptr<RunningCalls> running,
                                                     CompileFunction compile);

}  // namespace tenon
