// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/build/building.h"

// Terms of the loss that keep weights small. The term of each regularized weight is in the graph's
// collection "regularization_losses", once, however often its layer is called.
//
//   Dense(64, {.kernel_regularizer = L2Regularizer(1e-4)});
//   Output loss = Mean(errors);
//   for (Output term : graph.Collection("regularization_losses")) loss = loss + term;

namespace tenon {

/// The scalar that a weight adds to the loss.
using Regularizer = std::function<Output(const Output& weight)>;

/// scale * sum(|w|) (tf.keras.regularizers.L1).
Regularizer L1Regularizer(double scale);
/// scale * sum(w^2), which is twice tf.nn.l2_loss (tf.keras.regularizers.L2).
Regularizer L2Regularizer(double scale);
/// The sum of both (tf.keras.regularizers.L1L2).
Regularizer L1L2Regularizer(double l1, double l2);

}  // namespace tenon
