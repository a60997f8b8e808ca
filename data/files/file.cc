// SPDX-License-Identifier: Apache-2.0
#include "data/files/file.h"

#include <algorithm>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "data/files/confined_files.h"
#include "data/files/file_systems.h"
#include "data/files/memory_claim.h"

namespace tenon {

namespace {

/// How much is read between two looks at whether it was cancelled.
constexpr size_t kReadBytes = 16 << 20;

/// The files of FileAccess::kNone.
class NoFiles final : public FileSystem {
 public:
  StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) override {
    return Refuse(path);
  }
  StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path, WriteMode) override {
    return Refuse(path);
  }
  StatusOr<FileInfo> Stat(const std::string& path) override { return Refuse(path); }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return Refuse(folder);
  }
  Status MakeFolders(const std::string& folder) override {
    return folder.empty() ? OkStatus() : Refuse(folder);
  }
  Status Rename(const std::string& from, const std::string&) override { return Refuse(from); }
  Status Publish(const std::string& from, const std::string&) override { return Refuse(from); }
  Status Remove(const std::string& path) override { return Refuse(path); }
  Status RemoveTree(const std::string& path) override { return Refuse(path); }
  Status SyncFolder(const std::string& folder) override { return Refuse(folder); }

 private:
  static Status Refuse(const std::string& path) {
    return PermissionDenied("cannot open '", path,
                            "': graphs may reach no files here; a --root of the server gives ",
                            "them a folder");
  }
};

/// The file system of each root that was asked for. They live until the process ends: there are as
/// many as a process has servers.
StatusOr<FileSystem*> FilesBeneath(const std::string& root) {
  static Mutex mu;
  static auto* const roots = new StringMap<std::unique_ptr<FileSystem>>;
  MutexLock lock(mu);
  std::unique_ptr<FileSystem>& files = (*roots)[root];
  if (files == nullptr) {
    TENON_ASSIGN_OR_RETURN(files, ConfinedFiles(root, &AllFileSystems()));
  }
  return files.get();
}

}  // namespace

FileSystem& AllFiles() { return AllFileSystems(); }

StatusOr<FileSystem*> FilesOf(const FileAccess& access) {
  static auto* const none = new NoFiles;
  switch (access.kind) {
    case FileAccess::Kind::kEverything:
      return &AllFiles();
    case FileAccess::Kind::kRoot:
      return FilesBeneath(access.root);
    case FileAccess::Kind::kNone:
      break;
  }
  return none;
}

StatusOr<FileContext> FileContext::Of(const FileAccess& access, const Cancellation* cancellation) {
  TENON_ASSIGN_OR_RETURN(FileSystem * files, FilesOf(access));
  return FileContext{files, cancellation};
}

Status FileContext::CheckCancelled() const {
  return cancellation == nullptr || !cancellation->cancelled() ? OkStatus()
                                                               : cancellation->status();
}

StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path,
                                               const FileContext& context) {
  return context.files->OpenInput(path);
}

StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path, WriteMode mode,
                                                 const FileContext& context) {
  return context.files->OpenOutput(path, mode);
}

StatusOr<size_t> ReadAt(const InputFile& file, int64_t offset, size_t size, char* out,
                        const FileContext& context) {
  size_t done = 0;
  while (done < size) {
    TENON_RETURN_IF_ERROR(context.CheckCancelled());
    const size_t step = std::min(size - done, kReadBytes);
    TENON_ASSIGN_OR_RETURN(const size_t n,
                           file.ReadAt(offset + static_cast<int64_t>(done), step, out + done));
    done += n;
    if (n < step) break;
  }
  return done;
}

StatusOr<std::string> ReadFileToString(const std::string& path, const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(const auto file, OpenInput(path, context));
  MemoryClaim claim;
  if (Status s = claim.GrowTo(file->size()); !s.ok()) {
    return Annotate(s, StrCat("cannot read '", path, "'"));
  }
  std::string content;
  content.reserve(file->size());
  while (static_cast<int64_t>(content.size()) < file->size()) {
    const size_t done = content.size();
    const size_t step = std::min<size_t>(file->size() - done, kReadBytes);
    content.resize(done + step);
    TENON_ASSIGN_OR_RETURN(const size_t n, ReadAt(*file, static_cast<int64_t>(done), step,
                                                  content.data() + done, context));
    content.resize(done + n);
    if (n < step) break;
  }
  return content;
}

std::string NameToPublish(const std::string& path, const FileContext& context) {
  return context.files->WritesWhole(path) ? path : TemporaryName(path);
}

Status PublishWhole(const std::string& written, const std::string& path,
                    const FileContext& context) {
  return written == path ? OkStatus() : PublishFile(written, path, context);
}

Status WriteStringToFile(const std::string& path, std::string_view content,
                         const FileContext& context) {
  const std::string temporary = NameToPublish(path, context);
  const auto write = [&]() -> Status {
    TENON_ASSIGN_OR_RETURN(const auto file, OpenOutput(temporary, WriteMode::kTruncate, context));
    TENON_RETURN_IF_ERROR(file->Append(content));
    TENON_RETURN_IF_ERROR(file->Sync());
    TENON_RETURN_IF_ERROR(file->Close());
    return PublishWhole(temporary, path, context);
  };
  Status status = write();
  if (!status.ok() && temporary != path) RemoveFile(temporary, context).IgnoreError();
  return status;
}

StatusOr<FileInfo> StatFile(const std::string& path, const FileContext& context) {
  return context.files->Stat(path);
}

bool FileExists(const std::string& path, const FileContext& context) {
  return StatFile(path, context).ok();
}

bool IsFolder(const std::string& path, const FileContext& context) {
  const StatusOr<FileInfo> info = StatFile(path, context);
  return info.ok() && info->kind == FileInfo::Kind::kFolder;
}

bool IsRegularFile(const std::string& path, const FileContext& context) {
  const StatusOr<FileInfo> info = StatFile(path, context);
  return info.ok() && info->kind == FileInfo::Kind::kFile;
}

bool IsSameFile(const std::string& a, const std::string& b, const FileContext& context) {
  const StatusOr<FileInfo> first = StatFile(a, context), second = StatFile(b, context);
  return first.ok() && second.ok() && !first->identity.empty() &&
         first->identity == second->identity;
}

StatusOr<std::chrono::nanoseconds> AgeOfFile(const std::string& path, const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(const FileInfo info, StatFile(path, context));
  const auto age = std::chrono::system_clock::now() - info.modified_at;
  return std::max(std::chrono::duration_cast<std::chrono::nanoseconds>(age),
                  std::chrono::nanoseconds(0));
}

StatusOr<std::vector<std::string>> ListFolder(const std::string& folder,
                                              const FileContext& context) {
  return context.files->List(folder);
}

Status MakeFolders(const std::string& folder, const FileContext& context) {
  return context.files->MakeFolders(folder);
}

Status RenameFile(const std::string& from, const std::string& to, const FileContext& context) {
  return context.files->Rename(from, to);
}

Status PublishFile(const std::string& from, const std::string& to, const FileContext& context) {
  return context.files->Publish(from, to);
}

Status RemoveFile(const std::string& path, const FileContext& context) {
  return context.files->Remove(path);
}

Status RemoveTree(const std::string& path, const FileContext& context) {
  return context.files->RemoveTree(path);
}

Status SyncFolder(const std::string& folder, const FileContext& context) {
  return context.files->SyncFolder(folder);
}

}  // namespace tenon
