// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

// Paths as text, and the errors of what is at them.

namespace tenon {

/// The part of a path before its last slash ("" without one), and after it.
std::string FolderOf(std::string_view path);
std::string NameOf(std::string_view path);
/// The two with one slash between them.
std::string JoinPath(std::string_view folder, std::string_view name);
/// `path` as seen from `folder`, both relative to the same place, by their words alone: "../b" for
/// "x/b" and "x/a".
std::string RelativePath(const std::string& path, const std::string& folder);
/// `path` with a suffix that no other process or thread uses, for files to be renamed later.
std::string TemporaryName(std::string_view path);

/// Whether `text` may be the scheme of a path (RFC 3986).
bool IsScheme(std::string_view text);
/// The scheme of "scheme://rest", without "://"; empty for a plain path.
std::string_view SchemeOf(std::string_view path);
/// The path without a leading "file://".
std::string WithoutFileScheme(const std::string& path);
/// The path of this machine that `path`, a plain one or one that begins with "file://", means.
/// Unimplemented for a path of another scheme.
StatusOr<std::string> LocalPath(const std::string& path);

/// The Status for the system's `error`: "cannot <what> '<path>': <reason>".
Status StatusOfErrno(int error, std::string_view what, std::string_view path);

}  // namespace tenon
