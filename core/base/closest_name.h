// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The one of `names` that `word` was probably meant to be, "" when none is near. Case does not
/// count, nor whether words are joined by '-' or '_'.
std::string ClosestName(std::string_view word, const std::vector<std::string>& names);

/// "; did you mean X?" for that name, or "".
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names);

/// "; did you mean 'X'?", or where no name is near the first names: "; there are a, b, c, 5 more".
std::string DidYouMeanOrNames(std::string_view word, const std::vector<std::string>& names);

}  // namespace tenon
