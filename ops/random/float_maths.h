// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "ops/maths.h"

// The C library's (glibc's) logf, sinf and cosf, step by step, for devices that have none of their
// own with the same bits, and for vectors of the host: normal values are made with them. After
// Szabolcs Nagy's and Wilco Dijkstra's "Optimized Routines" (Arm), which glibc took over. For the
// arguments that ops/random/draws.h makes, and equal to the library's in all of them:
// random_maths_test compares.

namespace tenon::float_maths {

/// log(x) of a normal, positive x.
TENON_HD inline float LogOf(float x) {
  static constexpr double kTable[16][2] = {
      {0x1.661ec79f8f3bep+0, -0x1.57bf7808caadep-2}, {0x1.571ed4aaf883dp+0, -0x1.2bef0a7c06ddbp-2},
      {0x1.49539f0f010bp+0, -0x1.01eae7f513a67p-2},  {0x1.3c995b0b80385p+0, -0x1.b31d8a68224e9p-3},
      {0x1.30d190c8864a5p+0, -0x1.6574f0ac07758p-3}, {0x1.25e227b0b8eap+0, -0x1.1aa2bc79c81p-3},
      {0x1.1bb4a4a1a343fp+0, -0x1.a4e76ce8c0e5ep-4}, {0x1.12358f08ae5bap+0, -0x1.1973c5a611cccp-4},
      {0x1.0953f419900a7p+0, -0x1.252f438e10c1ep-5}, {0x1p+0, 0x0p+0},
      {0x1.e608cfd9a47acp-1, 0x1.aa5aa5df25984p-5},  {0x1.ca4b31f026aap-1, 0x1.c5e53aa362eb4p-4},
      {0x1.b2036576afce6p-1, 0x1.526e57720db08p-3},  {0x1.9c2d163a1aa2dp-1, 0x1.bc2860d22477p-3},
      {0x1.886e6037841edp-1, 0x1.1058bc8a07ee1p-2},  {0x1.767dcf5534862p-1, 0x1.4043057b6ee09p-2}};
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  constexpr uint32_t kOffset = 0x3f330000;
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (bits == 0x3f800000) return 0;
  // x = 2^k z, with z in [0.7, 1.4) near 1 / kTable[i][0], whose logarithm is kTable[i][1].
  const uint32_t from = bits - kOffset;
  const int i = static_cast<int>(from >> 19) % 16;
  const int k = static_cast<int32_t>(from) >> 23;
  const double z = std::bit_cast<float>(bits - (from & 0xff800000u));
  const double r = std::fma(z, kTable[i][0], -1.0);
  const double y0 = std::fma(static_cast<double>(k), kLn2, kTable[i][1]);
  const double r2 = r * r;
  double y = std::fma(0x1.5575b0be00b6ap-2, r, -0x1.ffffef20a4123p-2);
  y = std::fma(-0x1.00ea348b88334p-2, r2, y);
  return static_cast<float>(std::fma(y, r2, y0 + r));
}

/// The sine of x in [0, 120), or with `quarter` = 1 the cosine.
TENON_HD inline float SinOrCosOf(float x, int quarter) {
  constexpr double kPerHalfPi = 0x1.45F306DC9C883p+23, kHalfPi = 0x1.921FB54442D18p0;
  double y = x;
  int n = 0;
  if (x < 0x1p-12f) return quarter == 0 ? x : 1.0f;
  // As the library compares: by the upper 12 bits.
  if (std::bit_cast<uint32_t>(x) >> 20 >= 0x3f4) {
    n = (static_cast<int32_t>(y * kPerHalfPi) + 0x800000) >> 24;
    y = std::fma(-static_cast<double>(n), kHalfPi, y);
  }
  const double x2 = y * y;
  if (((n ^ quarter) & 1) == 0) {
    if ((n & 3) == 1 || (n & 3) == 2) y = -y;
    const double x3 = y * x2;
    const double s1 = std::fma(x2, -0x1.994eb3774cf24p-13, 0x1.1107605230bc4p-7);
    const double x7 = x3 * x2;
    const double s = std::fma(x3, -0x1.555545995a603p-3, y);
    return static_cast<float>(std::fma(x7, s1, s));
  }
  const double sign = (n & 2) != 0 ? -1 : 1;
  const double x4 = x2 * x2;
  const double c2 = std::fma(x2, sign * 0x1.99343027bf8c3p-16, sign * -0x1.6c087e89a359dp-10);
  const double c1 = std::fma(x2, sign * -0x1.ffffffd0c621cp-2, sign);
  const double x6 = x4 * x2;
  const double c = std::fma(x4, sign * 0x1.55553e1068f19p-5, c1);
  return static_cast<float>(std::fma(x6, c2, c));
}

}  // namespace tenon::float_maths
