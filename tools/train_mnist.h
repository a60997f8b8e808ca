// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/op_registry.h"
#include "tools/mnist_flags.h"

namespace tenon::tools {

/// Trains in this process, or as one task of a cluster, and reports on the standard output.
Status TrainMnist(const TrainMnistFlags& flags, const OpRegistry& ops);

}  // namespace tenon::tools
