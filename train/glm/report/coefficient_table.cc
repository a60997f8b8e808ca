// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/coefficient_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "absl/strings/str_format.h"
#include "core/base/hash_map.h"
#include "core/base/strings.h"
#include "train/glm/text/number_text.h"
#include "train/glm/text/text_table.h"

namespace tenon {
namespace {

constexpr const char *kPerDeviation = "Per SD", *kOddsRatio = "Odds ratio",
                     *kRateRatio = "Rate ratio";

/// How far a coefficient is from 0, to choose the largest.
double SizeOf(const GlmCoefficient& c) {
  for (const double size : {c.statistic, c.standardised, c.estimate}) {
    if (!std::isnan(size)) return std::abs(size);
  }
  return -1;
}

/// "2.5 %", as R heads the bounds of an interval.
std::string BoundHeader(double probability) {
  return absl::StrFormat("%.4g %%", 100 * probability);
}

/// Which columns a table has, beside those of names and estimates.
struct Contents {
  bool has_levels = false, has_tests = false, has_deviations = false, has_ratios = false,
       has_rows = false;
};

Contents ContentsOf(const GlmResult& result, const std::vector<size_t>& shown) {
  Contents contents;
  for (const size_t i : shown) {
    const GlmCoefficient& c = result.coefficients[i];
    contents.has_levels |= !c.level.empty();
    contents.has_tests |= !std::isnan(c.statistic);
    contents.has_deviations |= !std::isnan(c.standardised);
    contents.has_rows |= c.rows >= 0;
  }
  contents.has_ratios = result.link == "logit" || result.link == "log";
  return contents;
}

std::vector<TextTable::Column> ColumnsOf(const GlmResult& result, const Contents& contents) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns = {{"Term", Align::kLeft}};
  if (contents.has_levels) columns.push_back({"Level", Align::kLeft});
  columns.push_back({"Estimate"});
  if (contents.has_tests) {
    const std::string statistic = result.dispersion_is_estimated ? "t" : "z";
    columns.push_back({"Std. error"});
    columns.push_back({statistic});
    columns.push_back({StrCat("Pr(>|", statistic, "|)")});
    columns.push_back({BoundHeader(0.5 - result.level / 2)});
    columns.push_back({BoundHeader(0.5 + result.level / 2)});
  }
  if (contents.has_deviations) columns.push_back({kPerDeviation});
  if (contents.has_ratios) columns.push_back({result.link == "logit" ? kOddsRatio : kRateRatio});
  if (contents.has_rows) columns.push_back({"Rows", Align::kRight});
  return columns;
}

/// Why a coefficient has no numbers of its own; empty where it has, and for zeros.
std::string ReasonOf(const GlmCoefficient& c) {
  switch (c.status) {
    case CoefficientStatus::kReference:
      return "reference";
    case CoefficientStatus::kAliased:
      return c.sum_of.empty() ? "determined by the terms before it"
                              : StrCat("= ", ShownText(c.sum_of));
    case CoefficientStatus::kSeparated:
      return "left out: its responses are all alike";
    case CoefficientStatus::kOk:
    case CoefficientStatus::kZero:
      return "";
  }
  return "";
}

std::string EstimateText(const GlmCoefficient& c, int digits) {
  if (c.status == CoefficientStatus::kAliased || c.status == CoefficientStatus::kSeparated) {
    return "NA";
  }
  if (c.status != CoefficientStatus::kOk) return "0";
  return EstimateDigits(c.estimate, c.standard_error, digits).Text(c.estimate);
}

/// Two decimals, as those of a small statistic say nothing; digits of a large one neither.
std::string StatisticText(double statistic) {
  if (std::abs(statistic) >= 1e5) return SignificantText(statistic, 7, 2);
  return FixedText(std::abs(statistic) < 0.005 ? 0 : statistic, 2);
}

/// Sums of many columns lose their middle, and are whole in coefficients.csv.
constexpr int64_t kNoteWidth = 60;

/// The table with so many digits of the standard errors, and names of at most these widths.
TextTable TableOf(const GlmResult& result, const std::vector<size_t>& shown, int digits,
                  int64_t term_width, int64_t level_width) {
  const Contents contents = ContentsOf(result, shown);
  TextTable table(ColumnsOf(result, contents));
  for (const size_t i : shown) {
    const GlmCoefficient& c = result.coefficients[i];
    std::vector<std::string> cells = {CutInMiddle(c.term, term_width)};
    if (contents.has_levels) cells.push_back(CutInMiddle(c.level, level_width));
    cells.push_back(EstimateText(c, digits));
    const std::string reason = CutInMiddle(ReasonOf(c), kNoteWidth);
    if (!reason.empty()) {
      const auto behind = static_cast<int64_t>(cells.size());
      cells.resize(table.columns().size());
      if (contents.has_rows && c.rows >= 0) cells.back() = CountText(c.rows);
      const bool is_reference = c.status == CoefficientStatus::kReference;
      if (is_reference && contents.has_tests) {
        cells[static_cast<size_t>(behind)] = reason;
        table.AddRow(std::move(cells));
      } else {
        table.AddRowWithNote(std::move(cells), behind, reason);
      }
      continue;
    }
    if (contents.has_tests) {
      const EstimateDigits shape(c.estimate, c.standard_error, digits);
      cells.push_back(shape.Text(c.standard_error));
      cells.push_back(StatisticText(c.statistic));
      cells.push_back(PValueText(c.p_value));
      cells.push_back(shape.Text(c.lower, 1));
      cells.push_back(shape.Text(c.upper, 1));
    }
    if (contents.has_deviations) {
      cells.push_back(std::isnan(c.standardised) ? "" : SignificantText(c.standardised, 4, 4));
    }
    if (contents.has_ratios) {
      const bool has_ratio = !c.is_intercept() && c.status == CoefficientStatus::kOk;
      cells.push_back(has_ratio ? SignificantText(std::exp(c.estimate), 4, 3) : "");
    }
    if (contents.has_rows) cells.push_back(c.rows < 0 ? "" : CountText(c.rows));
    table.AddRow(std::move(cells));
  }
  return table;
}

}  // namespace

