// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/strings.h"

namespace tenon {

/// "1 GPU", "2 GPUs"; `many` ("fetches") where it is not `one` with an s.
inline std::string Plural(int64_t count, std::string_view one, std::string_view many = "") {
  if (count == 1) return StrCat("1 ", one);
  return many.empty() ? StrCat(count, " ", one, "s") : StrCat(count, " ", many);
}

}  // namespace tenon
