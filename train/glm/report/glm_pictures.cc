// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/glm_pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/strings.h"
#include "train/glm/report/coefficient_table.h"
#include "train/glm/text/number_text.h"
#include "train/svg_picture.h"

namespace tenon {
namespace {

constexpr double kSize = 420, kLeft = 60, kRight = 20, kTop = 56, kBottom = 48;
/// The colours of the sets of data, which come in the order of the fit and others.
constexpr std::array<const char*, 2> kColours = {kPlotBlue, kPlotRed};

const char* ColourOf(size_t i) { return kColours[i % kColours.size()]; }

/// A square with both axes from 0 to `most`, a diagonal and the axes' names.
struct UnitSquare {
  UnitSquare(std::string_view title, std::string_view x_name, std::string_view y_name, double most)
      : picture(kSize, kSize),
        x{0, most, kLeft, kSize - kRight},
        y{0, most, kSize - kBottom, kTop} {
    const double step = RoundPlotStep(most);
    for (const double tick : x.Ticks(step)) {
      picture.AddLine(x.At(tick), y.from, x.At(tick), y.to, kPlotGrid);
      picture.AddLine(x.from, y.At(tick), x.to, y.At(tick), kPlotGrid);
      picture.AddText(x.At(tick), y.from + 18, "middle", kPlotInk, TickText(tick));
      picture.AddText(x.from - 8, y.At(tick) + 4, "end", kPlotInk, TickText(tick));
    }
    picture.AddLine(x.from, y.from, x.to, y.to, kPlotInk);
    picture.AddLine(x.from, y.from, x.to, y.from, kPlotInk);
    picture.AddText((x.from + x.to) / 2, 20, "middle", kPlotInk, title);
    picture.AddText((x.from + x.to) / 2, kSize - 10, "middle", kPlotInk, x_name);
    picture.AddText(8, kTop - 10, "start", kPlotInk, y_name);
  }

  /// A line of the legend, from the bottom up.
  void AddLegend(size_t line, const char* colour, std::string_view text) {
    picture.AddText(x.to - 8, y.from - 10 - 16 * static_cast<double>(line), "end", colour, text);
  }

