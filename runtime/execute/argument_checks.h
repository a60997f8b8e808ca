// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// InvalidArgument, naming the first that differs, unless `args` are at least as many as `types`
/// and of these dtypes; kInvalid is what another part of the step takes.
Status CheckArguments(const std::vector<Tensor>& args, const DTypeVector& types);

/// InvalidArgument when a result of the part of a step that gives `types` has no value: in a graph
/// with control flow a fetch may never run, behind a NextIteration without a Merge.
Status CheckRetvals(const std::vector<Tensor>& retvals, const DTypeVector& types);

/// The error of fetch `index`, whose _Retval node has that name, when it lies on a branch that was
/// not taken, or within a while loop; it names the tensor as the signature does.
Status NoValueOfRetval(int64_t index, std::string_view name, bool in_loop);

}  // namespace tenon
