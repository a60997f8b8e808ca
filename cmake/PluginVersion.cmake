# SPDX-License-Identifier: Apache-2.0
#
# cmake -D SOURCE=... -D VERSION=... -D ABI=... -D OUTPUT=... -P PluginVersion.cmake: writes the header
# with the version by which a program and its plugins know each other: that of the project, and a digest
# of the headers that both are compiled with. Touches nothing when it has not changed.
cmake_minimum_required(VERSION 3.25)
file(GLOB headers "${SOURCE}/runtime/accelerator/*.h"
  "${SOURCE}/runtime/device/cpu_device.h" "${SOURCE}/runtime/device/session_device.h"
  "${SOURCE}/data/files/*.h")
file(GLOB_RECURSE shared "${SOURCE}/core/*.h" "${SOURCE}/ops/*.h")
set(text "${ABI}")
foreach(header IN LISTS headers shared)
  file(RELATIVE_PATH name "${SOURCE}" "${header}")
  file(SHA256 "${header}" digest)
  string(APPEND text "${name} ${digest}\n")
endforeach()
string(SHA256 digest "${text}")
string(SUBSTRING "${digest}" 0 12 digest)
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT "// Made by cmake/PluginVersion.cmake.
#pragma once

namespace tenon {

// Of each side its own: not inline, or both would have that of the program.
constexpr char kPluginVersion[] = \"@VERSION@+@digest@\";

}  // namespace tenon
")
