// SPDX-License-Identifier: Apache-2.0
#include "tools/learning_curve.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/strings.h"

namespace tenon::tools {
namespace {

constexpr double kWidth = 640, kHeight = 360, kLeft = 60, kRight = 60, kTop = 40, kBottom = 44;

/// Maps [low, high] to places on the picture.
struct Axis {
  double low, high, from, to;
  double At(double value) const {
    return from + (to - from) * (high > low ? (value - low) / (high - low) : 0.5);
  }
};

std::string Line(double x1, double y1, double x2, double y2, const char* colour) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
                         x1, y1, x2, y2, colour);
}

std::string Text(double x, double y, const char* anchor, const char* colour,
                 const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n",
                         x, y, anchor, colour, text);
}

}  // namespace

std::string LearningCurveSvg(const std::string& title, const std::vector<LearningPoint>& points) {
  constexpr const char *kLossColour = "#b5452c", *kAccuracyColour = "#1f6f8b", *kInk = "#333";
  double most = 0, last = 0, least = 1;
  for (const LearningPoint& p : points) {
    most = std::max(most, p.loss);
    last = std::max(last, p.step);
    least = std::min(least, p.accuracy);
  }
  // Whole tenths, so that curves that are all near 1 can be told apart.
  least = std::max(0.0, static_cast<int>(least * 10) / 10.0);
  const Axis x{0, std::max(last, 1.0), kLeft, kWidth - kRight};
  const Axis loss{0, std::max(most, 1e-9), kHeight - kBottom, kTop};
  const Axis accuracy{least, 1, kHeight - kBottom, kTop};
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  StrAppend(&svg, Text(kWidth / 2, 22, "middle", kInk, title));
  for (int i = 0; i <= 4; ++i) {
    const double part = i / 4.0, y = loss.At(loss.high * part);
    StrAppend(&svg, Line(kLeft, y, kWidth - kRight, y, "#ddd"));
    StrAppend(&svg, Text(kLeft - 6, y + 4, "end", kLossColour,
                         absl::StrFormat("%.2g", loss.high * part)));
    StrAppend(&svg, Text(kWidth - kRight + 6, y + 4, "start", kAccuracyColour,
                         absl::StrFormat("%.3g", least + (1 - least) * part)));
    StrAppend(&svg, Text(x.At(x.high * part), kHeight - kBottom + 18, "middle", kInk,
                         absl::StrFormat("%.0f", x.high * part)));
  }
  StrAppend(&svg, Text(kLeft, kTop - 8, "middle", kLossColour, "loss"));
  StrAppend(&svg, Text(kWidth - kRight, kTop - 8, "middle", kAccuracyColour, "accuracy"));
  StrAppend(&svg, Text(kWidth / 2, kHeight - 8, "middle", kInk, "steps"));
  const auto curve = [&](const Axis& axis, double LearningPoint::*value, const char* colour) {
    std::string places;
    for (const LearningPoint& p : points) {
      StrAppend(&places, absl::StrFormat("%.1f,%.1f ", x.At(p.step), axis.At(p.*value)));
    }
    StrAppend(&svg, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"", colour, "\" points=\"",
              places, "\"/>\n");
  };
  curve(loss, &LearningPoint::loss, kLossColour);
  curve(accuracy, &LearningPoint::accuracy, kAccuracyColour);
  return svg + "</svg>\n";
}

}  // namespace tenon::tools
