// SPDX-License-Identifier: Apache-2.0
#include "tools/learning_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/svg_picture.h"

namespace tenon::tools {
namespace {

constexpr double kWidth = 640, kHeight = 360, kLeft = 60, kRight = 60, kTop = 48, kBottom = 44;
/// With more points than this, marks would hide the line.
constexpr size_t kMostMarks = 60;
constexpr const char *kLossColour = kPlotRed, *kAccuracyColour = kPlotBlue;

void AddPoints(const std::vector<LearningPoint>& points, const PlotAxis& x, const PlotAxis& y,
               double LearningPoint::*value, const char* colour, SvgPicture* picture) {
  std::vector<std::pair<double, double>> places;
  for (const LearningPoint& p : points) places.emplace_back(x.At(p.step), y.At(p.*value));
  picture->AddCurve(places, colour);
  if (points.size() > kMostMarks) return;
  for (const auto& [at_x, at_y] : places) picture->AddMark(at_x, at_y, colour);
}

}  // namespace

std::string LearningCurveSvg(const std::string& title, const std::vector<LearningPoint>& points) {
  double most = 0, last = 0, least = 1;
  for (const LearningPoint& p : points) {
    most = std::max(most, p.loss);
    last = std::max(last, p.step);
    least = std::min(least, p.accuracy);
  }
  const double loss_step = RoundPlotStep(std::max(most, 1e-9));
  const double accuracy_step = RoundPlotStep(std::max(1 - least, 0.05));
  const double step_step = std::max(RoundPlotStep(std::max(last, 1.0)), 1.0);
  const PlotAxis x{0, std::max(last, 1.0), kLeft, kWidth - kRight};
  const PlotAxis loss{0, std::ceil(std::max(most, 1e-9) / loss_step - 1e-9) * loss_step,
                      kHeight - kBottom, kTop};
  const double lowest = std::floor(std::min(least, 1 - accuracy_step) / accuracy_step + 1e-9);
  const PlotAxis accuracy{std::max(0.0, lowest * accuracy_step), 1, kHeight - kBottom, kTop};
  SvgPicture picture(kWidth, kHeight);
  picture.AddText(kWidth / 2, 20, "middle", kPlotInk, title);
  for (const double tick : loss.Ticks(loss_step)) {
    const double y = loss.At(tick);
    picture.AddLine(kLeft, y, kWidth - kRight, y, kPlotGrid);
    picture.AddText(kLeft - 8, y + 4, "end", kLossColour, TickText(tick));
  }
  for (const double tick : accuracy.Ticks(accuracy_step)) {
    const double y = accuracy.At(tick);
    picture.AddLine(kWidth - kRight, y, kWidth - kRight + 4, y, kAccuracyColour);
    picture.AddText(kWidth - kRight + 8, y + 4, "start", kAccuracyColour, TickText(tick));
  }
  for (const double tick : x.Ticks(step_step)) {
    picture.AddLine(x.At(tick), kHeight - kBottom, x.At(tick), kHeight - kBottom + 4, kPlotInk);
    picture.AddText(x.At(tick), kHeight - kBottom + 18, "middle", kPlotInk, TickText(tick));
  }
  picture.AddLine(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, kPlotInk);
  picture.AddText(kLeft - 8, kTop - 12, "start", kLossColour, "loss in training");
  picture.AddText(kWidth - kRight + 8, kTop - 12, "end", kAccuracyColour, "accuracy in validation");
  picture.AddText(kWidth / 2, kHeight - 8, "middle", kPlotInk, "steps");
  AddPoints(points, x, loss, &LearningPoint::loss, kLossColour, &picture);
  AddPoints(points, x, accuracy, &LearningPoint::accuracy, kAccuracyColour, &picture);
  return picture.Finish();
}

}  // namespace tenon::tools
