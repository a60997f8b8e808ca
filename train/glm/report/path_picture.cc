// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/path_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "train/glm/text/number_text.h"
#include "train/svg_picture.h"

namespace tenon {
namespace {

constexpr double kPathWidth = 720, kPathHeight = 480, kPathLeft = 60, kNamesWidth = 190;
constexpr double kPathTop = 76, kPathBottom = 48, kNameHeight = 13;
constexpr size_t kNamedCurves = 12;
constexpr const char* kOtherCurve = "#bbb";
constexpr std::array<const char*, 6> kCurveColours = {kPlotBlue, kPlotRed,  "#4d8b3a",
                                                      "#8a5aa8", "#b58a1e", "#333"};

/// A coefficient, and where its curve ends.
struct PathCurve {
  const GlmCoefficient* coefficient;
  size_t index;
  double end;
};

std::vector<PathCurve> CurvesOf(const GlmResult& result) {
  std::vector<PathCurve> curves;
  size_t index = 0;
  for (const GlmCoefficient& c : result.coefficients) {
    if (c.status != CoefficientStatus::kOk && c.status != CoefficientStatus::kZero) continue;
    const size_t own = index++;
    if (c.is_intercept()) continue;
    curves.push_back({&c, own, result.path.back().standardised[own]});
  }
  std::sort(curves.begin(), curves.end(), [](const PathCurve& a, const PathCurve& b) {
    const double size_a = std::abs(a.end), size_b = std::abs(b.end);
    return size_a != size_b ? size_a > size_b : a.index < b.index;
  });
  return curves;
}

/// The places of names, which are moved down until none lies on another.
std::vector<double> NamePlaces(std::vector<std::pair<double, size_t>> wanted, double bottom) {
  std::vector<double> places(wanted.size());
  std::sort(wanted.begin(), wanted.end());
  double least = 0;
  for (const auto& [y, which] : wanted) {
    places[which] = std::max(y, least);
    least = places[which] + kNameHeight;
  }
  // Names that were moved out of the picture go up again.
  double most = bottom;
  for (size_t i = wanted.size(); i-- > 0;) {
    double& place = places[wanted[i].second];
    place = std::min(place, most);
    most = place - kNameHeight;
  }
  return places;
}

}  // namespace

std::string PathSvg(const GlmResult& result) {
  if (result.path.size() < 2 || !(result.path.back().lambda > 0)) return "";
  const std::vector<PathCurve> curves = CurvesOf(result);
  double low = 0, high = 0;
  for (const GlmPathPoint& point : result.path) {
    for (const PathCurve& curve : curves) {
      low = std::min(low, point.standardised[curve.index]);
      high = std::max(high, point.standardised[curve.index]);
    }
  }
  if (!std::isfinite(high - low)) return "";
  const double step = RoundPlotStep(high > low ? high - low : 1);
  const PlotAxis x{-std::log10(result.path.front().lambda), -std::log10(result.path.back().lambda),
                   kPathLeft, kPathWidth - kNamesWidth};
  const PlotAxis y{std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step,
                   kPathHeight - kPathBottom, kPathTop};
  SvgPicture picture(kPathWidth, kPathHeight);
  picture.AddText((x.from + x.to) / 2, 20, "middle", kPlotInk, "Coefficients under less penalty");
  picture.AddText((x.from + x.to) / 2, kPathHeight - 10, "middle", kPlotInk, "lambda");
  picture.AddText(8, kPathTop - 28, "start", kPlotInk,
                  "coefficients as the penalty counts them; above: how many are not 0");
  for (const double tick : y.Ticks(step)) {
    const bool is_zero = std::abs(tick) < step / 2;
    picture.AddLine(x.from, y.At(tick), x.to, y.At(tick), is_zero ? kPlotInk : kPlotGrid);
    picture.AddText(x.from - 8, y.At(tick) + 4, "end", kPlotInk, TickText(tick));
  }
  for (const double tick : x.Ticks(1)) {
    picture.AddLine(x.At(tick), y.from, x.At(tick), y.to, kPlotGrid);
    picture.AddText(x.At(tick), y.from + 18, "middle", kPlotInk, StrCat("1e", -std::round(tick)));
    const auto point =
        std::find_if(result.path.begin(), result.path.end(),
                     [&](const GlmPathPoint& p) { return -std::log10(p.lambda) >= tick - 1e-9; });
    if (point == result.path.end()) continue;
    picture.AddText(x.At(tick), y.to - 6, "middle", kPlotInk, CountText(point->nonzero));
  }
  const size_t named = std::min(curves.size(), kNamedCurves);
  std::vector<std::pair<double, size_t>> ends;
  for (size_t i = 0; i < named; ++i) ends.emplace_back(y.At(curves[i].end) + 4, i);
  const std::vector<double> names = NamePlaces(ends, y.from);
  for (size_t i = curves.size(); i-- > 0;) {
    const char* const colour = i < named ? kCurveColours[i % kCurveColours.size()] : kOtherCurve;
    std::vector<std::pair<double, double>> places;
    for (const GlmPathPoint& point : result.path) {
      places.emplace_back(x.At(-std::log10(point.lambda)),
                          y.At(point.standardised[curves[i].index]));
    }
    picture.AddCurve(places, colour);
    if (i >= named) continue;
    const GlmCoefficient& c = *curves[i].coefficient;
    constexpr int64_t kMostWidth = 26;
    picture.AddText(
        x.to + 8, names[i], "start", colour,
        CutInMiddle(c.level.empty() ? c.term : StrCat(c.term, " ", c.level), kMostWidth));
  }
  return picture.Finish();
}

}  // namespace tenon
