// SPDX-License-Identifier: Apache-2.0
#include "train/feature_columns/weight_row.h"

#include <utility>

namespace tenon {

std::string_view ToString(WeightRowKind kind) {
  switch (kind) {
    case WeightRowKind::kNumber:
      return "number";
    case WeightRowKind::kCategory:
      return "category";
    case WeightRowKind::kOutOfVocabulary:
      return "out of vocabulary";
    case WeightRowKind::kInterval:
      return "interval";
    case WeightRowKind::kHashBucket:
      return "hash bucket";
    case WeightRowKind::kUnnamed:
      break;
  }
  return "unnamed";
}

WeightRows UnnamedRows(int64_t count, std::string why) {
  WeightRows rows;
  for (int64_t i = 0; i < count; ++i) {
    rows.rows.push_back({StrCat("row ", i), WeightRowKind::kUnnamed});
  }
  rows.why_unnamed = std::move(why);
  return rows;
}

}  // namespace tenon
