// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// Where a file is: its name in an open folder, for the system's calls that take both.
class Place {
 public:
  /// `folder` is not owned.
  Place(int folder, std::string name) : folder_(folder), name_(std::move(name)) {}
  ~Place();
  Place(Place&& other) noexcept;
  Place& operator=(Place&& other) noexcept;

  /// Takes `folder` over.
  static Place Owning(int folder, std::string name);

  int folder() const { return folder_; }
  const char* name() const { return name_.c_str(); }

 private:
  int folder_;
  bool owned_ = false;
  std::string name_;
};

/// A folder that paths cannot leave. They are relative to it, or absolute and beneath it; ".." and
/// symbolic links, also to absolute paths, are followed as long as they stay inside. Paths are
/// walked folder by folder through open descriptors, so that no link put in their way while they
/// are looked at leads out. Thread-safe.
class ConfinedFolder {
 public:
  /// An error when `root` is no folder that can be opened.
  static StatusOr<std::unique_ptr<ConfinedFolder>> Open(const std::string& root);
  ~ConfinedFolder();

  /// Where `path` is; the file itself need not exist, the folders above it must. Unless
  /// `follow_last` is false, it is no symbolic link; a caller who opens it must refuse to follow
  /// one that has come since. PermissionDenied, naming the path and the root, when it is outside.
  StatusOr<Place> Find(std::string_view path, bool follow_last = true) const;

 private:
  ConfinedFolder(std::string given, std::string root, int folder)
      : given_(std::move(given)), root_(std::move(root)), folder_(folder) {}
  /// The parts of a path relative to the root; false when it is outside.
  bool RelativeParts(std::string_view path, std::vector<std::string>* parts) const;
  Status Outside(std::string_view path) const;

  const std::string given_;  // as it was given
  const std::string root_;   // with its links followed
  const int folder_;
};

}  // namespace tenon
