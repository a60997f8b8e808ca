// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "core/base/strings.h"
#include "data/batch/random_sequence.h"

namespace tenon {

/// Rows "y,id,x,f,g" with 3 levels of f and 50 of g.
inline std::string StreamRowsOf(int64_t count, RandomSequence* random) {
  std::string text = "y,id,x,f,g\n";
  for (int64_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(random->Below(2000)) / 1000 - 1;
    const auto f = static_cast<int64_t>(random->Below(3)),
               g = static_cast<int64_t>(random->Below(50));
    const double p =
        1 /
        (1 + std::exp(0.3 - x - 0.8 * static_cast<double>(f) + 0.1 * static_cast<double>(g % 10)));
    StrAppend(&text, static_cast<double>(random->Below(1000)) / 1000 < p ? 1 : 0, ",", i, ",", x,
              ",f", f, ",g", g, "\n");
  }
  return text;
}

}  // namespace tenon
