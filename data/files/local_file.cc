// SPDX-License-Identifier: Apache-2.0
#include "data/files/local_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "data/files/confined_folder.h"
#include "data/files/path.h"

namespace tenon {
namespace {

/// InvalidArgument unless `fd` is a regular file, whose size is returned. Anything else may block,
/// or never end.
StatusOr<int64_t> RegularSize(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return StatusOfErrno(errno, "open", path);
  if (S_ISDIR(info.st_mode)) return StatusOfErrno(EISDIR, "open", path);
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument("cannot open '", path, "': it is ",
                           S_ISFIFO(info.st_mode)   ? "a pipe"
                           : S_ISSOCK(info.st_mode) ? "a socket"
                                                    : "a device",
                           ", not a regular file");
  }
  return info.st_size;
}

class LocalInput final : public InputFile {
 public:
  LocalInput(std::string path, int fd, int64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  ~LocalInput() override { close(fd_); }

  const std::string& path() const override { return path_; }
  int64_t size() const override { return size_; }
  StatusOr<size_t> ReadAt(int64_t offset, size_t size, char* out) const override {
    size_t done = 0;
    while (done < size) {
      const ssize_t n = pread(fd_, out + done, size - done, offset + static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return StatusOfErrno(errno, "read", path_);
      if (n == 0) break;
      done += n;
    }
    return done;
  }

 private:
  const std::string path_;
  const int fd_;
  const int64_t size_;
};

class LocalOutput final : public OutputFile {
 public:
  LocalOutput(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  ~LocalOutput() override {
    if (file_ != nullptr) std::fclose(file_);
  }

  Status Append(std::string_view data) override {
    if (file_ == nullptr) return FailedPrecondition("'", path_, "' is closed");
    if (std::fwrite(data.data(), 1, data.size(), file_) != data.size()) {
      return StatusOfErrno(errno, "write", path_);
    }
    return OkStatus();
  }
  Status Flush() override {
    if (file_ == nullptr) return FailedPrecondition("'", path_, "' is closed");
    return std::fflush(file_) == 0 ? OkStatus() : StatusOfErrno(errno, "write", path_);
  }
  Status Sync() override {
    TENON_RETURN_IF_ERROR(Flush());
    return fsync(fileno(file_)) == 0 ? OkStatus() : StatusOfErrno(errno, "sync", path_);
  }
  Status Close() override {
    if (file_ == nullptr) return OkStatus();
    const int result = std::fclose(file_);
    file_ = nullptr;
    return result == 0 ? OkStatus() : StatusOfErrno(errno, "write", path_);
  }

 private:
  const std::string path_;
  std::FILE* file_;
};

/// Removes what is called `name` in an open folder, with all that is in it, through open folders:
/// no link that is put in the way meanwhile leads elsewhere. Gives the errno, 0 for none.
int RemoveAll(int folder, const char* name) {
  if (unlinkat(folder, name, 0) == 0) return 0;
  if (errno != EISDIR) return errno;
  const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  DIR* const entries = fdopendir(fd);
  if (entries == nullptr) {
    const int error = errno;
    close(fd);
    return error;
  }
  int error = 0;
  errno = 0;
  while (const dirent* entry = readdir(entries)) {
    const std::string_view inner = entry->d_name;
    if (inner != "." && inner != "..") error = RemoveAll(fd, entry->d_name);
    if (error != 0) break;
    errno = 0;
  }
  if (error == 0) error = errno;
  closedir(entries);
  if (error != 0) return error;
  return unlinkat(folder, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

class LocalFileSystem final : public FileSystem {
 public:
  /// `root` may be null: then all paths are good.
  explicit LocalFileSystem(std::unique_ptr<ConfinedFolder> root) : root_(std::move(root)) {}

  StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const int fd, Open(path, O_RDONLY, "open"));
    const auto size = RegularSize(fd, path);
    if (!size.ok()) {
      close(fd);
      return size.status();
    }
    return std::unique_ptr<InputFile>(std::make_unique<LocalInput>(path, fd, *size));
  }

  StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path,
                                                   WriteMode mode) override {
    const bool append = mode == WriteMode::kAppend;
    const int how = append ? O_APPEND : mode == WriteMode::kNew ? O_EXCL : O_TRUNC;
    TENON_ASSIGN_OR_RETURN(const int fd, Open(path, O_WRONLY | O_CREAT | how, "open for writing"));
    if (Status s = RegularSize(fd, path).status(); !s.ok()) {
      close(fd);
      return s;
    }
    std::FILE* file = fdopen(fd, append ? "ab" : "wb");
    if (file == nullptr) {
      close(fd);
      return StatusOfErrno(errno, "open for writing", path);
    }
    return std::unique_ptr<OutputFile>(std::make_unique<LocalOutput>(path, file));
  }

  StatusOr<FileInfo> Stat(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const Place place, Find(path));
    struct stat found;
    if (fstatat(place.folder(), place.name(), &found, Follow()) != 0) {
      return StatusOfErrno(errno, "look at", path);
    }
    FileInfo info;
    info.kind = S_ISREG(found.st_mode)   ? FileInfo::Kind::kFile
                : S_ISDIR(found.st_mode) ? FileInfo::Kind::kFolder
                                         : FileInfo::Kind::kOther;
    info.size = found.st_size;
    info.modified_at = Clock::WallTime(std::chrono::duration_cast<Clock::WallTime::duration>(
        std::chrono::seconds(found.st_mtim.tv_sec) +
        std::chrono::nanoseconds(found.st_mtim.tv_nsec)));
    info.identity = StrCat(found.st_dev, ":", found.st_ino);
    return info;
  }

  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    TENON_ASSIGN_OR_RETURN(const int fd, Open(folder, O_RDONLY | O_DIRECTORY, "list"));
    DIR* const entries = fdopendir(fd);
    if (entries == nullptr) {
      close(fd);
      return StatusOfErrno(errno, "list", folder);
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(entries)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int error = errno;
    closedir(entries);
    if (error != 0) return StatusOfErrno(error, "list", folder);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status MakeFolders(const std::string& folder) override {
    if (folder.empty()) return OkStatus();
    const std::string path = WithoutFileScheme(folder);
    if (path.size() >= PATH_MAX) return StatusOfErrno(ENAMETOOLONG, "make the folder", folder);
    if (Status s = Find(folder).status(); s.code() == StatusCode::kPermissionDenied) return s;
    // The longest part that exists; what follows it is made.
    size_t begin = path.size();
    while (begin > 0 && !Stat(path.substr(0, begin)).ok()) {
      const size_t slash = path.rfind('/', begin - 1);
      begin = slash == std::string::npos ? 0 : slash;
    }
    while (begin < path.size()) {
      const size_t name = path.find_first_not_of('/', begin);
      if (name == std::string::npos) break;
      begin = std::min(path.find('/', name), path.size());
      TENON_ASSIGN_OR_RETURN(const Place place, Find(path.substr(0, begin)));
      if (mkdirat(place.folder(), place.name(), 0777) != 0 && errno != EEXIST) {
        return StatusOfErrno(errno, "make the folder", folder);
      }
      TENON_RETURN_IF_ERROR(SyncFolder(FolderOf(path.substr(0, begin))));
    }
    TENON_ASSIGN_OR_RETURN(const int fd, Open(path, O_PATH | O_DIRECTORY, "make the folder"));
    close(fd);
    return OkStatus();
  }

  Status Rename(const std::string& from, const std::string& to) override {
    TENON_ASSIGN_OR_RETURN(const Place source, Find(from, /*follow_last=*/false));
    TENON_ASSIGN_OR_RETURN(const Place target, Find(to, /*follow_last=*/false));
    if (renameat(source.folder(), source.name(), target.folder(), target.name()) == 0) {
      return OkStatus();
    }
    return StatusOfErrno(errno, StrCat("rename to '", to, "'"), from);
  }

  Status Publish(const std::string& from, const std::string& to) override {
    TENON_RETURN_IF_ERROR(Rename(from, to));
    return SyncFolder(FolderOf(to));
  }

  Status Remove(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const Place place, Find(path, /*follow_last=*/false));
    if (unlinkat(place.folder(), place.name(), 0) == 0) return OkStatus();
    if (errno == EISDIR && unlinkat(place.folder(), place.name(), AT_REMOVEDIR) == 0) {
      return OkStatus();
    }
    return StatusOfErrno(errno, "remove", path);
  }

  Status RemoveTree(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const Place place, Find(path, /*follow_last=*/false));
    const int error = RemoveAll(place.folder(), place.name());
    return error == 0 ? OkStatus() : StatusOfErrno(error, "remove", path);
  }

