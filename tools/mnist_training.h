// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device/communicator.h"
#include "core/op/op_registry.h"
#include "distributed/protocol/server.h"
#include "tools/mnist_flags.h"
#include "train/evaluation/train_and_evaluate.h"

namespace tenon::tools {

/// Trains as a worker on the cluster of `server`, as a rank of `ranks`, or alone where both are
/// null, and reports on the standard output.
Status RunMnistTraining(const TrainMnistFlags& flags, const OpRegistry& ops, Server* server,
                        Communicator* ranks);

/// The evaluator of such a training, which follows its checkpoints.
Status EvaluateMnistTraining(const TrainMnistFlags& flags, const OpRegistry& ops,
                             const TrainingGoesOn& training_goes_on);

}  // namespace tenon::tools
