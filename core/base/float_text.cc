// SPDX-License-Identifier: Apache-2.0
#include "core/base/float_text.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace tenon {
namespace {

template <typename T>
std::string TextOfFloat(T v) {
  constexpr bool kWide = std::is_same_v<T, double>;
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", kWide ? 15 : 6, static_cast<double>(v));
  if (std::isfinite(v) && static_cast<T>(std::strtod(text, nullptr)) != v) {
    std::snprintf(text, sizeof(text), "%.*g", kWide ? 17 : 9, static_cast<double>(v));
  }
  return text;
}

}  // namespace

std::string FloatText(float v) { return TextOfFloat(v); }
std::string FloatText(double v) { return TextOfFloat(v); }

}  // namespace tenon
