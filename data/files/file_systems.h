// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  /// Makes the file system of a scheme, when a path of it comes first.
  using Loader = StatusOr<std::unique_ptr<FileSystem>> (*)(const std::string& scheme);

  /// `local` takes plain paths and "file://" ones, and must outlive this. `load` is called for
  /// `loadable` schemes that are not registered, again after an error.
  explicit FileSystems(FileSystem* local, std::vector<std::string> loadable = {},
                       Loader load = nullptr)
      : local_(local), loadable_(std::move(loadable)), load_(load) {}

  /// Has `files` take the paths that begin with "<scheme>://", which it is given whole.
  /// InvalidArgument for what is no scheme, AlreadyExists when it is taken.
  Status Register(const std::string& scheme, std::unique_ptr<FileSystem> files);

  /// OK when the path's scheme has a file system, which is loaded where it was not. Asks no server.
  Status Load(const std::string& path) { return Of(path).status(); }

  StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) override;
  StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path,
                                                   WriteMode mode) override;
  StatusOr<FileInfo> Stat(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  Status MakeFolders(const std::string& folder) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Publish(const std::string& from, const std::string& to) override;
  bool WritesWhole(const std::string& path) override;
  Status Remove(const std::string& path) override;
  Status RemoveTree(const std::string& path) override;
  Status SyncFolder(const std::string& folder) override;

 private:
  StatusOr<FileSystem*> Of(const std::string& path);
  StatusOr<FileSystem*> OfBoth(const std::string& from, const std::string& to);

  FileSystem* const local_;
  const std::vector<std::string> loadable_;
  const Loader load_;
  Mutex mu_;
  StringMap<std::unique_ptr<FileSystem>> others_ ABSL_GUARDED_BY(mu_);  // never removed
};

/// The file systems that AllFiles() gives: a program registers its own before it opens files, those
/// of PluginSchemes() are loaded. They live until the process ends.
FileSystems& AllFileSystems();

}  // namespace tenon
