// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/testing/graph_session.h"

namespace tenon::testing {

/// A constant of doubles that differ: sin(k), sin(2 k), ...
Output Waves(const Shape& shape, double k = 1.3);

/// Expects that the derivatives of `loss`, a double scalar, by every element of each trainable
/// variable of the graph are what Gradients says, by central differences. Gives the variables
/// values of its own, which differ from element to element.
void ExpectGradientsOfVariables(GraphSession& s, const Output& loss,
                                const Session::Feeds& feeds = {});

}  // namespace tenon::testing
