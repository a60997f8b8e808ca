// SPDX-License-Identifier: Apache-2.0
#include "train/glm/rows/bad_row_message.h"

#include <cmath>
#include <limits>

#include "core/base/strings.h"
#include "ops/glm/bad_row.h"
#include "ops/glm/glm_family.h"

namespace tenon {
namespace {

std::string WantedResponse(GlmFamily family) {
  const auto [lowest, highest] = ResponsesOf(family);
  return highest < std::numeric_limits<double>::max() ? StrCat(lowest, " to ", highest)
                                                      : StrCat(lowest, " or more");
}

std::string ShownNumber(double value) {
  if (std::isnan(value)) return "not a number";
  return std::isinf(value) ? (value > 0 ? "infinite" : "-infinite") : StrCat(value);
}

/// The mistake in a number that is computed, or that is a column as it stands.
std::string MistakeOf(const GlmModel& model, const PlacedBadRow& bad, bool is_column) {
  if (is_column && !std::isfinite(bad.value)) return "is not a finite number";
  const std::string label = model.LabelOfNumber(bad.part);
  const std::string found = is_column ? "is" : StrCat("makes ", label, " ", ShownNumber(bad.value));
  if (!std::isfinite(bad.value) || bad.part >= BadGlmRow::kOthers) return found;
  if (bad.part == BadGlmRow::kWeight) return "is no weight, wanted 0 or more";
  const bool is_count = !model.margins().response.failures.expression.steps.empty();
  if (is_count) return StrCat(found, is_column ? " no count" : "", ", wanted 0 or more");
  return StrCat(found, is_column ? " no response" : "", " of family ",
                NameOf(model.margins().family), ", wanted ",
                WantedResponse(model.margins().family));
}

}  // namespace

std::string BadRowMessage(const GlmModel& model, const TablePlaces& places,
                          const PlacedBadRow& bad) {
  if (bad.column < 0) return StrCat("the number ", model.LabelOfNumber(bad.part), " is wrong");
  const WantedColumn& column = places.schema().columns[bad.column];
  const bool is_column =
      places.schema().header.names[column.place] == model.LabelOfNumber(bad.part);
  return places.OfValue(bad.unit, bad.column, bad.text, MistakeOf(model, bad, is_column));
}

}  // namespace tenon
