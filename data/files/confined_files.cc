// SPDX-License-Identifier: Apache-2.0
#include "data/files/confined_files.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "data/files/local_file.h"
#include "data/files/path.h"

namespace tenon {
namespace {

constexpr std::string_view kLocalScheme = "file";

/// Whether the path is one of this machine.
bool IsLocal(std::string_view path) {
  const std::string_view scheme = SchemeOf(path);
  return scheme.empty() || scheme == kLocalScheme;
}

/// The part of a path behind "scheme://".
std::string_view AfterScheme(std::string_view path) {
  return path.substr(SchemeOf(path).size() + std::string_view("://").size());
}

/// Whether a part is "." or "..", or has a byte that ends texts.
bool HasStrangeParts(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return true;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part == "." || part == "..") return true;
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return false;
}

/// The roots in their order: a comma ends one where a path with a scheme follows it, and one with a
/// scheme also before a slash.
std::vector<std::string> SplitRoots(const std::string& roots) {
  std::vector<std::string> found;
  size_t begin = 0;
  for (size_t comma = roots.find(','); comma != std::string::npos;
       comma = roots.find(',', comma + 1)) {
    const std::string_view next = std::string_view(roots).substr(comma + 1);
    const std::string root = roots.substr(begin, comma - begin);
    if (SchemeOf(next).empty() && (IsLocal(root) || !next.starts_with('/'))) continue;
    found.push_back(root);
    begin = comma + 1;
  }
  found.push_back(roots.substr(begin));
  return found;
}

/// Folders of several file systems, of which paths cannot leave any.
class FilesBeneathRoots final : public FileSystem {
 public:
  /// `local` is null where no folder of this machine is among the roots.
  FilesBeneathRoots(std::string roots, std::unique_ptr<FileSystem> local,
                    std::vector<std::string> others, FileSystem* all)
      : roots_(std::move(roots)), local_(std::move(local)), others_(std::move(others)), all_(all) {}

  StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(path));
    return files->OpenInput(path);
  }
  StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path,
                                                   WriteMode mode) override {
    TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(path));
    return files->OpenOutput(path, mode);
  }
  StatusOr<FileInfo> Stat(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(path));
    return files->Stat(path);
  }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(folder));
    return files->List(folder);
  }
  Status MakeFolders(const std::string& folder) override {
    if (folder.empty()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(folder));
    return files->MakeFolders(folder);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    TENON_ASSIGN_OR_RETURN(FileSystem* const files, OfBoth(from, to));
    return files->Rename(from, to);
  }
  Status Publish(const std::string& from, const std::string& to) override {
    TENON_ASSIGN_OR_RETURN(FileSystem* const files, OfBoth(from, to));
    return files->Publish(from, to);
  }
  bool WritesWhole(const std::string& path) override {
    const StatusOr<FileSystem*> files = Of(path);
    return files.ok() && (*files)->WritesWhole(path);
  }
  Status Remove(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(path));
    return files->Remove(path);
  }
  Status RemoveTree(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(path));
    return files->RemoveTree(path);
  }
  Status SyncFolder(const std::string& folder) override {
    TENON_ASSIGN_OR_RETURN(FileSystem* const files, Of(folder));
    return files->SyncFolder(folder);
  }

 private:
  StatusOr<FileSystem*> Of(const std::string& path) const {
    if (IsLocal(path)) {
      if (local_ != nullptr) return local_.get();
      return Outside(path);
    }
    const bool is_within =
        std::any_of(others_.begin(), others_.end(), [&](const std::string& root) {
          return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
        });
    if (!is_within || HasStrangeParts(AfterScheme(path))) return Outside(path);
    return all_;
  }

  StatusOr<FileSystem*> OfBoth(const std::string& from, const std::string& to) const {
    TENON_ASSIGN_OR_RETURN(FileSystem* const source, Of(from));
    TENON_ASSIGN_OR_RETURN(FileSystem* const target, Of(to));
    if (source == target) return source;
    return Unimplemented("cannot rename '", from, "' to '", to, "': they are in two file systems");
  }

  Status Outside(const std::string& path) const {
    return PermissionDenied("cannot open '", path, "': it is outside '", roots_,
                            "', and graphs may reach no others here");
  }

  const std::string roots_;
  const std::unique_ptr<FileSystem> local_;
  const std::vector<std::string> others_;  // without a slash at the end
  FileSystem* const all_;
};

}  // namespace

StatusOr<std::unique_ptr<FileSystem>> ConfinedFiles(const std::string& roots, FileSystems* all) {
  std::vector<std::string> others;
  std::unique_ptr<FileSystem> local;
  for (std::string& root : SplitRoots(roots)) {
    if (IsLocal(root)) {
      if (local != nullptr) {
        return InvalidArgument("'", roots, "' confines files to two folders of this machine, the ",
                               "second one '", root, "'; wanted one, and others with a scheme");
      }
      TENON_ASSIGN_OR_RETURN(local, LocalFilesBeneath(WithoutFileScheme(root)));
      continue;
    }
    while (root.ends_with('/') && !AfterScheme(root).empty()) root.pop_back();
    if (AfterScheme(root).empty() || HasStrangeParts(AfterScheme(root))) {
      return InvalidArgument("files cannot be confined to '", root,
                             "': wanted a folder such as s3://bucket/run, without '.' and '..'");
    }
    TENON_RETURN_IF_ERROR(all->Load(root));
    others.push_back(std::move(root));
  }
  if (others.empty()) return local;
  return std::make_unique<FilesBeneathRoots>(roots, std::move(local), std::move(others), all);
}

}  // namespace tenon
