// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon {

/// The version of this program, which is that of the project in CMakeLists.txt.
inline constexpr char kProgramVersion[] = "0.1.0";

}  // namespace tenon
