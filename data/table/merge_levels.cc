// SPDX-License-Identifier: Apache-2.0
#include "data/table/merge_levels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/memory/counted_memory.h"
#include "data/csv/read_number.h"

namespace tenon {
namespace {

/// The numbers that the texts are; nothing where one is none, or NaN, which has no place among
/// numbers.
bool ReadNumbers(const TextLevels& levels, CountedVector<double>* numbers) {
  for (int32_t i = 0; i < levels.size(); ++i) {
    if (!ReadFieldNumber(levels.text(i), &(*numbers)[i]) || std::isnan((*numbers)[i])) return false;
  }
  return true;
}

}  // namespace

TableLevels MergeLevels(absl::Span<const ColumnLevels* const> shards) {
  TextLevels all;
  CountedVector<int64_t> counts;
  for (const ColumnLevels* const shard : shards) {
    for (int32_t i = 0; i < shard->levels.size(); ++i) {
      const int32_t code = all.Code(shard->levels.text(i));
      if (static_cast<size_t>(code) == counts.size()) counts.push_back(0);
      counts[code] += shard->counts[i];
    }
  }
  CountedVector<double> numbers(all.size());
  const bool are_numbers = ReadNumbers(all, &numbers);
  CountedVector<int32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (are_numbers && numbers[a] != numbers[b]) return numbers[a] < numbers[b];
    return all.text(a) < all.text(b);  // "1" and "1.0" are two levels
  });
  TableLevels merged;
  for (const int32_t code : order) {
    merged.texts.push_back(all.text(code));
    merged.counts.push_back(counts[code]);
  }
  return merged;
}

}  // namespace tenon
