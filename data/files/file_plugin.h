// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "data/files/file_system.h"

// File systems of servers come in libraries of their own, which are loaded at the first path of
// their scheme: what they need of others would slow the start of every program.

namespace tenon {

/// The entry of such a library. Only its first member may be read before it is known to be of this
/// program's version: the others are C++.
struct FilePlugin {
  /// The project's version and a digest of the headers that program and library share, where the
  /// library was built.
  const char* version;
  /// Makes the file system of its scheme by this process's environment. `local`, the files of this
  /// machine, outlives it.
  StatusOr<std::unique_ptr<FileSystem>> (*make)(FileSystem& local);
};

/// The name of the function that gives it: `extern "C" const tenon::FilePlugin* TenonFilePlugin()`.
inline constexpr char kFilePluginFunction[] = "TenonFilePlugin";

/// The schemes for which there are such libraries.
const std::vector<std::string>& PluginSchemes();

/// The file system of one of these schemes, from its library (core/device/plugin_library.h), of
/// which some have several schemes: libtenon_s3.so, or what the environment variable
/// TENON_S3_PLUGIN names. The error is one line.
StatusOr<std::unique_ptr<FileSystem>> LoadFiles(const std::string& scheme);

}  // namespace tenon
