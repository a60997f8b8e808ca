// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/build/building.h"

namespace tenon {

/// What adds up over many steps; see metrics.h.
struct Metric {
  Output value;   // of all that has been counted
  Output update;  // counts what this step has, and is the value after that unless said otherwise
};

}  // namespace tenon
