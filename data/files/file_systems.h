// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "data/files/file_system.h"

namespace tenon {

/// File systems by the scheme of their paths, as one: each call goes to the one that is registered
/// for its path's scheme, plain paths to that of the scheme "file". Unimplemented, naming the
/// schemes there are, for a path of another one, and for Rename and Publish from one scheme to
/// another. Thread-safe.
class FileSystems final : public FileSystem {
 public:
  /// `local` takes plain paths and "file://" ones, and must outlive this.
  explicit FileSystems(FileSystem* local) : local_(local) {}

  /// Has `files` take the paths that begin with "<scheme>://", which it is given whole.
  /// InvalidArgument for what is no scheme, AlreadyExists when it is taken.
  Status Register(const std::string& scheme, std::unique_ptr<FileSystem> files);

  StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) override;
  StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path,
                                                   WriteMode mode) override;
  StatusOr<FileInfo> Stat(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  Status MakeFolders(const std::string& folder) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Publish(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status RemoveTree(const std::string& path) override;
  Status SyncFolder(const std::string& folder) override;

 private:
  StatusOr<FileSystem*> Of(const std::string& path) const;
  StatusOr<FileSystem*> OfBoth(const std::string& from, const std::string& to) const;

  FileSystem* const local_;
  mutable Mutex mu_;
  StringMap<std::unique_ptr<FileSystem>> others_ ABSL_GUARDED_BY(mu_);  // never removed
};

/// The file systems that AllFiles() gives: a program registers its own before it opens files. They
/// live until the process ends.
FileSystems& AllFileSystems();

}  // namespace tenon