  Status SyncFolder(const std::string& folder) override {
    TENON_ASSIGN_OR_RETURN(const int fd,
                           Open(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY, "sync"));
    // Some file systems have nothing to do here, and say so.
    const int error = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
    close(fd);
    return error == 0 ? OkStatus() : StatusOfErrno(error, "sync", folder);
  }

 private:
  StatusOr<Place> Find(const std::string& path, bool follow_last = true) const {
    std::string plain = WithoutFileScheme(path);
    if (root_ != nullptr) return root_->Find(plain, follow_last);
    if (plain.find('\0') != std::string::npos) {
      return InvalidArgument("a path cannot hold a zero byte, found '", plain, "'");
    }
    return Place(AT_FDCWD, std::move(plain));
  }
  /// A confined path was followed to its end: a link there has come since.
  int Follow() const { return root_ == nullptr ? 0 : AT_SYMLINK_NOFOLLOW; }

  StatusOr<int> Open(const std::string& path, int flags, std::string_view what) const {
    TENON_ASSIGN_OR_RETURN(const Place place, Find(path));
    // Without waiting for the other end of a pipe or for a device.
    flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (root_ == nullptr ? 0 : O_NOFOLLOW);
    const int fd = openat(place.folder(), place.name(), flags, 0666);
    if (fd < 0) return StatusOfErrno(errno, what, path);
    return fd;
  }

  const std::unique_ptr<ConfinedFolder> root_;
};

}  // namespace

FileSystem& LocalFiles() {
  static auto* const files = new LocalFileSystem(nullptr);
  return *files;
}

StatusOr<std::unique_ptr<FileSystem>> LocalFilesBeneath(const std::string& root) {
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<ConfinedFolder> folder, ConfinedFolder::Open(root));
  return std::unique_ptr<FileSystem>(std::make_unique<LocalFileSystem>(std::move(folder)));
}

std::unique_ptr<InputFile> InputOfDescriptor(int fd, std::string path, int64_t size) {
  return std::make_unique<LocalInput>(std::move(path), fd, size);
}

}  // namespace tenon
