// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/file.h"

namespace tenon {

/// The files of this machine. Takes plain paths and "file://" ones. Lives until the process ends.
FileSystem& LocalFiles();

/// The files in the folder `root` and below it; see ConfinedFolder for how paths are read.
StatusOr<std::unique_ptr<FileSystem>> LocalFilesBeneath(const std::string& root);

/// The path of this machine that `path`, a plain one or one that begins with "file://", means.
/// Unimplemented for a path of another scheme.
StatusOr<std::string> LocalPath(const std::string& path);

/// What the system's `error` means: "cannot <what> '<path>': <reason>".
Status StatusOfErrno(int error, std::string_view what, std::string_view path);

}  // namespace tenon
