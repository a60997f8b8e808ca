// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Plots as SVG: a white page, axes with round numbers, lines, marks and text.

namespace tenon {

inline constexpr const char *kPlotInk = "#333", *kPlotGrid = "#ddd", *kPlotRed = "#b5452c",
                            *kPlotBlue = "#1f6f8b";

/// Maps [low, high] to places on the picture.
struct PlotAxis {
  double low, high, from, to;
  double At(double value) const {
    return from + (to - from) * (high > low ? (value - low) / (high - low) : 0.5);
  }
  /// The multiples of `step` on it.
  std::vector<double> Ticks(double step) const;
};

/// A distance of 1, 2 or 5 times a power of ten, of which about five are a range.
double RoundPlotStep(double range);
/// "0.05", "2000": a tick without what rounding leaves.
std::string TickText(double tick);

/// A picture under way: what is added later lies above what was before. Texts may have any
/// characters.
class SvgPicture {
 public:
  SvgPicture(double width, double height);

  void AddLine(double x1, double y1, double x2, double y2, const char* colour);
  /// `anchor` is "start", "middle" or "end": what of the text is at x.
  void AddText(double x, double y, const char* anchor, const char* colour, std::string_view text);
  void AddCurve(const std::vector<std::pair<double, double>>& places, const char* colour);
  void AddMark(double x, double y, const char* colour);

  /// The file's content.
  std::string Finish() const;

 private:
  std::string svg_;
};

}  // namespace tenon
