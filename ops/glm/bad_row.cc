// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/bad_row.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/glm/glm_family.h"
#include "ops/glm/glm_rows.h"

namespace tenon {
namespace {

double NumberInColumn(const TableBlock& block, int64_t row, int64_t column) {
  double value;
  block.columns[column].CopyNumbers(row, 1, &value);
  return value;
}

double NumberInRow(const GlmNumber& number, const TableBlock& block, int64_t row) {
  std::vector<double> values;
  std::vector<const double*> places;
  for (const int64_t column : number.columns) {
    values.push_back(NumberInColumn(block, row, column));
  }
  for (const double& value : values) places.push_back(&value);
  double result;
  number.expression.Evaluate(places, 1, &result);
  return result;
}

/// Which number of a bad row is wrong.
class WrongNumber {
 public:
  WrongNumber(const GlmDesign& design, const TableBlock& block, int64_t row)
      : design_(design), block_(block), row_(row) {}

  void Find(BadGlmRow* bad) const {
    const GlmResponse& response = design_.response;
    const bool has_failures = !response.failures.expression.steps.empty();
    int64_t part = BadGlmRow::kOthers;
    if (response.column < 0 && IsWrong(response.number, true, has_failures)) {
      Set(BadGlmRow::kResponse, response.number, bad);
    } else if (has_failures && IsWrong(response.failures, true, true)) {
      Set(BadGlmRow::kFailures, response.failures, bad);
    } else if (design_.weight_column >= 0 &&
               !(NumberInColumn(block_, row_, design_.weight_column) >= 0)) {
      bad->part = BadGlmRow::kWeight;
      bad->column = design_.weight_column;
      bad->value = NumberInColumn(block_, row_, design_.weight_column);
    } else {
      for (const auto* numbers : {&design_.offsets, &design_.numbers}) {
        for (const GlmNumber& number : *numbers) {
          if (IsWrong(number, false, false)) return Set(part, number, bad);
          ++part;
        }
      }
      for (const GlmFactor& factor : design_.factors) {
        if (factor.column < 0 && IsWrong(factor.number, false, false)) {
          return Set(part, factor.number, bad);
        }
        ++part;
      }
    }
  }

 private:
  bool IsWrong(const GlmNumber& number, bool is_response, bool is_count) const {
    const double value = NumberInRow(number, block_, row_);
    if (!std::isfinite(value)) return true;
    if (is_count) return value < 0;
    const auto [lowest, highest] = ResponsesOf(design_.family);
    return is_response && !(value >= lowest && value <= highest);
  }
  void Set(int64_t part, const GlmNumber& number, BadGlmRow* bad) const {
    bad->part = part;
    bad->column = number.columns.empty() ? -1 : number.columns[0];
    bad->value = NumberInRow(number, block_, row_);
  }

  const GlmDesign& design_;
  const TableBlock& block_;
  const int64_t row_;
};

}  // namespace

StatusOr<BadGlmRow> FindBadGlmRow(const GlmDesign& design, const TableShard& shard,
                                  const FileContext& context) {
  BadGlmRow bad;
  GlmRowReader reader(design);
  GlmChunk chunk;
  const auto is_bad = [&](const TableBlock& block, int64_t begin, int64_t count) {
    reader.Read(block, begin, count, &chunk);
    return chunk.num_infinite > 0 || chunk.num_impossible > 0;
  };
  for (int64_t unit = 0; unit < shard.num_units() && bad.unit < 0; ++unit) {
    int64_t before = 0;
    const auto search = [&](const TableBlock& block) -> Status {
      for (int64_t row = 0; row < block.num_rows && bad.unit < 0;) {
        const int64_t count = std::min(GlmRowReader::kChunkRows, block.num_rows - row);
        if (!is_bad(block, row, count)) {
          row += count;
          continue;
        }
        while (!is_bad(block, row, 1)) ++row;
        bad.unit = unit;
        bad.row = before + row;
        WrongNumber(design, block, row).Find(&bad);
      }
      before += block.num_rows;
      return OkStatus();
    };
    TENON_RETURN_IF_ERROR(shard.ForEachBlock(unit, search, context));
  }
  return bad;
}

}  // namespace tenon
