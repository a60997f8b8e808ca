// SPDX-License-Identifier: Apache-2.0
#include "tools/learning_curve.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/base/strings.h"

namespace tenon::tools {
namespace {

constexpr double kWidth = 640, kHeight = 360, kLeft = 60, kRight = 60, kTop = 48, kBottom = 44;
constexpr int kTicks = 5;
/// With more points than this, marks would hide the line.
constexpr size_t kMostMarks = 60;
constexpr const char *kLossColour = "#b5452c", *kAccuracyColour = "#1f6f8b", *kInk = "#333";

/// Maps [low, high] to places on the picture.
struct Axis {
  double low, high, from, to;
  double At(double value) const {
    return from + (to - from) * (high > low ? (value - low) / (high - low) : 0.5);
  }
};

/// A distance of 1, 2 or 5 times a power of ten, of which about kTicks are a range.
double RoundStep(double range) {
  const double raw = std::max(range, 1e-12) / kTicks;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    // What is but a rounding away is taken.
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// The multiples of `step` from `low` to `high`.
std::vector<double> Ticks(double low, double high, double step) {
  std::vector<double> ticks;
  const auto first = static_cast<int64_t>(std::ceil(low / step - 1e-9));
  const auto last = static_cast<int64_t>(std::floor(high / step + 1e-9));
  for (int64_t i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::string Line(double x1, double y1, double x2, double y2, const char* colour) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
                         x1, y1, x2, y2, colour);
}

std::string Text(double x, double y, const char* anchor, const char* colour,
                 const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n",
                         x, y, anchor, colour, text);
}

/// "0.05", "2000": without what rounding leaves.
std::string NumberOf(double tick) { return absl::StrFormat("%.10g", std::round(tick * 1e9) / 1e9); }

std::string Curve(const std::vector<LearningPoint>& points, const Axis& x, const Axis& y,
                  double LearningPoint::*value, const char* colour) {
  std::string places, marks;
  for (const LearningPoint& p : points) {
    const double at_x = x.At(p.step), at_y = y.At(p.*value);
    StrAppend(&places, absl::StrFormat("%.1f,%.1f ", at_x, at_y));
    StrAppend(&marks, absl::StrFormat("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                                      at_x, at_y, colour));
  }
  const std::string line = StrCat("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"", colour,
                                  "\" points=\"", places, "\"/>\n");
  return line + (points.size() <= kMostMarks ? marks : "");
}

}  // namespace

std::string LearningCurveSvg(const std::string& title, const std::vector<LearningPoint>& points) {
  double most = 0, last = 0, least = 1;
  for (const LearningPoint& p : points) {
    most = std::max(most, p.loss);
    last = std::max(last, p.step);
    least = std::min(least, p.accuracy);
  }
  const double loss_step = RoundStep(std::max(most, 1e-9));
  const double accuracy_step = RoundStep(std::max(1 - least, 0.05));
  const double step_step = std::max(RoundStep(std::max(last, 1.0)), 1.0);
  const Axis x{0, std::max(last, 1.0), kLeft, kWidth - kRight};
  const Axis loss{0, std::ceil(std::max(most, 1e-9) / loss_step - 1e-9) * loss_step,
                  kHeight - kBottom, kTop};
  const double lowest = std::floor(std::min(least, 1 - accuracy_step) / accuracy_step + 1e-9);
  const Axis accuracy{std::max(0.0, lowest * accuracy_step), 1, kHeight - kBottom, kTop};
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  StrAppend(&svg, Text(kWidth / 2, 20, "middle", kInk, title));
  for (const double tick : Ticks(loss.low, loss.high, loss_step)) {
    const double y = loss.At(tick);
    StrAppend(&svg, Line(kLeft, y, kWidth - kRight, y, "#ddd"));
    StrAppend(&svg, Text(kLeft - 8, y + 4, "end", kLossColour, NumberOf(tick)));
  }
  for (const double tick : Ticks(accuracy.low, accuracy.high, accuracy_step)) {
    const double y = accuracy.At(tick);
    StrAppend(&svg, Line(kWidth - kRight, y, kWidth - kRight + 4, y, kAccuracyColour));
    StrAppend(&svg, Text(kWidth - kRight + 8, y + 4, "start", kAccuracyColour, NumberOf(tick)));
  }
  for (const double tick : Ticks(x.low, x.high, step_step)) {
    StrAppend(&svg, Line(x.At(tick), kHeight - kBottom, x.At(tick), kHeight - kBottom + 4, kInk));
    StrAppend(&svg, Text(x.At(tick), kHeight - kBottom + 18, "middle", kInk, NumberOf(tick)));
  }
  StrAppend(&svg, Line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, kInk));
  StrAppend(&svg, Text(kLeft - 8, kTop - 12, "start", kLossColour, "loss in training"));
  StrAppend(&svg,
            Text(kWidth - kRight + 8, kTop - 12, "end", kAccuracyColour, "accuracy in validation"));
  StrAppend(&svg, Text(kWidth / 2, kHeight - 8, "middle", kInk, "steps"));
  return StrCat(svg, Curve(points, x, loss, &LearningPoint::loss, kLossColour),
                Curve(points, x, accuracy, &LearningPoint::accuracy, kAccuracyColour), "</svg>\n");
}

}  // namespace tenon::tools
