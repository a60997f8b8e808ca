// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon {

/// The constants of Selu (Klambauer et al., Self-Normalizing Neural Networks, 2017): scale, and
/// scale * alpha.
inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluScaleAlpha = kSeluScale * 1.6732632423543772848170429916717;

}  // namespace tenon
