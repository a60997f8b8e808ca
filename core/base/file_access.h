// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon {

/// Which files graphs may read and write where they run; data/files/file.h makes a FileSystem of
/// it.
struct FileAccess {
  enum class Kind {
    kEverything,  // what the account of the process may
    kRoot,        // what is in the folder `root` or below, whatever links lead out of it
    kNone,
  };
  Kind kind = Kind::kEverything;
  /// Paths that are not absolute are relative to it.
  std::string root;
};

}  // namespace tenon
