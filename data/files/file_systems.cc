// SPDX-License-Identifier: Apache-2.0
#include "data/files/file_systems.h"

#include <algorithm>

#include "data/files/file_plugin.h"
#include "data/files/local_file.h"
#include "data/files/path.h"

namespace tenon {
namespace {

constexpr std::string_view kMark = "://";
constexpr std::string_view kLocal = "file";

}  // namespace

Status FileSystems::Register(const std::string& scheme, std::unique_ptr<FileSystem> files) {
  if (!IsScheme(scheme)) {
    return InvalidArgument("'", scheme, "' is no scheme of paths: wanted a letter, then letters, ",
                           "digits, '+', '-' and '.'");
  }
  MutexLock lock(mu_);
  if (scheme == kLocal || !others_.try_emplace(scheme, std::move(files)).second) {
    return AlreadyExists("there is a file system for ", scheme, kMark, " already");
  }
  return OkStatus();
}

StatusOr<FileSystem*> FileSystems::Of(const std::string& path) {
  const std::string_view scheme = SchemeOf(path);
  if (scheme.empty() || scheme == kLocal) return local_;
  MutexLock lock(mu_);
  if (const auto found = others_.find(scheme); found != others_.end()) return found->second.get();
  if (std::find(loadable_.begin(), loadable_.end(), scheme) != loadable_.end()) {
    StatusOr<std::unique_ptr<FileSystem>> files = load_(std::string(scheme));
    if (!files.ok()) return Annotate(files.status(), StrCat("cannot open '", path, "'"));
    return others_.emplace(scheme, *std::move(files)).first->second.get();
  }
  std::vector<std::string> known = {StrCat(kLocal, kMark)};
  for (const auto& [name, files] : others_) known.push_back(StrCat(name, kMark));
  for (const std::string& name : loadable_) known.push_back(StrCat(name, kMark));
  std::sort(known.begin(), known.end());
  return Unimplemented("cannot open '", path, "': there is no file system for ", scheme, kMark,
                       "; there are plain paths and ", Join(known, ", "));
}

StatusOr<FileSystem*> FileSystems::OfBoth(const std::string& from, const std::string& to) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const source, Of(from));
  TENON_ASSIGN_OR_RETURN(FileSystem* const target, Of(to));
  if (source == target) return source;
  return Unimplemented("cannot rename '", from, "' to '", to, "': they are in two file systems");
}

StatusOr<std::unique_ptr<InputFile>> FileSystems::OpenInput(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(path));
  return files->OpenInput(path);
}

StatusOr<std::unique_ptr<OutputFile>> FileSystems::OpenOutput(const std::string& path,
                                                              WriteMode mode) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(path));
  return files->OpenOutput(path, mode);
}

StatusOr<FileInfo> FileSystems::Stat(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(path));
  return files->Stat(path);
}

StatusOr<std::vector<std::string>> FileSystems::List(const std::string& folder) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(folder));
  return files->List(folder);
}

Status FileSystems::MakeFolders(const std::string& folder) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(folder));
  return files->MakeFolders(folder);
}

Status FileSystems::Rename(const std::string& from, const std::string& to) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const files, OfBoth(from, to));
  return files->Rename(from, to);
}

Status FileSystems::Publish(const std::string& from, const std::string& to) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const files, OfBoth(from, to));
  return files->Publish(from, to);
}

bool FileSystems::WritesWhole(const std::string& path) {
  const auto files = Of(path);
  return files.ok() && (*files)->WritesWhole(path);
}

Status FileSystems::Remove(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(path));
  return files->Remove(path);
}

Status FileSystems::RemoveTree(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(path));
  return files->RemoveTree(path);
}

Status FileSystems::SyncFolder(const std::string& folder) {
  TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(folder));
  return files->SyncFolder(folder);
}

FileSystems& AllFileSystems() {
  static auto* const all = new FileSystems(&LocalFiles(), PluginSchemes(), LoadFiles);
  return *all;
}

}  // namespace tenon
