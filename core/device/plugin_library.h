// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/status.h"

// Libraries that a program loads when it needs them, and which take what they use of Tenon from the
// program. Their names, and the variables that say where else they are, belong to who loads them.

namespace tenon {

/// A library to load.
struct PluginLibrary {
  std::string what;      // "the plugin for GPUs", as errors call it
  std::string library;   // "libtenon_cuda.so"
  std::string variable;  // "TENON_CUDA_PLUGIN", which may name a file
  std::string function;  // "TenonDevicePlugin", of C, without arguments, which gives what it has
};

/// Loads it: where the environment variable says, or beside the executable, in ../lib of that, and
/// where the loader looks. It stays loaded, and shows its symbols to nobody. Returns what its
/// function gives, of which the first member must be `const char* version`, and is this program's
/// (kPluginVersion). The error is one line that says where was looked, or what is wrong with it.
StatusOr<const void*> LoadPlugin(const PluginLibrary& plugin);

}  // namespace tenon
