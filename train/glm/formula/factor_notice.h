// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "data/table/merge_levels.h"

namespace tenon {

/// Says why a column of which most values are numbers is taken for a factor; empty where most are
/// none, as of a column of names.
std::string FactorNotice(std::string_view column, const TableLevels& levels);

}  // namespace tenon
