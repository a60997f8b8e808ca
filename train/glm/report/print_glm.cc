// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/print_glm.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/strings.h"
#include "train/glm/report/coefficient_table.h"
#include "train/glm/text/number_text.h"
#include "train/glm/text/text_table.h"

namespace tenon {
namespace {

using Lines = std::vector<std::string>;
constexpr int64_t kLabelWidth = 9;

std::string Padded(const std::string& text, int64_t width) {
  return text + std::string(static_cast<size_t>(std::max<int64_t>(width - WidthOf(text), 0)), ' ');
}

/// A label and its text, broken at blanks to the width.
void AddLabelled(std::string_view label, const std::string& text, int64_t width, Lines* lines) {
  std::string line = Padded(std::string(label), kLabelWidth);
  bool is_empty = true;
  for (const absl::string_view word : absl::StrSplit(ShownText(text), ' ')) {
    const std::string_view shown = ToStd(word);
    if (!is_empty && WidthOf(line) + 1 + WidthOf(shown) > width) {
      lines->push_back(std::move(line));
      line = std::string(kLabelWidth, ' ');
      is_empty = true;
    }
    StrAppend(&line, is_empty ? "" : " ", shown);
    is_empty = false;
  }
  lines->push_back(std::move(line));
}

/// "1 row", "261,875 rows".
std::string RowsText(int64_t rows) { return StrCat(CountText(rows), rows == 1 ? " row" : " rows"); }

std::string DataText(const GlmResult& result) {
  std::string text = StrCat(RowsText(result.rows_used), " used");
  if (result.files.size() == 1) {
    StrAppend(&text, " of ", result.files[0].path, " (", BytesText(result.files[0].size), ")");
  } else if (!result.files.empty()) {
    int64_t bytes = 0;
    for (const GlmResult::File& file : result.files) bytes += file.size;
    StrAppend(&text, " of ", CountText(static_cast<int64_t>(result.files.size())), " files (",
              BytesText(bytes), ")");
  }
  if (result.rows_missing > 0) {
    std::vector<std::string> columns;
    for (const auto& [column, rows] : result.missing_by_column) {
      if (rows > 0) columns.push_back(StrCat(column, " ", CountText(rows)));
    }
    StrAppend(&text, "; ", CountText(result.rows_missing), " dropped, with values missing");
    if (!columns.empty()) StrAppend(&text, ": ", Join(columns, ", "));
  }
  if (result.rows_separated > 0) {
    StrAppend(&text, "; ", CountText(result.rows_separated), " left out by separation");
  }
  return text;
}

std::string MethodText(const GlmResult& result) {
  const int64_t estimated = result.NumEstimated();
  std::string text =
      StrCat(result.method,
             result.method_reason.empty() ? ", " : StrCat(", since ", result.method_reason, "; "),
             CountText(estimated), estimated == 1 ? " coefficient" : " coefficients");
  if (result.bytes_of_sums > 0) StrAppend(&text, ", ", BytesText(result.bytes_of_sums), " of sums");
  if (result.stream) {
    const GlmStreamReport& stream = *result.stream;
    StrAppend(&text, "; ", CountText(stream.epochs), stream.epochs == 1 ? " epoch" : " epochs",
              " of batches of ", CountText(stream.batch_rows), " rows, rate ",
              absl::StrFormat("%.6g", stream.learning_rate), ", seed ", stream.seed);
    if (stream.seconds > 0) {
      StrAppend(&text,
                absl::StrFormat("; %.2g million rows a second",
                                static_cast<double>(stream.rows_read) / stream.seconds / 1e6));
    }
  } else if (!result.iterations.empty()) {
    const GlmIteration& last = result.iterations.back();
    // The last pass of a path may be of another fit than the one that is printed.
    const double deviance = result.path.empty() ? last.deviance : result.residual_deviance;
    StrAppend(
        &text, "; ", last.pass, last.pass == 1 ? " pass" : " passes", ", deviance ",
        SignificantText(deviance, 7, 4), result.has_inference() ? ", gradient " : ", residual ",
        absl::StrFormat("%.0e", std::isnan(result.penalty_residual) ? last.gradient_norm
                                                                    : result.penalty_residual));
  }
  if (!result.stream) StrAppend(&text, result.converged ? "; converged" : "; NOT CONVERGED");
  if (result.seconds > 0) {
    // Two digits are enough, and whole seconds from 10 on.
    StrAppend(&text, ", ",
              absl::StrFormat("%.*g", result.seconds < 10 ? 2 : 15,
                              result.seconds < 10 ? result.seconds : std::round(result.seconds)),
              " s");
  }
  return text;
}

/// "ridge 1", "alpha 0.5, lambda 0.01".
std::string PenaltyText(const GlmResult& result) {
  Lines parts;
  if (result.ridge > 0) parts.push_back(absl::StrFormat("ridge %.6g", result.ridge));
  if (result.lasso > 0) parts.push_back(absl::StrFormat("lasso %.6g", result.lasso));
  if (result.lambda > 0) {
    parts.push_back(absl::StrFormat("alpha %.6g, lambda %.6g", result.alpha, result.lambda));
  }
  return Join(parts, ", ");
}

Lines HeaderLines(const GlmResult& result, int64_t width) {
  Lines lines;
  AddLabelled("model", result.formula, width, &lines);
  AddLabelled("family", StrCat(result.family, ", ", result.link, " link"), width, &lines);
  AddLabelled("data", DataText(result), width, &lines);
  for (const std::string& warning : result.warnings) {
    AddLabelled("warning", warning, width, &lines);
  }
  if (result.stream) {
    AddLabelled("stream",
                "not converged, no inference: each row was used for one step an epoch, and how "
                "near the best estimates are is not known; standard errors, p values and intervals "
                "would be those of the best ones, which the command has without --stream",
                width, &lines);
  }
  if (result.is_penalised()) {
    std::string text = PenaltyText(result);
    if (!result.objective.empty()) StrAppend(&text, "; least: ", result.objective);
    AddLabelled("penalty", text, width, &lines);
    AddLabelled("",
                "no standard errors, p values and intervals: estimates are drawn towards 0 on "
                "purpose, and these numbers, which take them for unbiased, would be wrong",
                width, &lines);
  }
  if (!result.path.empty()) {
    AddLabelled(
        "path",
        absl::StrFormat("%d fits, lambda %.4g to %.4g; explained %.4f to %.4f of the null "
                        "deviance, by %d to %d coefficients",
                        result.path.size(), result.path.front().lambda, result.path.back().lambda,
                        result.path.front().deviance_ratio, result.path.back().deviance_ratio,
                        result.path.front().nonzero, result.path.back().nonzero),
        width, &lines);
  }
  if (result.robust) {
    AddLabelled("errors", "robust standard errors (HC1): White's sandwich x n / (n - p)", width,
                &lines);
  }
  if (result.newton_bytes && !result.is_penalised()) {
    AddLabelled(
        "errors",
        StrCat("no standard errors, tests and intervals: they want the products of all pairs "
               "of columns, and lbfgs has gradients alone; --method newton has them, in ",
               BytesText(*result.newton_bytes),
               " of sums. Columns that are sums of others are not looked for: all count in df, AIC "
               "and BIC"),
        width, &lines);
  }
  AddLabelled("method", MethodText(result), width, &lines);
  return lines;
}

/// The line about the coefficients that the table leaves out; empty when it has all.
std::string HiddenText(const GlmResult& result, const std::vector<size_t>& shown,
                       const GlmPrintOptions& options) {
  int64_t hidden = 0, zeros = 0;
  std::vector<bool> is_shown(result.coefficients.size());
  for (const size_t i : shown) is_shown[i] = true;
  for (size_t i = 0; i < is_shown.size(); ++i) {
    const CoefficientStatus status = result.coefficients[i].status;
    if (is_shown[i] || status == CoefficientStatus::kReference) continue;
    ++hidden;
    zeros += status == CoefficientStatus::kZero;
  }
  if (hidden == 0) return "";
  const std::string of_them =
      zeros == 0 ? "" : StrCat(" (", CountText(zeros), zeros == 1 ? " is 0)" : " are 0)");
  return StrCat("... ", CountText(hidden), " more", of_them, " in ", options.coefficients_file,
                "; --all prints every one");
}

/// The tests of terms to print, in order: all, or those of the largest statistics.
std::vector<bool> ShownTerms(const GlmResult& result, const GlmPrintOptions& options) {
  const size_t count = result.terms.size();
  const auto most = static_cast<size_t>(std::max<int64_t>(options.num_coefficients, 1));
  std::vector<bool> shown(count, options.all || count <= most);
  if (count == 0 || shown[0]) return shown;
  const auto rank = [&](size_t i) {
    const double statistic = result.terms[i].chi_squared / static_cast<double>(result.terms[i].df);
    return std::pair(std::isnan(statistic) ? 0 : -statistic, i);
  };
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  for (size_t i = 0; i < most; ++i) shown[order[i]] = true;
  return shown;
}

Lines TermLines(const GlmResult& result, const GlmPrintOptions& options, int64_t width) {
  const bool has_f = result.dispersion_is_estimated;
  const auto is_tested = [](const GlmTerm& t) { return !std::isnan(t.chi_squared); };
  if (std::none_of(result.terms.begin(), result.terms.end(), is_tested)) return {};
  TextTable table({{"Term", TextTable::Align::kLeft},
                   {"df", TextTable::Align::kRight},
                   {has_f ? "Wald F" : "Wald chi²"},
                   {has_f ? "Pr(>F)" : "Pr(>chi²)"}});
  const std::vector<bool> shown = ShownTerms(result, options);
  for (size_t i = 0; i < shown.size(); ++i) {
    if (!shown[i]) continue;
    const GlmTerm& term = result.terms[i];
    const double statistic =
        has_f ? term.chi_squared / static_cast<double>(term.df) : term.chi_squared;
    const bool has_test = is_tested(term);
    table.AddRow({CutInMiddle(term.label, std::max<int64_t>(width / 4, 12)), CountText(term.df),
                  has_test ? FixedText(statistic, has_f ? 2 : 1) : "NA", PValueText(term.p_value)});
  }
  Lines lines = table.Lines(2);
  const auto hidden = std::count(shown.begin(), shown.end(), false);
  if (hidden > 0) lines.push_back(StrCat("... ", CountText(hidden), " more in terms.csv"));
  return lines;
}

/// "p < 2e-16", "p = 0.01".
std::string EqualsPText(double p) {
  const std::string text = PValueText(p);
  return StrCat("p ", text.starts_with('<') ? "" : "= ", text);
}

Lines FitLines(const GlmResult& result) {
  Lines lines;
  if (!std::isnan(result.sigma)) {
    lines.push_back(StrCat("Residual standard error ", SignificantText(result.sigma, 4, 8), " on ",
                           CountText(result.residual_df), " df"));
    lines.push_back(StrCat("R² ", FixedText(result.r2, 4), "   adjusted R² ",
                           FixedText(result.adjusted_r2, 4)));
    if (!std::isnan(result.f_statistic)) {
      lines.push_back(StrCat("F ", SignificantText(result.f_statistic, 6, 2), " on ",
                             CountText(result.f_df1), " and ", CountText(result.f_df2), " df, ",
                             EqualsPText(result.f_p_value)));
    }
  } else {
    TextTable deviances({{"", TextTable::Align::kLeft}, {""}, {"", TextTable::Align::kRight}});
    const auto add = [&](const char* name, double deviance, int64_t df) {
      if (std::isnan(deviance)) return;
      deviances.AddRow({name, FixedText(deviance, deviance < 1000 ? 3 : 1),
                        df > 0 ? StrCat("on ", CountText(df), " df") : ""});
    };
    add("Null deviance", result.null_deviance, result.null_df);
    add("Residual deviance", result.residual_deviance, result.residual_df);
    for (std::string& line : deviances.Lines(2)) {
      if (!line.empty()) lines.push_back(std::move(line));
    }
  }
  Lines criteria;
  const auto add = [&criteria](const char* name, double value, int decimals) {
    if (!std::isnan(value)) criteria.push_back(StrCat(name, " ", FixedText(value, decimals)));
  };
  add("AIC", result.aic, 1);
  add("BIC", result.bic, 1);
  if (!criteria.empty()) lines.push_back(Join(criteria, "   "));
  criteria.clear();
  add("Log-likelihood", result.log_likelihood, 1);
  add("McFadden R²", result.mcfadden_r2, 4);
  if (!criteria.empty()) lines.push_back(Join(criteria, "   "));
  const std::string dispersion = SignificantText(result.dispersion, 4, 8);
  if (result.dispersion_is_estimated) {
    lines.push_back(StrCat("Dispersion ", dispersion, ", estimated"));
  } else {
    lines.push_back("Dispersion 1, as the family has it");
  }
  return lines;
}

/// Two blocks side by side, or below each other where the width is not enough.
Lines Beside(Lines left, Lines right, int64_t width) {
  constexpr int64_t kGap = 6;
  int64_t left_width = 0, right_width = 0;
  for (const std::string& line : left) left_width = std::max(left_width, WidthOf(line));
  for (const std::string& line : right) right_width = std::max(right_width, WidthOf(line));
  if (!left.empty() && left_width + kGap + right_width > width) {
    left.emplace_back();
    left.insert(left.end(), right.begin(), right.end());
    return left;
  }
  if (left.empty()) return right;
  left.resize(std::max(left.size(), right.size()));
  for (size_t i = 0; i < right.size(); ++i) {
    left[i] = StrCat(Padded(left[i], left_width + kGap), right[i]);
  }
  return left;
}

std::string CalibrationText(const GlmMetrics& m) {
  if (std::isnan(m.calibration_slope)) return "";
  const double intercept = m.calibration_intercept;
  // The sign of what is shown as 0 is noise.
  return StrCat(FixedText(std::abs(intercept) < 0.0005 ? 0 : intercept, 3),
                m.calibration_slope < 0 ? " - " : " + ",
                FixedText(std::abs(m.calibration_slope), 3), " x");
}

/// A measure that the table of metrics has, and its texts, one for each set of data.
struct Measure {
  std::string header;
  std::vector<std::string> texts;
};

std::vector<Measure> MeasuresOf(const GlmResult& result) {
  struct Number {
    const char* header;
    double GlmMetrics::*value;
    int decimals;  // significant digits where the unit is the data's
    bool is_of_data = false;
  };
  constexpr Number kNumbers[] = {
      {"log-loss", &GlmMetrics::log_loss, 5}, {"AUC", &GlmMetrics::auc, 4},
      {"accuracy", &GlmMetrics::accuracy, 4}, {"precision", &GlmMetrics::precision, 3},
      {"recall", &GlmMetrics::recall, 3},     {"Brier", &GlmMetrics::brier, 4},
      {"RMSE", &GlmMetrics::rmse, 5, true},   {"MAE", &GlmMetrics::mae, 5, true}};
  std::vector<Measure> measures;
  for (const Number& number : kNumbers) {
    Measure measure = {number.header, {}};
    bool is_there = false;
    for (const GlmMetrics& m : result.metrics) {
      const double value = m.*number.value;
      is_there |= !std::isnan(value);
      measure.texts.push_back(number.is_of_data ? SignificantText(value, number.decimals, 8)
                                                : FixedText(value, number.decimals));
    }
    if (is_there) measures.push_back(std::move(measure));
  }
  if (measures.empty()) return {};
  Measure calibration = {"calibration", {}}, rows = {"rows", {}};
  bool has_calibration = false;
  for (const GlmMetrics& m : result.metrics) {
    calibration.texts.push_back(CalibrationText(m));
    has_calibration |= !calibration.texts.back().empty();
    rows.texts.push_back(CountText(m.rows));
  }
  if (has_calibration) measures.push_back(std::move(calibration));
  measures.push_back(std::move(rows));
  return measures;
}

Lines MetricLines(const GlmResult& result, int64_t width) {
  constexpr int64_t kGap = 2;
  constexpr auto kLeft = TextTable::Align::kLeft, kRight = TextTable::Align::kRight;
  const std::vector<Measure> measures = MeasuresOf(result);
  if (measures.empty()) return {};
  std::vector<TextTable::Column> across = {{"", kLeft}}, down = {{"", kLeft}};
  for (const Measure& measure : measures) across.push_back({measure.header, kRight});
  for (const GlmMetrics& m : result.metrics) down.push_back({m.data, kRight});
  TextTable table(std::move(across));
  for (size_t i = 0; i < result.metrics.size(); ++i) {
    std::vector<std::string> cells = {result.metrics[i].data};
    for (const Measure& measure : measures) cells.push_back(measure.texts[i]);
    table.AddRow(std::move(cells));
  }
  if (table.Width(kGap) > width) {
    table = TextTable(std::move(down));
    for (const Measure& measure : measures) {
      std::vector<std::string> cells = {measure.header};
      cells.insert(cells.end(), measure.texts.begin(), measure.texts.end());
      table.AddRow(std::move(cells));
    }
  }
  Lines lines = table.Lines(kGap);
  for (const GlmMetrics& m : result.metrics) {
    if (m.rows_without_prediction == 0) continue;
    lines.push_back(
        StrCat(m.data, ": ", RowsText(m.rows_without_prediction), " without a prediction"));
  }
  return lines;
}

}  // namespace

std::string FormatGlm(const GlmResult& result, const GlmPrintOptions& options) {
  constexpr int64_t kLeastWidth = 72;
  const int64_t width = std::max(options.width, kLeastWidth);
  const std::vector<size_t> shown =
      ShownCoefficients(result, options.all, options.num_coefficients);
  Lines coefficients = CoefficientLines(result, shown, width);
  const std::string hidden = HiddenText(result, shown, options);
  if (!hidden.empty()) coefficients.push_back(hidden);
  std::string text;
  for (const Lines& block : {HeaderLines(result, width), coefficients,
                             Beside(TermLines(result, options, width), FitLines(result), width),
                             MetricLines(result, width)}) {
    if (block.empty()) continue;
    StrAppend(&text, text.empty() ? "" : "\n", Join(block, "\n"), "\n");
  }
  return text;
}

}  // namespace tenon
