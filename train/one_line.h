// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tenon {

/// The message of an error as one line, for notices: the errors of steps name the task that they
/// are from in a line of its own, before the reason. Without the lines that TensorFlow's client
/// reads the failing node from.
std::string OneLine(std::string_view message);

}  // namespace tenon
