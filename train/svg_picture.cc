// SPDX-License-Identifier: Apache-2.0
#include "train/svg_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "core/base/strings.h"

namespace tenon {
namespace {

/// Text as XML has it, without the characters that XML has not.
std::string EscapedForXml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace

std::vector<double> PlotAxis::Ticks(double step) const {
  std::vector<double> ticks;
  const auto first = static_cast<int64_t>(std::ceil(low / step - 1e-9));
  const auto last = static_cast<int64_t>(std::floor(high / step + 1e-9));
  for (int64_t i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

double RoundPlotStep(double range) {
  constexpr int kTicks = 5;
  const double raw = std::max(range, 1e-12) / kTicks;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    // A step that is but a rounding too small is taken.
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string TickText(double tick) { return absl::StrFormat("%.10g", std::round(tick * 1e9) / 1e9); }

SvgPicture::SvgPicture(double width, double height)
    : svg_(absl::StrFormat(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
          "font-family=\"sans-serif\" "
          "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
          width, height)) {}

void SvgPicture::AddLine(double x1, double y1, double x2, double y2, const char* colour) {
  StrAppend(&svg_, absl::StrFormat(
                       "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
                       x1, y1, x2, y2, colour));
}

void SvgPicture::AddText(double x, double y, const char* anchor, const char* colour,
                         std::string_view text) {
  StrAppend(&svg_, absl::StrFormat(
                       "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", x,
                       y, anchor, colour, EscapedForXml(text)));
}

void SvgPicture::AddCurve(const std::vector<std::pair<double, double>>& places,
                          const char* colour) {
  std::string points;
  for (const auto& [x, y] : places) StrAppend(&points, absl::StrFormat("%.1f,%.1f ", x, y));
  StrAppend(&svg_, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"", colour, "\" points=\"",
            points, "\"/>\n");
}

void SvgPicture::AddMark(double x, double y, const char* colour) {
  StrAppend(&svg_, absl::StrFormat("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x, y,
                                   colour));
}

std::string SvgPicture::Finish() const { return svg_ + "</svg>\n"; }

}  // namespace tenon
