// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"
#include "data/files/file_system.h"
#include "data/files/file_systems.h"

namespace tenon {

/// The files in the folders that `roots` names and below them, as FileAccess::root has them: a
/// folder of this machine (LocalFilesBeneath), folders of the other schemes of `all`, or one of
/// this machine and such, joined by commas: "/data,s3://bucket/run". A comma divides before a
/// scheme, and behind a folder with one before a slash. Everything else is PermissionDenied, naming
/// the path and `roots`; so are paths of other schemes with a part that is "." or "..", which
/// servers may resolve.
///
/// InvalidArgument for a root that names no folder, Unimplemented for one whose scheme has no file
/// system, and the errors of LocalFilesBeneath. Servers are not asked. `all` must outlive it.
StatusOr<std::unique_ptr<FileSystem>> ConfinedFiles(const std::string& roots, FileSystems* all);

}  // namespace tenon
