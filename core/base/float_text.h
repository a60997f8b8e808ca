// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon {

/// A number as TensorFlow writes it: with six digits (doubles fifteen), or where these are those of
/// another number too, with nine (seventeen), which tell it from all others.
std::string FloatText(float v);
std::string FloatText(double v);

}  // namespace tenon
