// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon {

/// Which files graphs may read and write where they run; data/files/file.h makes a FileSystem of
/// it.
struct FileAccess {
  enum class Kind {
    kEverything,  // what the account of the process may
    kRoot,        // what is in the folders of `root` or below, whatever links lead out of it
    kNone,
  };
  Kind kind = Kind::kEverything;
  /// "/data", "s3://b/run" or "/data,s3://b/run,..."; relative paths begin in the plain one.
  std::string root;
};

}  // namespace tenon