  SvgPicture picture;
  PlotAxis x, y;
};

/// The name of a coefficient beside its bar.
std::string LabelOf(const GlmCoefficient& c) {
  constexpr int64_t kMostWidth = 28;
  return CutInMiddle(c.level.empty() ? c.term : StrCat(c.term, " ", c.level), kMostWidth);
}

}  // namespace

std::string RocSvg(const GlmResult& result) {
  UnitSquare square("ROC curve", "false positives, share of the negatives",
                    "true positives, share of the positives", 1);
  size_t curves = 0;
  for (const GlmMetrics& m : result.metrics) {
    if (!m.histogram) continue;
    const std::vector<RocPoint> curve = RocCurve(*m.histogram);
    if (curve.empty()) continue;
    std::vector<std::pair<double, double>> places;
    for (const RocPoint& p : curve) {
      places.emplace_back(square.x.At(p.false_positive_rate), square.y.At(p.true_positive_rate));
    }
    const double auc = std::isnan(m.auc) ? ScoresOf(*m.histogram).auc : m.auc;
    square.picture.AddCurve(places, ColourOf(curves));
    square.AddLegend(curves, ColourOf(curves), absl::StrFormat("%s: AUC %.4f", m.data, auc));
    ++curves;
  }
  return curves == 0 ? "" : square.picture.Finish();
}

std::string CalibrationSvg(const GlmResult& result) {
  struct Groups {
    const GlmMetrics* metrics;
    std::vector<CalibrationBin> bins;
  };
  std::vector<Groups> all;
  double most = 0;
  for (const GlmMetrics& m : result.metrics) {
    if (!m.histogram) continue;
    Groups groups = {&m, CalibrationBins(*m.histogram)};
    for (const CalibrationBin& bin : groups.bins) {
      most = std::max({most, bin.predicted, bin.upper});
    }
    if (!groups.bins.empty()) all.push_back(std::move(groups));
  }
  if (all.empty()) return "";
  // Rare events are all in one corner of the unit square.
  const double step = RoundPlotStep(most);
  most = std::min(1.0, std::ceil(most / step - 1e-9) * step);
  UnitSquare square("Calibration", "predicted probability",
                    "share of positives, with its interval of 95 %", most);
  for (size_t i = 0; i < all.size(); ++i) {
    for (const CalibrationBin& bin : all[i].bins) {
      const double x = square.x.At(bin.predicted);
      square.picture.AddLine(x, square.y.At(bin.lower), x, square.y.At(bin.upper), ColourOf(i));
      square.picture.AddMark(x, square.y.At(bin.observed), ColourOf(i));
    }
    const GlmMetrics& m = *all[i].metrics;
    std::string legend = m.data;
    if (!std::isnan(m.calibration_slope)) {
      const double intercept = std::round(m.calibration_intercept * 1000) / 1000;
      // The sum makes a negative zero a positive one.
      StrAppend(&legend,
                absl::StrFormat(": logit %.3f + %.3f x", intercept + 0.0, m.calibration_slope));
    }
    square.AddLegend(i, ColourOf(i), legend);
  }
  return square.picture.Finish();
}

std::string CoefficientsSvg(const GlmResult& result) {
  constexpr int64_t kMost = 40;
  constexpr double kWidth = 640, kNames = 220, kLine = 18;
  std::vector<const GlmCoefficient*> shown;
  for (const size_t i : ShownCoefficients(result, false, kMost)) {
    const GlmCoefficient& c = result.coefficients[i];
    if (c.status == CoefficientStatus::kOk && !c.is_intercept()) shown.push_back(&c);
  }
  if (shown.empty()) return "";
  const bool has_intervals = !std::isnan(shown[0]->lower);
  const bool has_effects = !has_intervals && !std::isnan(shown[0]->standardised);
  const auto value_of = [has_effects](const GlmCoefficient& c) {
    return has_effects ? c.standardised : c.estimate;
  };
  double low = 0, high = 0;
  for (const GlmCoefficient* c : shown) {
    for (const double value : {value_of(*c), c->lower, c->upper}) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  const double step = RoundPlotStep(high - low);
  const double height = kTop + kBottom + kLine * static_cast<double>(shown.size());
  const PlotAxis x{std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step,
                   kNames, kWidth - kRight};
  SvgPicture picture(kWidth, height);
  const std::string title =
      has_intervals
          ? absl::StrFormat("Estimates and their intervals of %.4g %%", 100 * result.level)
      : has_effects ? "Effects of one standard deviation"
                    : "Estimates";
  picture.AddText(kWidth / 2, 20, "middle", kPlotInk, title);
  const double bottom = height - kBottom;
  for (const double tick : x.Ticks(step)) {
    const bool is_zero = std::abs(tick) < step / 2;
    picture.AddLine(x.At(tick), kTop, x.At(tick), bottom, is_zero ? kPlotInk : kPlotGrid);
    picture.AddText(x.At(tick), bottom + 18, "middle", kPlotInk, TickText(tick));
  }
  for (size_t i = 0; i < shown.size(); ++i) {
    const GlmCoefficient& c = *shown[i];
    const double y = kTop + kLine * (static_cast<double>(i) + 0.5);
    picture.AddText(kNames - 10, y + 4, "end", kPlotInk, LabelOf(c));
    if (std::isfinite(c.lower) && std::isfinite(c.upper)) {
      picture.AddLine(x.At(c.lower), y, x.At(c.upper), y, kPlotBlue);
    }
    if (std::isfinite(value_of(c))) picture.AddMark(x.At(value_of(c)), y, kPlotBlue);
  }
  return picture.Finish();
}

}  // namespace tenon
