// SPDX-License-Identifier: Apache-2.0
#include "data/local_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace tenon {
namespace {

Status FromErrno(int error, std::string_view what, const std::string& path) {
  const std::string message = StrCat("cannot ", what, " '", path, "': ", std::strerror(error));
  switch (error) {
    case ENOENT:
      return NotFound(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return PermissionDenied(message);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EFBIG:
      return ResourceExhausted(message);
    case EEXIST:
    case ENOTEMPTY:
      return AlreadyExists(message);
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case EINVAL:
      return InvalidArgument(message);
    default:
      return Unavailable(message);
  }
}

std::string Plain(const std::string& path) {
  return path.starts_with("file://") ? path.substr(7) : path;
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
      if (n < 0) return FromErrno(errno, "read", path_);
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
      return FromErrno(errno, "write", path_);
    }
    return OkStatus();
  }
  Status Flush() override {
    if (file_ == nullptr) return FailedPrecondition("'", path_, "' is closed");
    return std::fflush(file_) == 0 ? OkStatus() : FromErrno(errno, "write", path_);
  }
  Status Close() override {
    if (file_ == nullptr) return OkStatus();
    const int result = std::fclose(file_);
    file_ = nullptr;
    return result == 0 ? OkStatus() : FromErrno(errno, "write", path_);
  }

 private:
  const std::string path_;
  std::FILE* file_;
};

class LocalFileSystem final : public FileSystem {
 public:
  StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) override {
    const int fd = open(Plain(path).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return FromErrno(errno, "open", path);
    struct stat info;
    int error = fstat(fd, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
    if (error != 0) {
      close(fd);
      return FromErrno(error, "read", path);
    }
    return std::unique_ptr<InputFile>(std::make_unique<LocalInput>(path, fd, info.st_size));
  }

  StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path,
                                                   WriteMode mode) override {
    std::FILE* file = std::fopen(Plain(path).c_str(), mode == WriteMode::kAppend ? "abe" : "wbe");
    if (file == nullptr) return FromErrno(errno, "open for writing", path);
    return std::unique_ptr<OutputFile>(std::make_unique<LocalOutput>(path, file));
  }

  bool Exists(const std::string& path) override { return access(Plain(path).c_str(), F_OK) == 0; }

  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator it(Plain(folder), error), end; !error && it != end;
         it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error) return FromErrno(error.value(), "list", folder);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status MakeFolders(const std::string& folder) override {
    if (folder.empty()) return OkStatus();
    std::error_code error;
    std::filesystem::create_directories(Plain(folder), error);
    return error ? FromErrno(error.value(), "make the folder", folder) : OkStatus();
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (std::rename(Plain(from).c_str(), Plain(to).c_str()) == 0) return OkStatus();
    return FromErrno(errno, StrCat("rename to '", to, "'"), from);
  }

  Status Remove(const std::string& path) override {
    return std::remove(Plain(path).c_str()) == 0 ? OkStatus() : FromErrno(errno, "remove", path);
  }
};

}  // namespace

FileSystem& LocalFiles() {
  static auto* const files = new LocalFileSystem;
  return *files;
}

}  // namespace tenon
