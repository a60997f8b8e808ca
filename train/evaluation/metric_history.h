// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/status.h"

namespace tenon {

/// Which of two values of a metric is the better one.
enum class Better : uint8_t { kSmaller, kLarger };

/// The values of a metric by step, as the scalar summaries `metric` in the event files of a folder
/// have them; of two values of one step the one that was written last. Empty where there are no
/// such files. What a writer that died has left incomplete at the end of a file is passed over.
StatusOr<std::map<int64_t, double>> ReadMetric(const std::string& folder,
                                               const std::string& metric);

/// The step with the best value, the first of equal ones; values that are no numbers are worse than
/// all others. REQUIRES: there is one.
int64_t BestStep(const std::map<int64_t, double>& values, Better better);

}  // namespace tenon
