// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/dtype.h"
#include "core/status.h"
#include "core/tensor.h"

namespace tenon {

/// InvalidArgument, naming the first that differs, unless `args` are as many as `types` and of
/// these dtypes; kInvalid is what another part of the step takes.
Status CheckArguments(const std::vector<Tensor>& args, const DTypeVector& types);

/// InvalidArgument when a result of the part of a step that gives `types` has no value: in a graph
/// with control flow a fetch may never run, behind a NextIteration without a Merge.
Status CheckRetvals(const std::vector<Tensor>& retvals, const DTypeVector& types);

}  // namespace tenon