std::vector<size_t> ShownCoefficients(const GlmResult& result, bool all_of_them,
                                      int64_t num_largest) {
  constexpr int64_t kMostWithoutEstimate = 10;
  const std::vector<GlmCoefficient>& all = result.coefficients;
  std::vector<bool> is_shown(all.size(), all_of_them);
  if (!all_of_them) {
    std::vector<size_t> by_size;
    int64_t without = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const CoefficientStatus status = all[i].status;
      if (all[i].is_intercept()) {
        is_shown[i] = true;
      } else if (status == CoefficientStatus::kOk) {
        by_size.push_back(i);
      } else if (status == CoefficientStatus::kAliased || status == CoefficientStatus::kSeparated) {
        is_shown[i] = without++ < kMostWithoutEstimate;
      }
    }
    // The first one of equals is taken.
    const auto most =
        std::min(static_cast<size_t>(std::max<int64_t>(num_largest, 0)), by_size.size());
    const auto end = by_size.begin() + static_cast<int64_t>(most);
    std::partial_sort(by_size.begin(), end, by_size.end(), [&](size_t a, size_t b) {
      const double size_a = SizeOf(all[a]), size_b = SizeOf(all[b]);
      return size_a != size_b ? size_a > size_b : a < b;
    });
    StringSet terms;
    for (size_t k = 0; k < most; ++k) {
      is_shown[by_size[k]] = true;
      terms.insert(all[by_size[k]].term);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].status == CoefficientStatus::kReference && terms.contains(all[i].term)) {
        is_shown[i] = true;
      }
    }
  }
  std::vector<size_t> shown;
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_shown[i]) shown.push_back(i);
  }
  return shown;
}

std::vector<std::string> CoefficientLines(const GlmResult& result, const std::vector<size_t>& shown,
                                          int64_t width) {
  constexpr int kDigits = 4, kFewerDigits = 3;
  constexpr int64_t kLeastNameWidth = 12;
  int64_t term_width = kLeastNameWidth, level_width = 0;
  for (const size_t i : shown) {
    term_width = std::max(term_width, WidthOf(ShownText(result.coefficients[i].term)));
    level_width = std::max(level_width, WidthOf(ShownText(result.coefficients[i].level)));
  }
  // Names that are wider than a third of the line would push all numbers away.
  term_width = std::min(term_width, width / 3);
  level_width = std::min(std::max(level_width, kLeastNameWidth), width / 3);
  struct Form {
    int digits;
    int64_t gap;
  };
  constexpr std::array<Form, 4> kForms = {
      {{kDigits, 2}, {kFewerDigits, 2}, {kDigits, 1}, {kFewerDigits, 1}}};
  for (const Form& form : kForms) {
    const TextTable table = TableOf(result, shown, form.digits, term_width, level_width);
    if (table.Width(form.gap) <= width) return table.Lines(form.gap);
  }
  const Form last = kForms.back();
  TextTable table = TableOf(result, shown, last.digits, term_width, level_width);
  while (table.Width(last.gap) > width && std::max(term_width, level_width) > kLeastNameWidth) {
    --(level_width >= term_width ? level_width : term_width);
    table = TableOf(result, shown, last.digits, term_width, level_width);
  }
  const std::vector<std::vector<std::string>> dispensable = {
      {kPerDeviation},
      {kOddsRatio, kRateRatio},
      {BoundHeader(0.5 - result.level / 2), BoundHeader(0.5 + result.level / 2)},
      {"Rows"}};
  for (const std::vector<std::string>& headers : dispensable) {
    if (table.Width(last.gap) <= width) break;
    for (const std::string& header : headers) {
      for (size_t i = table.columns().size(); i-- > 0;) {
        if (table.columns()[i].header == header) table.RemoveColumn(i);
      }
    }
  }
  return table.Lines(last.gap);
}

}  // namespace tenon
