// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/base/status.h"

namespace tenon {

/// What CheckNumerics looks for: NaN, and infinities of either sign.
struct FoundNumerics {
  bool nan = false, negative = false, positive = false;
};

/// Its error for a tensor that has some of them; with `is_signed` it tells the infinities apart.
Status NumericsError(const FoundNumerics& found, bool is_signed, std::string_view message);

}  // namespace tenon
